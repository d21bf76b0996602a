#include "runtime/script/call.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "native/base/buffer.h"
#include "native/graph/wire.h"
#include "runtime/script/nursery.h"
#include "runtime/script/value.h"

enum { MAGIC = 0x31435352, GRAPHS_MAX = 16384 }; /* as in child.h, which needs an engine's headers */
static const uint64_t REPLY_MAX = 256u << 20;

char *script_hash(const struct script_file *file, char hex[65])
{
    uint8_t digest[32];
    crypto_generichash(digest, sizeof digest, (const uint8_t *)file->source, file->size, NULL, 0);
    return sodium_bin2hex(hex, 65, digest, sizeof digest);
}

static json_t *file_value(const struct script_file *file)
{
    char hex[65];
    script_hash(file, hex);
    return json_pack("{s:s,s:s,s:o}", "name", file->name, "hash", hex, "source", json_stringn_nocheck(file->source, file->size));
}

static bool write_request(struct buffer *out, const struct script_bundle *b, const char *verb, json_t *args,
                          const struct script_limits *l, struct error *err)
{
    json_t *files = json_array();
    for (size_t i = 0; i < b->count; i++)
        if (json_array_append_new(files, file_value(&b->files[i]))) {
            json_decref(files);
            json_decref(args);
            return error_set(err, ERROR_SYNTAX, "rename the file", "the script's name %s is not UTF-8", b->files[i].name);
        }
    json_t *options = b->options ? json_incref(b->options) : json_object();
    json_t *request = json_pack("{s:s,s:o,s:o,s:o}", "verb", verb, "files", files, "options", options, "args", args);
    struct buffer body = { 0 };
    bool ok = request && value_write(&body, request, err);
    json_decref(request);
    double seconds = l->seconds > 0 ? l->seconds : 10;
    buffer_add_u32(out, MAGIC);
    buffer_add_u32(out, (uint32_t)seconds + 2);
    buffer_add_u64(out, l->memory ? l->memory : 256u << 20);
    buffer_add_u64(out, l->fuel ? l->fuel : 200000000);
    buffer_add_u64(out, l->nodes ? l->nodes : 1u << 18);
    buffer_add_u64(out, body.size);
    buffer_add(out, body.bytes, body.size);
    buffer_free(&body);
    return ok;
}

static bool spawn(const struct script_limits *l, pid_t *pid, int *fd, struct error *err)
{
    const char *program = l->program ? l->program : "/proc/self/exe";
    return l->nursery ? script_nursery_child(l->nursery, program, pid, fd, err) : script_spawn(program, pid, fd, err);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum outcome { ENDED, LATE, TOO_LONG, BROKEN };

/* Sends `request` and reads to the end of the stream, until `deadline`. */
static enum outcome exchange(int fd, const struct buffer *request, struct buffer *reply, double deadline)
{
    size_t sent = 0;
    for (;;) {
        double left = deadline - now();
        struct pollfd p = { fd, (short)(POLLIN | (sent < request->size ? POLLOUT : 0)), 0 };
        if (left <= 0)
            return LATE;
        int ready = poll(&p, 1, (int)(left * 1000) + 1);
        if (ready < 0 && errno != EINTR)
            return BROKEN;
        if (ready <= 0)
            continue;
        if (p.revents & POLLOUT) {
            ssize_t n = send(fd, request->bytes + sent, request->size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n > 0)
                sent += (size_t)n;
            else if (n < 0 && errno != EAGAIN && errno != EINTR)
                sent = request->size; /* the child is gone; what it said is read below */
        }
        if (p.revents & (POLLIN | POLLHUP | POLLERR)) {
            buffer_reserve(reply, 1 << 16);
            ssize_t n = recv(fd, reply->bytes + reply->size, 1 << 16, MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno == ECONNRESET))
                return ENDED;
            if (n > 0 && (reply->size += (size_t)n) > REPLY_MAX)
                return TOO_LONG;
        }
    }
}

/* Why there is no whole reply. No limit of the spec ends a process by a signal, so another machine's need not end there: a fault of this one. */
static bool told(enum outcome outcome, int status, struct error *err)
{
    if (outcome == LATE)
        return error_set(err, ERROR_TIMEOUT, "the limit is part of the run", "the script did not end in time");
    if (outcome == TOO_LONG)
        return error_set(err, ERROR_LIMIT, NULL, "the script's graphs are too large");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        return error_set(err, ERROR_FAULT, "out of memory while it built its graphs, or an attempt to leave the sandbox",
                         "the script's process was stopped at a system call");
    if (WIFSIGNALED(status))
        return error_set(err, ERROR_FAULT, "is there enough memory? the kernel ends processes when there is none",
                         "the script's process was ended by signal %d", WTERMSIG(status));
    return error_set(err, ERROR_FAULT, "does the program answer --script-child?", "the script's process gave no answer");
}

static bool read_error(struct reader *in, uint32_t code, struct error *err)
{
    uint64_t size = reader_u64(in);
    const char *at = (const char *)reader_bytes(in, size), *part[3];
    const char *end = at ? at + size : at;
    for (int i = 0; i < 3; i++) {
        const char *stop = at ? memchr(at, 0, (size_t)(end - at)) : NULL;
        if (!stop)
            return error_set(err, ERROR_FAULT, NULL, "a malformed error from the script's process");
        part[i] = at;
        at = stop + 1;
    }
    error_set(err, code < ERROR_CODES && code ? (enum error_code)code : ERROR_FAULT, part[2], "%s", part[1]);
    return *part[0] ? error_at(err, "%s", part[0]) : false;
}

static bool read_graphs(struct reader *in, const struct script_limits *l, struct script_trace *out, struct error *err)
{
    struct graph_limits limits = graph_limits_default;
    limits.nodes = l->nodes && l->nodes < UINT32_MAX ? (uint32_t)l->nodes : 1u << 18;
    uint32_t count = reader_u32(in);
    if (!in->ok || count > GRAPHS_MAX)
        return error_set(err, ERROR_LIMIT, NULL, "script reply: %u graphs", count);
    out->graphs = calloc(count + 1, sizeof *out->graphs);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t size = reader_u64(in);
        const uint8_t *bytes = size <= reader_left(in) ? reader_bytes(in, size) : NULL;
        if (!bytes)
            return error_set(err, ERROR_TRUNCATED, NULL, "script reply: graph %u is cut off", i);
        out->graphs[i] = graph_decode(bytes, size, &limits, err);
        if (!out->graphs[i])
            return error_at(err, "script reply: graph %u", i);
        out->graph_count = i + 1;
    }
    return !reader_left(in) || error_set(err, ERROR_SYNTAX, NULL, "script reply: bytes after the end");
}

static bool read_result(struct reader *in, const struct script_limits *l, struct script_trace *out, struct error *err)
{
    uint64_t size = reader_u64(in);
    const uint8_t *bytes = size <= reader_left(in) ? reader_bytes(in, size) : NULL;
    if (!bytes)
        return error_set(err, ERROR_TRUNCATED, NULL, "script reply: cut off");
    struct reader value = reader_of(bytes, size);
    out->meta = value_read(&value, err);
    if (!out->meta || reader_left(&value))
        return out->meta ? error_set(err, ERROR_SYNTAX, NULL, "script reply: bytes after the value") : false;
    return read_graphs(in, l, out, err);
}

/* What the program's own child garbles says nothing of the script; what a script can bring about (script: names and texts of its
 * own; limit: too large) does. */
static bool read_reply(const struct buffer *reply, const struct script_limits *l, struct script_trace *out, struct error *err)
{
    struct reader in = reader_of(reply->bytes, reply->size);
    uint32_t magic = reader_u32(&in), code = reader_u32(&in);
    struct error fault = { .code = ERROR_NONE };
    if (!in.ok || magic != MAGIC)
        return error_set(err, ERROR_FAULT, NULL, "script reply: not a reply");
    if (code)
        return read_error(&in, code, err);
    if (read_result(&in, l, out, &fault))
        return true;
    if (fault.code != ERROR_LIMIT && fault.code != ERROR_SCRIPT)
        fault.code = ERROR_FAULT;
    if (err)
        *err = fault;
    return false;
}

bool script_call(const struct script_bundle *bundle, const char *verb, json_t *args, const struct script_limits *limits,
                 struct script_trace *out, struct error *err)
{
    static const struct script_limits none;
    const struct script_limits *l = limits ? limits : &none;
    char hex[65];
    struct buffer request = { 0 }, reply = { 0 };
    pid_t pid = -1;
    int fd = -1, status = 0;
    *out = (struct script_trace){ 0 };
    bool ok = write_request(&request, bundle, verb, args ? args : json_object(), l, err) && spawn(l, &pid, &fd, err);
    if (ok) {
        enum outcome outcome = exchange(fd, &request, &reply, now() + (l->seconds > 0 ? l->seconds : 10));
        close(fd);
        if (outcome != ENDED)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        bool whole = outcome == ENDED && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        ok = whole ? read_reply(&reply, l, out, err) : told(outcome, status, err);
    }
    buffer_free(&request);
    buffer_free(&reply);
    if (!ok) {
        script_trace_free(out);
        if (err && !err->place[0]) /* as after a tail call, which leaves no line */
            error_at(err, "%s.lua@%.8s", bundle->files[0].name, script_hash(&bundle->files[0], hex));
    }
    return ok;
}

void script_trace_free(struct script_trace *t)
{
    for (size_t i = 0; i < t->graph_count; i++)
        graph_free(t->graphs[i]);
    free(t->graphs);
    json_decref(t->meta);
    *t = (struct script_trace){ 0 };
}
