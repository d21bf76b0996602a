/* ledger_rpc_fuzz.c - requests to the ledger, and answers to its client, as any bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "native/base/json.h"
#include "runtime/ledger/server.h"
#include "runtime/ledger/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Its file has no name any more while it is open, so that nothing is left behind. */
static struct ledger_local *open_new(void)
{
    static const char *const files[] = { "ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.lock" };
    const char *place = getenv("TMPDIR");
    char folder[64], path[96];
    struct ledger_genesis genesis = { .chain = 31337, .block_ms = 100, .test_seed = "fuzz" };

    snprintf(folder, sizeof folder, "%.40s/rondo-fuzz-XXXXXX", place ? place : "/tmp");
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof path, "%s/ledger.db", folder);

    struct ledger_local *ledger = ledger_local_open(path, &genesis, NULL);

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    if (!ledger || rmdir(folder))
        abort();
    return ledger;
}

static void read_answer(const json_t *json)
{
    static struct ledger_event events[LEDGER_EVENTS];
    struct ledger_status status;
    struct ledger_block block;
    struct ledger_escrow escrow;
    struct ledger_account account;
    struct ledger_receipt receipt;
    struct error err;
    size_t count;
    uint64_t next;

    wire_read_status(json, &status, &err);
    wire_read_block(json, &block, &err);
    wire_read_account(json, &account, &err);
    wire_read_receipt(json, &receipt, &err);
    wire_read_events(json, events, &count, &next, &err);
    if (wire_read_escrow(json, &escrow, &err))
        json_decref(wire_escrow(&escrow));
}

static void ask(struct ledger_local *ledger, const void *bytes, size_t size)
{
    struct buffer response = { 0 };
    json_t *json;

    ledger_answer(ledger, bytes, size, &response);
    json = json_read((const char *)response.bytes, response.size, response.size, NULL);
    if (!json)
        abort(); /* every answer is JSON */
    read_answer(json_object_get(json, "result"));
    json_decref(json);
    buffer_free(&response);
}

/* One ledger serves all inputs until one of them gets a transaction into a block: every input meets the same ledger. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct ledger_local *ledger;
    json_t *json = json_read((const char *)bytes, size, LEDGER_REQUEST_LIMIT, NULL);

    if (!ledger)
        ledger = open_new();
    if (json)
        read_answer(json);
    json_decref(json);
    ask(ledger, bytes, size);
    if (ledger_local_waiting(ledger)) {
        struct error err;

        if (!ledger_local_make_block(ledger, 1, &err))
            abort();
        ask(ledger, bytes, size);
        ledger_local_close(ledger);
        ledger = NULL;
    }
    return 0;
}
