#include "runtime/role/metrics.h"

#include <string.h>

#include "runtime/doc/documents.h"

static const struct {
    const char *name, *help, *labels[2];
} counters[METRICS] = {
    [METRIC_RECORDS] = { "rondo_records_total", "Rounds decided.", { "kind", NULL } },
    [METRIC_CONTRIBUTIONS] = { "rondo_contributions_total", "Contributions listed in records.", { "code", NULL } },
    [METRIC_MOVES] = { "rondo_moves_total", "Moves of disputes and evidence listed in records.", { "type", "code" } },
    [METRIC_JOBS] = { "rondo_jobs_total", "Jobs given to the workers.", { "job", NULL } },
    [METRIC_JOB_FAILURES] = { "rondo_job_failures_total", "Jobs that failed.", { "job", "code" } },
    [METRIC_ABSTENTIONS] = { "rondo_abstentions_total",
                             "Jobs that a fault of this machine keeps from being done.",
                             { "job", "code" } },
    [METRIC_DOCUMENTS] = { "rondo_documents_total", "Documents taken from others.", { "type", NULL } },
};

enum { SERIES_MOST = 256 }; /* of one metric: more are not told apart */

void metrics_count(struct node *node, enum metric metric, const char *first, const char *second)
{
    json_t *series = json_array_get(node->counters, metric), *value;
    char key[160];

    snprintf(key, sizeof key, second ? "%s=\"%s\",%s=\"%s\"" : "%s=\"%s\"", counters[metric].labels[0], first,
             counters[metric].labels[1], second);
    value = json_object_get(series, key);
    if (value)
        json_integer_set(value, json_integer_value(value) + 1);
    else if (json_object_size(series) < SERIES_MOST)
        json_object_set_new(series, key, json_integer(1));
}

/* Codes come from others: one that is no plain word counts as "other". */
static const char *plain(const char *text)
{
    return text && text[0] && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text) && strlen(text) < 40
               ? text
               : "other";
}

void metrics_record(struct node *node, const json_t *record)
{
    json_t *each;
    size_t index;

    metrics_count(node, METRIC_RECORDS, plain(document_text(record, "kind")), NULL);
    json_array_foreach(json_object_get(record, "contributions"), index, each)
    {
        metrics_count(node, METRIC_CONTRIBUTIONS, plain(document_text(each, "code")), NULL);
    }
    json_array_foreach(json_object_get(record, "items"), index, each)
    {
        metrics_count(node, METRIC_MOVES, plain(document_text(each, "type")), plain(document_text(each, "code")));
    }
}

static void head(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauge(struct buffer *out, const char *name, const char *help, double value)
{
    head(out, name, "gauge", help);
    buffer_printf(out, "%s %.15g\n", name, value);
}

static void counters_text(struct node *node, struct buffer *out)
{
    for (int i = 0; i < METRICS; i++) {
        const char *key;
        json_t *value;

        head(out, counters[i].name, "counter", counters[i].help);
        json_object_foreach(json_array_get(node->counters, (size_t)i), key, value)
        {
            buffer_printf(out, "%s{%s} %lld\n", counters[i].name, key, (long long)json_integer_value(value));
        }
    }
}

static void http_text(struct node *node, struct buffer *out)
{
    const struct http_counts *counts = http_server_counts(node->server);

    head(out, "rondo_http_answers_total", "counter", "Requests answered, by status.");
    for (int status = 0; status < HTTP_STATUSES; status++)
        if (counts->status[status])
            buffer_printf(out, "rondo_http_answers_total{status=\"%d\"} %llu\n", status,
                          (unsigned long long)counts->status[status]);
    head(out, "rondo_http_problems_total", "counter", "Requests refused, by code.");
    for (int code = 0; code < ERROR_CODES; code++)
        if (counts->problem[code])
            buffer_printf(out, "rondo_http_problems_total{code=\"%s\"} %llu\n", error_name((enum error_code)code),
                          (unsigned long long)counts->problem[code]);
    head(out, "rondo_http_cut_total", "counter", "Connections cut: silent or slow, or to make room for others.");
    buffer_printf(out, "rondo_http_cut_total{reason=\"timeout\"} %llu\nrondo_http_cut_total{reason=\"room\"} %llu\n",
                  (unsigned long long)counts->timed_out, (unsigned long long)counts->pushed_out);
    gauge(out, "rondo_http_banned", "Senders that are banned now.", counts->banned);
    gauge(out, "rondo_http_connections", "Connections open now.", http_server_connections(node->server));
}

static void machine_text(const struct metrics_machine *machine, struct buffer *out)
{
    const json_t *view = json_object_get(machine->status, "view"), *last = machine->last;

    gauge(out, "rondo_round", "The open round.", (double)machine->round);
    if (view)
        gauge(out, "rondo_view", "The view of the open round; -1 before voting.", (double)json_integer_value(view));
    head(out, "rondo_phase", "gauge", "1 for the phase that the machine is in.");
    buffer_printf(out, "rondo_phase{phase=\"%s\"} 1\n", document_text(machine->status, "phase"));
    gauge(out, "rondo_disputes_open", "Disputes open in the last record.",
          (double)json_array_size(json_object_get(last, "disputes")));
    gauge(out, "rondo_convicted", "Machines convicted so far.", (double)json_array_size(json_object_get(last, "convicted")));
}

void metrics_text(struct node *node, const struct metrics_machine *machine, struct buffer *out)
{
    uint64_t known, read;
    size_t silent = 0, peers = peer_list_count(node->peers);

    for (size_t i = 0; i < peers; i++)
        silent += peer_list_at(node->peers, i)->failures > 0;
    head(out, "rondo_build_info", "gauge", "Version and role.");
    buffer_printf(out, "rondo_build_info{version=\"%s\",role=\"%s\"} 1\n", RONDO_VERSION, node->role);
    gauge(out, "rondo_up_seconds", "Seconds since the node was opened.", (double)(uv_now(&node->loop) - node->opened) / 1000);
    if (machine)
        machine_text(machine, out);
    counters_text(node, out);
    verified_counts(node->known, &known, &read);
    head(out, "rondo_documents_read_total", "counter", "Documents read: known from before, or verified.");
    buffer_printf(out, "rondo_documents_read_total{how=\"known\"} %llu\nrondo_documents_read_total{how=\"verified\"} %llu\n",
                  (unsigned long long)known, (unsigned long long)read);
    http_text(node, out);
    gauge(out, "rondo_peers", "Machines whose address is known.", (double)peers);
    gauge(out, "rondo_peers_silent", "Of those, the ones that did not answer last.", (double)silent);
}
