#include "runtime/role/node.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/log.h"
#include "runtime/ledger/client.h"
#include "runtime/role/driver.h"
#include "runtime/role/expected.h"
#include "runtime/role/file_sync.h"
#include "runtime/role/metrics.h"
#include "runtime/role/routes.h"
#include "runtime/role/subscribers.h"
#include "runtime/script/resident.h"

static void interrupted(uv_signal_t *handle, int number)
{
    (void)number;
    node_stop(handle->data, NULL);
}

static void asked_to_leave(uv_signal_t *handle, int number)
{
    struct node *node = handle->data;

    (void)number;
    if (!node->driver || !driver_leave(node->driver))
        node_tell(node, "stays", json_pack("{s:s}", "reason", "only a trainer or an auditor leaves a run"));
}

static bool open_files(struct node *node, struct error *err)
{
    char path[4300];

    snprintf(path, sizeof path, "%s/key.json", node->folder);
    if (!keyfile_read(path, node->options.passphrase, &node->keys, err))
        return error_at(err, "%s", path);
    node->key = public_key_of(&node->keys.identity);
    did_text(&node->key, node->did);
    node->account = account_address(&node->keys.account);
    snprintf(path, sizeof path, "%s/blocks", node->folder);
    node->journal = journal_open(node->folder, err);
    node->known = verified_new(VERIFIED_ENTRIES);
    if (node->journal)
        journal_remember(node->journal, node->known);
    if (!node->journal || !block_store_open(path, &node->blocks, err))
        return false;
    node->blocks.unsynced = journal_files(node->journal);
    return true;
}

/* Without a port given, that of the last time: enrolments name it. */
static struct http_server *open_server(struct node *node, struct http_server_options *options, struct error *err)
{
    struct buffer last = { 0 };
    struct error none = { 0 };
    struct http_server *server = NULL;
    char text[16];

    if (options->port == 0 && journal_get_note(node->journal, "port", &last, &none)) {
        options->port = (uint16_t)strtoul(buffer_text(&last), NULL, 10);
        server = http_server_new(&node->loop, options, &none);
        options->port = 0;
    }
    buffer_free(&last);
    if (!server)
        server = http_server_new(&node->loop, options, err);
    if (server) {
        snprintf(text, sizeof text, "%u", http_server_port(server));
        if (!journal_put_note(node->journal, "port", text, strlen(text), err)) {
            http_server_free(server);
            server = NULL;
        }
    }
    return server;
}

static bool knows(const struct public_key *key, void *context)
{
    const struct node *node = context;

    return node->course && course_invites(node->course, key);
}

/* Another name for the own server: its certificate is the same. */
static bool set_endpoint(struct node *node, struct error *err)
{
    const char *endpoint = node->options.endpoint, *pin = node->server ? strchr(http_server_url(node->server), '#') : NULL;

    if (!endpoint || !pin || strchr(endpoint, '#'))
        return true;
    return (strncmp(endpoint, "https://", 8) == 0 &&
            snprintf(node->address_url, sizeof node->address_url, "%s%s", endpoint, pin) < (int)sizeof node->address_url) ||
           error_set(err, ERROR_USAGE, "with --tls it begins with https://", "--endpoint %.200s", endpoint);
}

/* The C library raises its own bounds with the largest block that was ever freed: after the run's files were read once it would keep 7 MB. Blocks of
 * objects still come from the heap. */
void node_settle(void)
{
    mallopt(M_MMAP_THRESHOLD, 2 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 10);
    malloc_trim(0);
    resident_settle();
}

bool node_open(struct node *node, const char *role, const struct node_options *options, struct error *err)
{
    *node = (struct node){ .options = *options, .role = role };
    snprintf(node->folder, sizeof node->folder, "%s", options->folder);
    uv_loop_init(&node->loop);
    node->opened = uv_now(&node->loop);
    node->counters = json_array();
    for (int i = 0; i < METRICS; i++)
        json_array_append_new(node->counters, json_object());
    uv_signal_init(&node->loop, &node->interrupt);
    uv_signal_init(&node->loop, &node->terminate);
    uv_signal_init(&node->loop, &node->leave);
    node->interrupt.data = node->terminate.data = node->leave.data = node;
    uv_signal_start(&node->interrupt, interrupted, SIGINT);
    uv_signal_start(&node->terminate, interrupted, SIGTERM);
    uv_signal_start(&node->leave, asked_to_leave, SIGUSR1);
    uv_unref((uv_handle_t *)&node->interrupt);
    uv_unref((uv_handle_t *)&node->terminate);
    uv_unref((uv_handle_t *)&node->leave);
    signal(SIGPIPE, SIG_IGN);
    if (!open_files(node, err))
        return false;

    struct http_client_options client = { .plain = options->plain, .identity = &node->keys.identity };
    struct http_server_options server = { .address = options->listen,
                                          .port = options->port,
                                          .routes = node_routes,
                                          .context = node,
                                          .knows = knows,
                                          .tls = options->tls ? node->keys.identity.bytes : NULL,
                                          .endpoint = options->endpoint };

    node->sync = file_sync_new(node);
    node->subscribers = subscribers_new();
    node->expected = expected_new();
    node->peers = peer_list_new();
    node->client = http_client_new(&node->loop, &client, err);
    node->server = node->client && !options->outbound ? open_server(node, &server, err) : NULL;
    node->ledger = node->server || (node->client && options->outbound)
                       ? ledger_client_new(&node->loop, node->client, options->ledger, 0, err)
                       : NULL;
    return node->ledger != NULL && set_endpoint(node, err);
}

/* A node that ends in order leaves its files in their folders, synced; what fails here is done at the next start. */
static void sync_files(struct node *node)
{
    struct error none;
    int64_t mark;

    if (node->journal && journal_unsynced(node->journal) && journal_mark(node->journal, &mark, &none) &&
        journal_sync_folder(node->folder, &none))
        journal_synced(node->journal, mark, &none);
}

void node_close(struct node *node)
{
    driver_free(node->driver);
    ledger_free(node->ledger);
    http_client_free(node->client);
    http_server_free(node->server);
    peer_list_free(node->peers);
    file_sync_free(node->sync);
    if (node->interrupt.data) {
        uv_close((uv_handle_t *)&node->interrupt, NULL);
        uv_close((uv_handle_t *)&node->terminate, NULL);
        uv_close((uv_handle_t *)&node->leave, NULL);
        uv_run(&node->loop, UV_RUN_DEFAULT);
        uv_loop_close(&node->loop);
    }
    subscribers_free(node->subscribers);
    expected_free(node->expected);
    json_decref(node->counters);
    if (node->course) {
        course_free(node->course);
        free(node->course);
    }
    sync_files(node);
    journal_close(node->journal);
    verified_free(node->known);
    key_pair_wipe(&node->keys);
}

bool node_run(struct node *node, struct error *err)
{
    if (!node->stopping)
        uv_run(&node->loop, UV_RUN_DEFAULT);
    if (node->fault.code == ERROR_NONE)
        return true;
    *err = node->fault;
    return false;
}

const char *node_endpoint(const struct node *node)
{
    if (node->address_url[0])
        return node->address_url;
    if (!node->server)
        return "";
    return node->options.endpoint ? node->options.endpoint : http_server_url(node->server);
}

void node_stop(struct node *node, const struct error *fault)
{
    if (fault && node->fault.code == ERROR_NONE)
        node->fault = *fault;
    node->stopping = true;
    uv_stop(&node->loop);
}

/* The members that matter to a person, after what every line has: time, node, run and round. */
static void tell_person(const struct node *node, const char *kind, const json_t *body)
{
    const char *folder = strrchr(node->folder, '/'), *key;
    struct log log = log_default(LOG_INFO);
    struct buffer text = { 0 };
    json_t *value;

    log.node = folder ? folder + 1 : node->role;
    log.run = node->course ? node->course->spec.name : NULL;
    log.round = node->driver ? driver_round(node->driver) : -1;
    buffer_add_text(&text, kind);
    json_object_foreach((json_t *)(uintptr_t)body, key, value)
    {
        if (json_is_string(value))
            buffer_printf(&text, " %s=%s", key, json_string_value(value));
        else if (json_is_integer(value))
            buffer_printf(&text, " %s=%lld", key, (long long)json_integer_value(value));
        else if (json_is_real(value))
            buffer_printf(&text, " %s=%.4g", key, json_real_value(value));
        else if (json_is_boolean(value))
            buffer_printf(&text, " %s=%s", key, json_is_true(value) ? "yes" : "no");
    }
    log_write(&log, json_object_get(body, "error") ? LOG_WARN : LOG_INFO, "%s", buffer_text(&text));
    buffer_free(&text);
}

/* An event says its own round, else it is of the open one. */
static void tell_program(const struct node *node, const char *kind, const json_t *body)
{
    json_t *line = json_pack("{s:s, s:s, s:s}", "event", kind, "role", node->role, "did", node->did);
    char time[32];

    json_object_update(line, (json_t *)(uintptr_t)body);
    if (node->course && !json_object_get(line, "run"))
        json_object_set_new(line, "run", json_string(node->course->run));
    if (node->driver && !json_object_get(line, "round"))
        json_object_set_new(line, "round", json_integer(driver_round(node->driver)));
    json_object_set_new(line, "time", json_string(log_time(time)));
    json_dumpf(line, stdout, JSON_COMPACT);
    fputc('\n', stdout);
    fflush(stdout);
    json_decref(line);
}

void node_tell(struct node *node, const char *kind, json_t *body)
{
    if (node->options.json)
        tell_program(node, kind, body);
    else if (!node->options.quiet)
        tell_person(node, kind, body);
    json_decref(body);
}
