#include "runtime/cli/transfer_bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "native/base/file.h"
#include "runtime/doc/verified.h"
#include "runtime/role/fetch.h"
#include "runtime/role/routes.h"
#include "runtime/store/object.h"

enum { TRANSFER_BLOCKS = 256, TRANSFER_PATIENCE_MS = 60000 };

extern char **environ;

struct transfer {
    char folder[64];
    struct block_store source;
    struct hash object;
    struct manifest manifest;
    pid_t server, nginx;
    char url[128]; /* of the server */
    unsigned port; /* of nginx */
};

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static void remove_folder(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool make_source(struct transfer *t, struct error *err)
{
    const size_t size = (size_t)TRANSFER_BLOCKS * BLOCK_SIZE;
    uint64_t *words = malloc(size), x = 1;
    char path[128];
    bool ok;

    for (size_t i = 0; words && i < size / sizeof *words; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        words[i] = x;
    }
    snprintf(path, sizeof path, "%s/source", t->folder);
    ok = (words || error_set(err, ERROR_MEMORY, NULL, "no memory for %zu bytes", size)) &&
         block_store_open(path, &t->source, err) &&
         object_put(&t->source, "application/octet-stream", words, size, &t->object, err) &&
         object_manifest(&t->source, t->object, NULL, UINT64_MAX, &t->manifest, err);
    free(words);
    return ok;
}

/* --- ours ------------------------------------------------------------------------------------------------------------------ */

static void serve(struct transfer *t, int out)
{
    struct node node = { .known = verified_new(VERIFIED_ENTRIES), .blocks = t->source };
    struct http_server_options options = { .routes = node_routes, .context = &node };
    struct error err;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uv_loop_init(&node.loop);
    node.server = http_server_new(&node.loop, &options, &err);
    if (!node.server)
        _exit(1);

    const char *url = http_server_url(node.server);

    if (write(out, url, strlen(url)) < 0)
        _exit(1);
    close(out);
    uv_run(&node.loop, UV_RUN_DEFAULT);
    _exit(0);
}

static bool start_server(struct transfer *t, struct error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set(err, ERROR_FAULT, NULL, "pipe: %s", strerror(errno));
    t->server = fork();
    if (t->server == 0) {
        close(ends[0]);
        serve(t, ends[1]);
    }
    close(ends[1]);

    ssize_t got = t->server > 0 ? read(ends[0], t->url, sizeof t->url - 1) : -1;

    close(ends[0]);
    return got > 0 || error_set(err, ERROR_FAULT, NULL, "the server of blocks does not start");
}

struct ending {
    bool over;
    struct error err;
};

static void ended(void *context, const struct error *err)
{
    struct ending *e = context;

    e->over = true;
    e->err = err ? *err : (struct error){ 0 };
}

static double fetch_all(struct transfer *t, struct error *err)
{
    struct node *node = calloc(1, sizeof *node);
    struct ending ending = { 0 };
    char path[128];
    double seconds = 0;

    snprintf(path, sizeof path, "%s/fetched", t->folder);
    uv_loop_init(&node->loop);
    node->peers = peer_list_new();
    node->client = http_client_new(&node->loop, NULL, err);

    bool ok = node->client && block_store_open(path, &node->blocks, err) &&
              peer_list_put(node->peers, "did:key:zserver", t->url, uv_now(&node->loop), err);
    const double start = measure_now();

    if (ok)
        fetch_start(node, &(struct fetch_want){ .id = t->object, .object = true }, 1, UINT64_MAX, TRANSFER_PATIENCE_MS, ended,
                    &ending);
    while (ok && !ending.over)
        uv_run(&node->loop, UV_RUN_ONCE);
    if (ok && ending.err.code == ERROR_NONE)
        seconds = measure_now() - start;
    else if (ok)
        *err = ending.err;
    http_client_free(node->client);
    uv_run(&node->loop, UV_RUN_DEFAULT);
    uv_loop_close(&node->loop);
    peer_list_free(node->peers);
    free(node);
    remove_folder(path);
    return seconds;
}

/* --- theirs ---------------------------------------------------------------------------------------------------------------- */

static pid_t spawn(char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int failed;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    failed = posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed ? -1 : pid;
}

/* A port that is free now. */
static unsigned some_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned port = 0;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, size) == 0 && getsockname(fd, (struct sockaddr *)&at, &size) == 0)
        port = ntohs(at.sin_port);
    close(fd);
    return port;
}

static bool write_text(const struct transfer *t, const char *name, const struct buffer *text, struct error *err)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", t->folder, name);
    return file_write(path, text->bytes, text->size, 0644, err);
}

/* What nginx is told is what its manual recommends for large files. */
static bool write_files(struct transfer *t, struct error *err)
{
    struct buffer conf = { 0 }, list = { 0 };
    char cid[CID_TEXT];

    if (geteuid() == 0)
        buffer_printf(&conf, "user root;\n");
    buffer_printf(&conf,
                  "daemon off; worker_processes 1; pid %s/nginx.pid; error_log %s/nginx.log;\n"
                  "events { worker_connections 64; }\n"
                  "http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;\n"
                  "  server { listen 127.0.0.1:%u; root %s; } }\n",
                  t->folder, t->folder, t->port, t->source.folder);
    for (size_t i = 0; i < t->manifest.count; i++) {
        cid_text(t->manifest.chunks[i], cid);
        buffer_printf(&list, "url = http://127.0.0.1:%u/%s\noutput = %s/curled/%s\n", t->port, cid, t->folder, cid);
    }

    bool ok = write_text(t, "nginx.conf", &conf, err) && write_text(t, "list", &list, err);

    buffer_free(&conf);
    buffer_free(&list);
    return ok;
}

static bool start_nginx(struct transfer *t)
{
    char path[128], where[80];
    char *arguments[] = { (char *)"nginx", (char *)"-p", where, (char *)"-c", path, NULL };

    snprintf(where, sizeof where, "%s", t->folder);
    snprintf(path, sizeof path, "%s/nginx.conf", t->folder);
    t->nginx = spawn(arguments);
    if (t->nginx < 0)
        return false;
    for (int i = 0; i < 100; i++) { /* until it listens */
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)t->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool listens = connect(fd, (struct sockaddr *)&at, sizeof at) == 0;

        close(fd);
        if (listens)
            return true;
        nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
    }
    return false;
}

/* 0: it failed. */
static double curl_all(struct transfer *t)
{
    char path[128], list[128];
    char *arguments[] = { (char *)"curl", (char *)"-sf", (char *)"--create-dirs", (char *)"-K", list, NULL };
    const double start = measure_now();
    double seconds = 0;
    int status = -1;

    snprintf(list, sizeof list, "%s/list", t->folder);
    snprintf(path, sizeof path, "%s/curled", t->folder);

    pid_t pid = spawn(arguments);

    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        seconds = measure_now() - start;
    remove_folder(path);
    return seconds;
}

/* --- both ------------------------------------------------------------------------------------------------------------------ */

static bool run_pairs(struct measure *m, struct transfer *t, struct error *err)
{
    const double size = (double)TRANSFER_BLOCKS * BLOCK_SIZE * 1e-9;
    double our[MEASURE_PAIRS], their[MEASURE_PAIRS], ratio[MEASURE_PAIRS];
    struct measure_row row = { .unit = "GB/s", .peer = "curl from nginx" };

    for (size_t i = 0; i <= m->pairs; i++) { /* the first pair warms up */
        const size_t at = i ? i - 1 : 0;
        const bool first = i % 2;
        double ours = first ? fetch_all(t, err) : 0, theirs = curl_all(t);

        if (!first)
            ours = fetch_all(t, err);
        if (ours <= 0)
            return false;
        if (theirs <= 0) {
            measure_absent(m, "network.transfer", row.peer, "curl does not fetch", "apt-get install curl");
            return true;
        }
        our[at] = size / ours;
        their[at] = size / theirs;
        ratio[at] = our[at] / their[at];
    }
    snprintf(row.name, sizeof row.name, "network.transfer");
    row.ours = measure_median(our, m->pairs);
    row.theirs = measure_median(their, m->pairs);
    row.ratio = measure_median(ratio, m->pairs);
    measure_print(m, &row);
    return true;
}

static void end(pid_t pid)
{
    if (pid > 0) {
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
    }
}

bool transfer_bench(struct measure *m, struct error *err)
{
    struct transfer t = { .server = -1, .nginx = -1, .port = some_port() };

    snprintf(t.folder, sizeof t.folder, "%s/rondo-transfer-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(t.folder))
        return error_set(err, ERROR_IO, NULL, "cannot make the folder %s", t.folder);

    bool ok = make_source(&t, err) && write_files(&t, err) && start_server(&t, err);

    if (ok && start_nginx(&t))
        ok = run_pairs(m, &t, err);
    else if (ok)
        measure_absent(m, "network.transfer", "curl from nginx", "nginx does not start", "apt-get install nginx-light");
    end(t.server);
    end(t.nginx);
    manifest_free(&t.manifest);
    remove_folder(t.folder);
    return ok;
}
