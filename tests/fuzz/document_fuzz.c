/* Documents from outside: envelopes, records, certificates, manifests, states, content ids. Whatever they hold, an error or a
 * value; and what is read as canonical is written again as the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "runtime/doc/canonical.h"
#include "runtime/doc/run_spec.h"
#include "runtime/store/object.h"
#include "runtime/store/state_object.h"
#include "tests/fuzz/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_canonical(const uint8_t *bytes, size_t size)
{
    struct buffer again = { 0 };
    struct error err = { 0 };
    json_t *value = canonical_read(bytes, size, &err);

    fuzz_tell("canonical json", value, &err);
    if (value && (!canonical_write(value, &again, NULL) || again.size != size || memcmp(again.bytes, bytes, size) != 0))
        abort();
    if (value) { /* signatures cannot be guessed: the tables are tried on bare payloads too */
        for (int type = 0; type < DOCUMENT_TYPES; type++)
            fuzz_tell("schemas", schema_check(document_schema((enum document_type)type), value, &err), &err);
        if (json_is_object(value)) {
            run_spec_complete(value);
            fuzz_tell("run spec", run_spec_check(value, &err), &err);
        }
    }
    json_decref(value);
    buffer_free(&again);
}

static void read_document(const uint8_t *bytes, size_t size)
{
    struct document d;
    struct error err = { 0 };

    if (!fuzz_tell("document", document_read(bytes, size, &d, &err), &err))
        return;
    if (d.type == DOCUMENT_RUN) {
        struct run_spec spec;

        if (run_spec_read(&d, &spec, &err))
            run_spec_free(&spec);
    }
    document_free(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct manifest manifest;
    struct state_object state;
    struct error err = { 0 };

    if (size > 1 << 16)
        return 0;
    read_canonical(bytes, size);
    read_document(bytes, size);
    if (fuzz_tell("manifest", manifest_parse(bytes, size, NULL, UINT64_MAX, &manifest, &err), &err))
        manifest_free(&manifest);
    if (fuzz_tell("state", state_decode(bytes, size, &state, &err), &err)) {
        struct hash root;

        if (!root_of_state(state.tensors, state.count, &root, &err))
            abort();
        state_object_free(&state);
    }
    return 0;
}
