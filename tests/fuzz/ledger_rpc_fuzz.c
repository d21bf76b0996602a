/* ledger_rpc_fuzz.c - requests to the ledger, and answers to its client, as any bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "native/base/json.h"
#include "runtime/ledger/server.h"
#include "runtime/ledger/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct ledger_local *open_once(void)
{
    static struct ledger_local *ledger;
    char folder[] = "/tmp/rondo-fuzz-XXXXXX", path[64];
    struct ledger_genesis genesis = { .chain = 31337, .block_ms = 100 };

    if (ledger || !mkdtemp(folder))
        return ledger;
    snprintf(path, sizeof path, "%s/ledger.db", folder);
    ledger = ledger_local_open(path, &genesis, NULL);
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct ledger_local *ledger = open_once();
    struct buffer response = { 0 };
    json_t *json = json_read((const char *)bytes, size, LEDGER_REQUEST_LIMIT, NULL);

    if (!ledger)
        abort();
    ledger_answer(ledger, bytes, size, &response);
    if (json)
        read_answer(json);
    json_decref(json);
    json = json_read((const char *)response.bytes, response.size, response.size, NULL);
    if (!json)
        abort(); /* every answer is JSON */
    json_decref(json);
    buffer_free(&response);
    return 0;
}
