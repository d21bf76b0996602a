#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "native/base/decimal.h"
#include "native/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/ledger/server.h"
#include "runtime/net/tls.h"

static const struct option options[] = {
    { "port", "PORT", "port to listen on (default 8645; 0: any)" },
    { "listen", "ADDRESS", "numeric address to listen on (default 127.0.0.1)" },
    { "tls", NULL, "serve over TLS; the URL it prints ends with the certificate's fingerprint" },
    { "plain", NULL, "plain HTTP to other machines than this one" },
    { "block-ms", "MS", "time between blocks while somebody asks (default 200)" },
    { "chain", "ID", "chain id of a new ledger (default 31337)" },
    { "allocate", "ADDRESS=AMOUNT", "what an account owns at the start of a new ledger; may be repeated" },
    { "ledger-seed", "TEXT", "test seed of the entropy: fit for tests only" },
    { "with-parent", NULL, "end when the process that started this one ends" },
    { NULL, NULL, NULL },
};

struct serving {
    const struct invocation *in;
};

static void ready(void *context, const char *url)
{
    const struct invocation *in = ((struct serving *)context)->in;

    if (in->json)
        printf("{\"event\":\"ready\",\"role\":\"ledger\",\"endpoint\":\"%s\"}\n", url);
    else
        printf("ledger at %s\n", url);
    fflush(stdout);
}

static void trouble(void *context, const struct error *err)
{
    char text[1024];

    (void)context;
    fprintf(stderr, "no block is made: %s\n", error_text(err, text, sizeof text));
}

static bool read_allocations(const struct invocation *in, struct ledger_allocation *list, size_t *count, struct error *err)
{
    *count = 0;
    for (size_t i = 0; i < in->count; i++) {
        const char *value = in->given[i].value, *equals = strchr(value, '=');
        char address[ADDRESS_TEXT];

        if (strcmp(in->given[i].option->name, "allocate") != 0)
            continue;
        snprintf(address, sizeof address, "%.*s", equals ? (int)(equals - value) : 0, value);
        if (!equals || !address_parse(address, &list[*count].account) || !amount_parse(equals + 1, &list[*count].amount))
            return error_set(err, ERROR_USAGE, NULL, "--allocate %s is not ADDRESS=AMOUNT", value);
        ++*count;
    }
    return true;
}

/* HOME/ledger/tls.key: 32 random bytes, made once, so that the fingerprint stays. */
static bool tls_secret(const char *folder, uint8_t secret[TLS_SECRET], struct error *err)
{
    char path[4300];
    struct buffer bytes = { 0 };
    bool ok;

    snprintf(path, sizeof path, "%s/tls.key", folder);
    if (!file_exists(path)) {
        randombytes_buf(secret, TLS_SECRET);
        return file_write(path, secret, TLS_SECRET, 0600, err);
    }
    ok = file_read(path, TLS_SECRET, &bytes, err) &&
         (bytes.size == TLS_SECRET ||
          error_set(err, ERROR_TRUNCATED, "delete it for a new one: then the ledger has another fingerprint", "not 32 bytes"));
    if (ok)
        memcpy(secret, bytes.bytes, TLS_SECRET);
    buffer_free(&bytes);
    return ok || error_at(err, "%s", path);
}

static int ledger_main(struct invocation *in)
{
    struct error err = { 0 };
    struct ledger_allocation allocations[64];
    struct serving serving = { in };
    int64_t port = 8645, block_ms = 200, chain = 31337;
    char folder[4200], path[4300];
    uint8_t secret[TLS_SECRET];
    size_t count;

    if (!option_integer(in, "port", 0, 65535, &port, &err) || !option_integer(in, "block-ms", 1, 3600000, &block_ms, &err) ||
        !option_integer(in, "chain", 1, INT64_C(9007199254740991), &chain, &err) ||
        !read_allocations(in, allocations, &count, &err) ||
        !option_may_listen(option_text(in, "listen", NULL), NULL, option_flag(in, "tls"), option_flag(in, "plain"), &err))
        return command_fail(in, &err);
    if (option_flag(in, "with-parent"))
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    snprintf(folder, sizeof folder, "%.4000s/ledger", in->home);
    snprintf(path, sizeof path, "%s/ledger.db", folder);

    struct ledger_genesis genesis = { .chain = (uint64_t)chain,
                                      .block_ms = (uint32_t)block_ms,
                                      .test_seed = option_text(in, "ledger-seed", NULL),
                                      .allocations = allocations,
                                      .allocation_count = count };
    struct ledger_options serve = { .path = path,
                                    .address = option_text(in, "listen", NULL),
                                    .port = (uint16_t)port,
                                    .tls = option_flag(in, "tls") ? secret : NULL,
                                    .genesis = file_exists(path) && count == 0 ? NULL : &genesis,
                                    .ready = ready,
                                    .trouble = trouble,
                                    .context = &serving };

    if (!file_make_folder(folder, &err) || (serve.tls && !tls_secret(folder, secret, &err)) || !ledger_serve(&serve, &err))
        return command_fail(in, &err);
    return EXIT_OK;
}

const struct command command_ledger = {
    "ledger",
    "",
    "the embedded ledger: accounts, escrows and entropy for one machine or a test network",
    "rondo ledger --allocate 0x5FbDB2315678afecb367f032d93F642f64180aa3=1000000\nrondo ledger --home build/q   (goes on with "
    "what is there)",
    "Durable in HOME/ledger/ledger.db. JSON-RPC 2.0 over HTTP; methods in docs/ledger.md.",
    options,
    ledger_main,
};
