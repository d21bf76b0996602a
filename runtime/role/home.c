#include "runtime/role/home.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/hex.h"
#include "native/base/json.h"
#include "runtime/net/tls.h"
#include "runtime/role/course.h"
#include "runtime/round/value.h"

enum { RUNNING_LIMIT = 4096, ANSWER_LIMIT = 16 << 20 };

/* NULL when there is no such file, or its process is gone. */
static json_t *read_running(const char *folder)
{
    struct error none = { 0 };
    char path[4300];
    json_t *value;

    snprintf(path, sizeof path, "%s/running.json", folder);
    value = file_exists(path) ? json_read_file(path, RUNNING_LIMIT, &none) : NULL;

    pid_t pid = (pid_t)document_integer(value, "pid");

    if (value && (pid <= 1 || kill(pid, 0) != 0)) {
        json_decref(value);
        value = NULL;
    }
    return value;
}

struct home_node *home_nodes(const char *home, size_t *count)
{
    struct dirent **names = NULL;
    struct home_node *list;
    char path[4200];
    int found;

    *count = 0;
    snprintf(path, sizeof path, "%.4000s/nodes", home);
    found = scandir(path, &names, NULL, alphasort);
    list = calloc((size_t)(found > 0 ? found : 0) + 1, sizeof *list);
    for (int i = 0; i < found; i++) {
        struct home_node *n = &list[*count];

        if (names[i]->d_name[0] != '.') {
            snprintf(n->name, sizeof n->name, "%.60s", names[i]->d_name);
            snprintf(n->folder, sizeof n->folder, "%.4000s/nodes/%s", home, n->name);
            n->running = read_running(n->folder);
            ++*count;
        }
        free(names[i]);
    }
    free(names);
    return list;
}

bool home_may_read(const char *home, struct error *err)
{
    char path[4200];

    snprintf(path, sizeof path, "%.4000s/nodes", home);
    if (access(path, R_OK | X_OK) == 0 || errno != EACCES)
        return true;
    error_set(err, ERROR_IO, "run it as the user whom the folder belongs to", "this user may not look into it");
    return error_at(err, "%s", path);
}

void home_nodes_free(struct home_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_decref(nodes[i].running);
    free(nodes);
}

bool home_serves(const struct home_node *node)
{
    return node->running && journal_holder(node->folder) == (pid_t)document_integer(node->running, "pid");
}

const char *home_did(const char *home, const char *word, char did[DID_TEXT])
{
    struct key_pair keys;
    struct error none = { 0 };
    char path[4400];

    snprintf(path, sizeof path, "%.4000s/nodes/%.60s/key.json", home, word);
    if (strchr(word, ':') || strchr(word, '/') || !file_exists(path) ||
        !keyfile_read(path, getenv("RONDO_PASSPHRASE"), &keys, &none))
        return word;

    struct public_key key = public_key_of(&keys.identity);

    key_pair_wipe(&keys);
    return did_text(&key, did);
}

bool home_running_put(const struct node *node, struct error *err)
{
    json_t *value =
        json_pack("{s:s, s:s?, s:I, s:s, s:s}", "did", node->did, "endpoint", node->server ? http_server_url(node->server) : NULL,
                  "pid", (json_int_t)getpid(), "role", node->role, "run", node->course->run);
    char *text = json_dumps(value, JSON_COMPACT), path[4300];

    snprintf(path, sizeof path, "%s/running.json", node->folder);

    bool ok = file_write(path, text, strlen(text), 0644, err);

    free(text);
    json_decref(value);
    return ok;
}

void home_running_remove(const struct node *node)
{
    char path[4300];
    json_t *value;

    if (!node->journal)
        return; /* the folder is another process's */
    snprintf(path, sizeof path, "%s/running.json", node->folder);
    value = read_running(node->folder);
    if (document_integer(value, "pid") == (int64_t)getpid())
        unlink(path);
    json_decref(value);
}

const char *home_enrolled_url(const json_t *enrolment, char url[PEER_ENDPOINT])
{
    const char *endpoint = value_text(enrolment, "endpoint"), *fingerprint = value_text(enrolment, "fingerprint");
    uint8_t bytes[TLS_FINGERPRINT];

    if (!fingerprint[0] || !hex_decode(fingerprint, strlen(fingerprint), bytes, sizeof bytes) ||
        !tls_pin_add(endpoint, bytes, url, PEER_ENDPOINT))
        snprintf(url, PEER_ENDPOINT, "%s", endpoint);
    return url;
}

json_t *home_ask(const char *endpoint, const char *path, bool plain, struct error *err)
{
    char *url = http_url_join(endpoint, path);
    struct http_call call = { .method = "GET", .url = url, .limit = ANSWER_LIMIT, .connect_ms = 2000, .total_ms = 10000 };
    struct http_answer answer = { 0 };
    json_t *value = NULL;

    if (http_fetch(&call, plain, &answer, err) && http_answer_ok(&answer, err))
        value = json_read((const char *)answer.body.bytes, answer.body.size, ANSWER_LIMIT, err);
    if (!value)
        error_at(err, "%s", url);
    buffer_free(&answer.body);
    free(url);
    return value;
}
