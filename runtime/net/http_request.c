#include <arpa/inet.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/net/http_internal.h"

struct http_request *http_request_new(struct http_server *server, struct http_connection *connection,
                                      struct MHD_Connection *handle, const char *path, const char *method)
{
    struct http_request *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->server = server;
    r->connection = connection;
    r->handle = handle;
    r->method = method; /* lives in the library's memory as long as the request */
    r->path = strdup(path);
    r->segments = strdup(path);
    if (!r->path || !r->segments)
        abort();
    r->limit_ms = server->limits.request_ms;
    connection->request = r;
    connection->since = uv_now(server->loop);
    return r;
}

void http_request_free(struct http_request *r)
{
    struct http_connection *connection = r->connection;

    if (r->deferred && !r->response && r->gone)
        r->gone(r->gone_context);
    if (r->stream)
        event_stream_gone(r->stream);
    if (r->response)
        mhd()->destroy_response(r->response);
    r->server->body_bytes -= r->body.size;
    buffer_free(&r->body);
    free(r->path);
    free(r->segments);
    connection->request = NULL;
    connection->served = true;
    connection->since = uv_now(r->server->loop);
    free(r);
}

/* ---- routing ---- */

/* Fills `parameters` with pointers into `segments`, whose slashes it replaces by zeros; false leaves `segments` changed. */
static bool pattern_fits(const char *pattern, char *segments, const char *parameters[HTTP_PARAMETERS])
{
    unsigned count = 0;

    while (*pattern) {
        if (*pattern == '{') {
            char *end = segments + strcspn(segments, "/");

            if (end == segments || count == HTTP_PARAMETERS)
                return false;
            parameters[count++] = segments;
            pattern += strcspn(pattern, "}") + 1;
            if (*end != *pattern)
                return false;
            if (!*end)
                return true;
            *end = '\0';
            segments = end + 1;
            pattern++;
        } else if (*pattern++ != *segments++) {
            return false;
        }
    }
    return !*segments;
}

static const char *method_of_route(const char *method)
{
    return strcmp(method, "HEAD") == 0 ? "GET" : method;
}

/* The route of path and method; NULL with *known telling whether the path has another method. */
static const struct http_route *route_find(struct http_request *r, bool *known)
{
    size_t size = strlen(r->path) + 1;

    *known = false;
    for (const struct http_route *route = r->server->routes; route->method; route++) {
        memcpy(r->segments, r->path, size);
        if (!pattern_fits(route->pattern, r->segments, r->parameters))
            continue;
        if (strcmp(route->method, method_of_route(r->method)) == 0)
            return route;
        *known = true;
    }
    return NULL;
}

/* ---- limits ---- */

enum { BANNED_PER_SECOND = 20, BANNED_BURST = 40 };

/* A proof made for another body than the one that came is none; of a body still on its way only the last look tells. */
static bool key_fits_body(const struct http_request *r, const struct request_key *key)
{
    if (!key->has_body)
        return r->body.size == 0;
    return r->body.size < r->expected || r->body.size == 0 || hash_equal(hash_block(r->body.bytes, r->body.size), key->body);
}

bool http_request_key(struct http_request *r, struct public_key *key)
{
    const struct http_server *server = r->server;
    struct http_connection *c = r->connection;
    const char *value = server->knows && !r->key_asked ? http_request_header(r, "Authorization") : NULL;
    struct request_key claim;

    if (!r->key_asked) {
        int64_t now = request_key_now();

        r->key_asked = true;
        c->proven = value && request_key_parse(value, &claim) && server->knows(&claim.key, server->context) &&
                    (request_key_verify(value, r->method, server->url, r->path, now) ||
                     (server->origin[0] && request_key_verify(value, r->method, server->origin, r->path, now)));
        if (c->proven)
            c->key = claim.key;
    }
    *key = c->key;
    return c->proven;
}

/* Whom a refusal costs: the key only when it signed this very body, so that nobody is framed with the header of another. */
static struct sender *sender_to_blame(struct http_request *r)
{
    const char *value = http_request_header(r, "Authorization");
    uint64_t now = uv_now(r->server->loop);
    struct request_key claim;
    struct public_key key;

    if (value && http_request_key(r, &key) && request_key_parse(value, &claim) && key_fits_body(r, &claim))
        return sender_of_key(r->server->senders, &key, now);
    return sender_of_address(r->server->senders, r->connection->address, now);
}

/* Answers and returns false when this sender has asked too much, or is banned: then it may read a little, and send nothing. Only then is it
 * worth knowing whether the request proves a key. */
static bool sender_admit(struct http_request *r)
{
    const struct http_limits *limits = &r->server->limits;
    uint64_t now = uv_now(r->server->loop);
    struct sender *s = sender_of_address(r->server->senders, r->connection->address, now);
    bool banned = sender_banned(s, now), sends = strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0;
    struct public_key key;

    if (!(banned && sends) &&
        sender_allows(s, banned ? BANNED_PER_SECOND : limits->requests_per_second, banned ? BANNED_BURST : limits->burst, now))
        return true;
    if (http_request_key(r, &key)) {
        s = sender_of_key(r->server->senders, &key, now);
        banned = sender_banned(s, now);
        if (!banned && sender_allows(s, limits->requests_per_second, limits->burst, now))
            return true;
    }
    if (banned)
        http_answer_refusal(r, 429, ERROR_BANNED, "ask again in some minutes", "%s has sent too much that nobody honest sends",
                            r->connection->address);
    else
        http_answer_refusal(r, 429, ERROR_LIMIT, "ask less often", "too many requests from %s", r->connection->address);
    return false;
}

static bool length_read(const char *text, size_t *length)
{
    size_t value = 0;

    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > SIZE_MAX / 10 - 1)
            return false;
        value = value * 10 + (size_t)(*text - '0');
    }
    *length = value;
    return true;
}

/* Answers and returns false when the body that is announced cannot be taken. */
static bool body_admit(struct http_request *r)
{
    const char *length = http_request_header(r, "Content-Length");
    size_t size = 0;

    if (http_request_header(r, "Transfer-Encoding")) {
        http_answer_refusal(r, 411, ERROR_MISSING, "send the body with a Content-Length", "the length of the body is not told");
        return false;
    }
    if (length && !length_read(length, &size)) {
        http_answer_refusal(r, 400, ERROR_SYNTAX, NULL, "Content-Length is not a number");
        return false;
    }
    if (size > r->route->body_limit) {
        http_answer_refusal(r, 413, ERROR_LIMIT, NULL, "the body has %zu bytes, at most %zu are taken here", size,
                            r->route->body_limit);
        return false;
    }
    r->expected = size;
    return true;
}

/* ---- the life of a request ---- */

void http_request_begin(struct http_request *r)
{
    bool known;

    if (!sender_admit(r))
        return;
    r->route = route_find(r, &known);
    if (!r->route) {
        http_answer_refusal(r, known ? 405 : 404, ERROR_UNKNOWN, NULL, known ? "%s is not offered for %s" : "there is no %s %s",
                            r->method, r->path);
        return;
    }
    if (body_admit(r) && r->route->admit)
        r->route->admit(r, r->server->context);
    assert(!r->deferred && !r->stream);
}

bool http_request_take(struct http_request *r, const char *bytes, size_t size)
{
    if (r->response)
        return true;
    if (!r->route || size > r->expected - r->body.size)
        return false;
    /* What is held counts, not what is announced: else a few clients that say nothing more keep all others out. */
    size_t most = r->server->limits.body_bytes, held = r->server->body_bytes + size;
    struct public_key key;

    if (held > most || (held > most / 2 && !http_request_key(r, &key))) {
        http_answer_refusal(r, 503, ERROR_LIMIT, "try again in a moment", "too many bodies are on their way");
        return true;
    }
    r->server->body_bytes += size;
    buffer_add(&r->body, bytes, size);
    return true;
}

void http_request_handle(struct http_request *r)
{
    r->route->handle(r, r->server->context);
    if (!r->response && !r->deferred)
        http_answer_refusal(r, 500, ERROR_FAULT, NULL, "the handler of %s did not answer", r->route->pattern);
}

enum MHD_Result http_request_queue(struct http_request *r)
{
    if (r->status >= 0 && r->status < HTTP_STATUSES)
        r->server->counts.status[r->status]++;
    return mhd()->queue_response(r->handle, (unsigned)r->status, r->response);
}

/* ---- reading ---- */

const char *http_request_method(const struct http_request *r)
{
    return r->method;
}

const char *http_request_path(const struct http_request *r)
{
    return r->path;
}

const char *http_request_address(const struct http_request *r)
{
    return r->connection->address;
}

const char *http_request_parameter(const struct http_request *r, const char *name)
{
    const char *at = r->route->pattern;
    size_t size = strlen(name);

    for (unsigned i = 0; (at = strchr(at, '{')); i++) {
        if (strncmp(at + 1, name, size) == 0 && at[1 + size] == '}')
            return r->parameters[i];
        at++;
    }
    assert(!"the pattern has no such parameter");
    return NULL;
}

const char *http_request_query(const struct http_request *r, const char *name)
{
    return mhd()->lookup_connection_value(r->handle, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_request_header(const struct http_request *r, const char *name)
{
    return mhd()->lookup_connection_value(r->handle, MHD_HEADER_KIND, name);
}

const uint8_t *http_request_body(const struct http_request *r, size_t *size)
{
    *size = r->body.size;
    return r->body.bytes;
}

bool http_request_query_number(const struct http_request *r, const char *name, uint64_t otherwise, uint64_t *value,
                               struct error *err)
{
    const char *text = http_request_query(r, name);
    size_t number;

    *value = otherwise;
    if (!text)
        return true;
    if (!length_read(text, &number)) {
        error_set(err, ERROR_SYNTAX, "give a whole number", "not a number");
        return error_at(err, "%s", name);
    }
    *value = number;
    return true;
}

void http_request_defer(struct http_request *r, unsigned limit_ms, void (*gone)(void *context), void *context)
{
    assert(!r->response && !r->deferred);
    r->deferred = true;
    r->gone = gone;
    r->gone_context = context;
    if (limit_ms)
        r->limit_ms = limit_ms;
}

/* ---- answering ---- */

void http_answer_response(struct http_request *r, int status, const char *type, struct MHD_Response *response)
{
    assert(!r->response);
    if (!response)
        abort();
    if (type)
        mhd()->add_response_header(response, "Content-Type", type);
    for (unsigned i = 0; i < r->header_count; i++)
        mhd()->add_response_header(response, r->headers[i].name, r->headers[i].value);
    mhd()->add_response_header(response, "X-Content-Type-Options", "nosniff");
    r->response = response;
    r->status = status;
    if (r->suspended) {
        r->suspended = false;
        r->limit_ms = (unsigned)(uv_now(r->server->loop) - r->connection->since) + r->server->limits.request_ms;
        http_connection_resume(r->server, r->handle);
    }
}

void http_answer_header(struct http_request *r, const char *name, const char *value)
{
    assert(r->header_count < HTTP_ANSWER_HEADERS);
    snprintf(r->headers[r->header_count].name, sizeof r->headers[0].name, "%s", name);
    snprintf(r->headers[r->header_count].value, sizeof r->headers[0].value, "%s", value);
    r->header_count++;
}

void http_answer_bytes(struct http_request *r, int status, const char *type, const void *bytes, size_t size)
{
    http_answer_response(r, status, type, mhd()->create_response_from_buffer(size, (void *)bytes, MHD_RESPMEM_MUST_COPY));
}

void http_answer_buffer(struct http_request *r, int status, const char *type, struct buffer *body)
{
    if (!body->bytes) {
        http_answer_bytes(r, status, type, "", 0);
        return;
    }
    http_answer_response(r, status, type, mhd()->create_response_from_buffer(body->size, body->bytes, MHD_RESPMEM_MUST_FREE));
    *body = (struct buffer){ 0 };
}

void http_answer_json(struct http_request *r, int status, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    if (!text)
        abort();
    http_answer_response(r, status, "application/json",
                         mhd()->create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE));
}

void http_answer_empty(struct http_request *r, int status)
{
    http_answer_bytes(r, status, NULL, "", 0);
}

void http_answer_file(struct http_request *r, int status, const char *type, int fd, uint64_t size)
{
    http_answer_response(r, status, type, mhd()->create_response_from_fd64(size, fd));
}

int http_status_of(enum error_code code)
{
    switch (code) {
    case ERROR_MISSING:
        return 404;
    case ERROR_DUPLICATE:
    case ERROR_CONFLICT:
    case ERROR_STALE:
        return 409;
    case ERROR_LIMIT:
        return 413;
    case ERROR_REFUSED:
    case ERROR_SIGNATURE:
        return 403;
    case ERROR_UNSUPPORTED:
        return 501;
    case ERROR_TIMEOUT:
        return 504;
    default:
        return error_status(code) == 4 ? 500 : 400;
    }
}

static const char *status_title(int status)
{
    const char *title = mhd()->get_reason_phrase_for((unsigned)status);

    return title ? title : "Error";
}

void http_answer_problem(struct http_request *r, int status, const struct error *err)
{
    char detail[sizeof err->place + sizeof err->message + sizeof err->hint + 8];

    if (!status)
        status = http_status_of(err->code);
    r->server->counts.problem[err->code]++;
    if (r->server->knows && status < 500 && sender_cost(err->code))
        sender_blame(sender_to_blame(r), sender_cost(err->code), uv_now(r->server->loop));

    json_t *problem = json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", "about:blank", "title", status_title(status), "status",
                                status, "code", error_name(err->code), "detail", "");

    error_text(err, detail, sizeof detail);
    /* Bytes of the request may stand in the detail: what is not UTF-8 is left out rather than refused. */
    json_t *text = json_string(detail);

    if (!problem)
        abort();
    if (text)
        json_object_set_new(problem, "detail", text);

    char *bytes = json_dumps(problem, JSON_COMPACT);

    json_decref(problem);
    if (!bytes)
        abort();
    http_answer_response(r, status, "application/problem+json",
                         mhd()->create_response_from_buffer(strlen(bytes), bytes, MHD_RESPMEM_MUST_FREE));
}

void http_answer_refusal(struct http_request *r, int status, enum error_code code, const char *hint, const char *format, ...)
{
    struct error err;
    char text[sizeof err.message];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_set(&err, code, hint, "%s", text);
    http_answer_problem(r, status, &err);
}
