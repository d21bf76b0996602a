/* What a client sends to a node's HTTP server, any bytes: each connection ends, and what was answered begins as HTTP does. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "native/base/json.h"
#include "runtime/net/http_server.h"
#include "tests/fuzz/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { BODY_LIMIT = 4096, INPUT_LIMIT = 1 << 16, TURNS = 1000 };

static void on_round(struct http_request *request, void *context)
{
    const char *name = http_request_query(request, "name");
    struct error err;
    uint64_t from;

    (void)context;
    if (strlen(http_request_parameter(request, "run")) + strlen(http_request_parameter(request, "round")) >
        strlen(http_request_path(request)))
        abort();
    if (!http_request_query_number(request, "from", 7, &from, &err))
        http_answer_problem(request, 0, &err);
    else if (name)
        http_answer_refusal(request, 403, ERROR_REFUSED, "another name", "not for %.64s", name);
    else
        http_answer_empty(request, 204);
}

static void on_document(struct http_request *request, void *context)
{
    size_t size;
    const uint8_t *body = http_request_body(request, &size);
    struct error err;
    json_t *value = json_read((const char *)body, size, BODY_LIMIT, &err);

    (void)context;
    if (size > BODY_LIMIT)
        abort();
    if (value)
        http_answer_json(request, 200, value);
    else
        http_answer_problem(request, 0, &err);
    json_decref(value);
}

static const struct http_route routes[] = {
    { "GET", "/v1/runs/{run}/rounds/{round}", 0, NULL, on_round },
    { "POST", "/v1/documents", BODY_LIMIT, NULL, on_document },
    { 0 },
};

static struct http_server *server_once(uv_loop_t *loop)
{
    static struct http_server *server;
    static struct http_limits limits;
    const struct http_server_options options = { .routes = routes, .limits = &limits };

    if (!server) {
        limits = http_limits_default;
        limits.requests_per_second = limits.burst = 1u << 30;
        uv_loop_init(loop);
        server = http_server_new(loop, &options, NULL);
        if (!server)
            abort();
    }
    return server;
}

/* A client that goes away at once, without waiting for anything (and without a port that stays taken for a minute). */
static int connected(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct linger reset = { .l_onoff = 1 };
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (client < 0 || setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) ||
        connect(client, (struct sockaddr *)&address, sizeof address))
        abort();
    return client;
}

/* The status, and the code of a problem; what the library refuses by itself has no body of ours, and no answer is its last word. */
static void tell_answer(const char *answer)
{
    const char *status = strchr(answer, ' '), *code = strstr(answer, "\"code\":\"");
    struct error err = { .code = answer[0] ? ERROR_SYNTAX : ERROR_TRUNCATED };

    for (int i = ERROR_NONE + 1; code && i < ERROR_CODES; i++) {
        const char *name = error_name((enum error_code)i);

        if (strncmp(code + 8, name, strlen(name)) == 0 && code[8 + strlen(name)] == '"')
            err.code = (enum error_code)i;
    }
    fuzz_tell(code ? "http" : "http, by library", status && status[1] == '2', &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static uv_loop_t loop;
    struct http_server *server = server_once(&loop);
    char answer[4096];

    if (size > INPUT_LIMIT)
        return 0;

    int client = connected(http_server_port(server));

    for (int i = 0; i < TURNS && !http_server_connections(server); i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    if (send(client, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        shutdown(client, SHUT_WR);
    for (int i = 0; i < TURNS && http_server_connections(server); i++)
        uv_run(&loop, UV_RUN_NOWAIT);

    ssize_t got = recv(client, answer, sizeof answer - 1, MSG_DONTWAIT);

    if (got >= 5 && memcmp(answer, "HTTP/", 5) != 0)
        abort();
    answer[got > 0 ? got : 0] = '\0';
    tell_answer(answer);
    close(client);
    for (int i = 0; i < TURNS && http_server_connections(server); i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    if (http_server_connections(server))
        abort();
    return 0;
}
