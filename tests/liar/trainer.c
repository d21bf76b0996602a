/* What a lying trainer says it has trained. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/codec/payload.h"
#include "runtime/crypto/merkle.h"
#include "runtime/role/course.h"
#include "runtime/round/trainer.h"
#include "runtime/store/object.h"
#include "tests/liar/liar.h"

enum { PAYLOAD_MOST = 64 << 20 };

/* The contribution's payload, changed, takes the old one's place; the body's root is told as it is. */
static void change_payload(json_t *contribution, void (*change)(struct buffer *payload, size_t body))
{
    struct buffer bytes = { 0 };
    struct payload_header header;
    struct error err = { 0 };
    struct hash id;
    char cid[CID_TEXT], hex[HASH_TEXT];
    size_t body = 0;

    if (!cid_parse(document_text(contribution, "payload"), &id, &err) ||
        !object_get(&liar_node()->blocks, id, PAYLOAD_MEDIA, PAYLOAD_MOST, &bytes, &err) ||
        !payload_read_header(bytes.bytes, bytes.size, &header, &body, &err))
        abort();
    change(&bytes, body);
    if (!object_put(&liar_node()->blocks, PAYLOAD_MEDIA, bytes.bytes, bytes.size, &id, &err))
        abort();
    json_object_set_new(contribution, "payload", json_string(cid_text(id, cid)));
    json_object_set_new(contribution, "payload_bytes", json_integer((json_int_t)bytes.size));
    json_object_set_new(contribution, "body", json_string(hash_hex(merkle_of(bytes.bytes + body, bytes.size - body), hex)));
    buffer_free(&bytes);
}

static void truncate_it(struct buffer *payload, size_t body)
{
    (void)body;
    payload->size -= 7;
}

/* A block begins with its scale. */
static void make_infinite(struct buffer *payload, size_t body)
{
    static const uint8_t infinity[4] = { 0, 0, 0x80, 0x7f };

    memcpy(payload->bytes + body, infinity, sizeof infinity);
}

/* Int4 stands for -7 .. 7: two nibbles of -8. */
static void make_unquantised(struct buffer *payload, size_t body)
{
    payload->bytes[body + 4] = 0x88;
}

/* ---- what others, or the same trainer before, have made ---- */

static bool read_contribution(const char *folder, const char *name, int64_t round, json_t **found)
{
    struct buffer bytes = { 0 };
    struct document document = { 0 };
    struct error err = { 0 };
    char path[4400];
    bool ok;

    snprintf(path, sizeof path, "%s/documents/%s", folder, name);
    ok = file_read(path, 1 << 20, &bytes, &err) &&
         document_read_as(DOCUMENT_CONTRIBUTION, bytes.bytes, bytes.size, &document, &err) && (int64_t)document.round == round;
    if (ok)
        *found = json_incref(document.json);
    document_free(&document);
    buffer_free(&bytes);
    return ok;
}

/* The contribution of a round that lies in a node's folder: of another signer, or of this one. */
static json_t *contribution_in(const char *folder, int64_t round, const char *signer)
{
    struct dirent **names = NULL;
    char path[4400];
    json_t *found = NULL;

    snprintf(path, sizeof path, "%s/documents", folder);
    int count = scandir(path, &names, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        json_t *one = NULL;

        if (!found && read_contribution(folder, names[i]->d_name, round, &one) &&
            (!signer || strcmp(document_text(one, "signer"), signer) == 0))
            found = one;
        else
            json_decref(one);
        free(names[i]);
    }
    free(names);
    return found;
}

/* Brings an object of another node's store into this one's. */
static void take_object(const char *folder, const char *cid)
{
    struct block_store theirs;
    struct buffer bytes = { 0 };
    struct manifest manifest;
    struct error err = { 0 };
    struct hash id;
    char path[4400];

    snprintf(path, sizeof path, "%s/blocks", folder);
    if (!cid_parse(cid, &id, &err) || !block_store_open(path, &theirs, &err) ||
        !object_manifest(&theirs, id, NULL, PAYLOAD_MOST, &manifest, &err) ||
        !object_get(&theirs, id, manifest.media, PAYLOAD_MOST, &bytes, &err) ||
        !object_put(&liar_node()->blocks, manifest.media, bytes.bytes, bytes.size, &id, &err))
        abort();
    manifest_free(&manifest);
    buffer_free(&bytes);
}

/* The other contribution's payload and log under this name, with all numbers as that one told them. */
static void say_the_same(json_t *contribution, json_t *other, const char *folder)
{
    static const char *const fields[] = { "body",          "carry_in", "carry_out", "codec",    "end",   "loss",  "payload",
                                          "payload_bytes", "probes",   "start",     "step_log", "steps", "tokens" };

    take_object(folder, document_text(other, "payload"));
    take_object(folder, document_text(other, "step_log"));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set(contribution, fields[i], json_object_get(other, fields[i]));
}

static void copy_other(json_t *contribution, int64_t round)
{
    const char *folder = getenv("RONDO_LIE_FROM");
    json_t *other = NULL;

    for (int i = 0; i < 600 && folder && !other; i++) {
        other = contribution_in(folder, round, NULL);
        if (!other)
            usleep(50000);
    }
    if (other)
        say_the_same(contribution, other, folder);
    json_decref(other);
}

static void say_last(json_t *contribution, int64_t round)
{
    json_t *last = contribution_in(liar_node()->folder, round - 1, liar_node()->did);

    if (last)
        say_the_same(contribution, last, liar_node()->folder);
    json_decref(last);
}

static void lie(json_t *contribution, int64_t round)
{
    if (liar_tells("truncated"))
        change_payload(contribution, truncate_it);
    else if (liar_tells("non_finite"))
        change_payload(contribution, make_infinite);
    else if (liar_tells("quantised"))
        change_payload(contribution, make_unquantised);
    else if (liar_tells("stale"))
        say_last(contribution, round);
    else if (liar_tells("copied"))
        copy_other(contribution, round);
}

void __real_trainer_step(struct trainer *t, const struct event *event, struct actions *out);
void __wrap_trainer_step(struct trainer *t, const struct event *event, struct actions *out);

void __wrap_trainer_step(struct trainer *t, const struct event *event, struct actions *out)
{
    if (event->kind == EVENT_TRAINED && liar_tells("silent"))
        return;
    if (event->kind == EVENT_TRAINED)
        lie(json_object_get(event->body, "contribution"), json_integer_value(json_object_get(event->body, "round")));
    __real_trainer_step(t, event, out);
    liar_die_at(out);
}
