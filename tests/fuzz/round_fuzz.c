/* A member and a trainer that are sent any JSON at all, as if every signature in it were valid; and step logs of any bytes. */
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/round/member.h"
#include "runtime/round/step_log.h"
#include "runtime/round/trainer.h"
#include "runtime/round/value.h"
#include "tests/fuzz/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static json_t *fuzz_sign(void *context, const char *type, json_t *payload, struct error *err)
{
    (void)context;
    (void)err;
    return json_pack("{sssO}", "type", type, "payload", payload);
}

static json_t *fuzz_open(void *context, const json_t *envelope, char type[32], char cid[CID_TEXT], struct error *err)
{
    (void)context;
    (void)err;
    const char *name = value_text(envelope, "type");
    memset(type, 0, 32);
    memcpy(type, name, strnlen(name, 31));
    json_t *payload = json_object_get(envelope, "payload");
    return json_is_object(payload) && value_cid(payload, cid) ? json_incref(payload) : NULL;
}

static json_t *fuzz_spec(void)
{
    return json_pack("{sis{si}s{sisisisis{sssisi}}s{sisisisisosi}s{sssisiss}sis{sss{ssss}si}s{si}}", "rounds", 2, "dataset",
                     "shards", 4, "quorum", "trainers", 1, "round_ms", 10, "close_ms", 1, "drop_after", 3, "grace", "factor", "3",
                     "min_ms", 1, "max_ms", 5, "committee", "size", 2, "threshold", 2, "view_ms", 4, "settle_ms", 1, "panel",
                     json_pack("[{ssss}{ssss}]", "did", "s0", "account", "0x0000000000000000000000000000000000000001", "did",
                               "s1", "account", "0x0000000000000000000000000000000000000002"),
                     "release_threshold", 2, "trust", "spot_check", "1", "challenge_rounds", 2, "answer_rounds", 1, "correction",
                     "refold", "seed_lead", 1, "payment", "per_round", "10", "terms", "trainers", "0.5", "syncers", "0.5",
                     "expiry_rounds", 9, "limits", "trainers", 4);
}

/* Either `member` or `trainer`. */
static void step(struct member *member, struct trainer *trainer, enum event_kind kind, int64_t now, json_t *body)
{
    struct event event = { .kind = kind, .now = now, .body = body };
    struct actions actions = { 0 };
    if (member)
        member_step(member, &event, &actions);
    else
        trainer_step(trainer, &event, &actions);
    actions_free(&actions);
    json_decref(body);
}

static void send(struct member *member, struct trainer *trainer, json_t *message)
{
    step(member, trainer, EVENT_FUNDED, 1, json_pack("{si}", "time", 1));
    for (int64_t now = 2; now < 40; now += 6) {
        step(member, trainer, EVENT_MESSAGE, now, json_incref(message));
        step(member, trainer, EVENT_TIME, now + 5, json_object());
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct signing signing = { .sign = fuzz_sign, .open = fuzz_open };
    struct step_log log;
    struct rules rules;
    struct error err = { 0 };
    if (fuzz_tell("step log", step_log_decode(bytes, size, &log, &err), &err))
        step_log_free(&log);
    json_t *message = json_read((const char *)bytes, size, 1 << 16, &err), *spec = fuzz_spec();
    fuzz_tell("message json", message, &err);
    if (message && rules_read(&rules, spec, "r", NULL)) {
        struct member_start member_start = { .rules = &rules, .did = "s0", .signing = signing };
        struct trainer_start trainer_start = { .rules = &rules, .did = "t0", .signing = signing };
        struct member *member = member_new(&member_start, NULL);
        struct trainer *trainer = trainer_new(&trainer_start, NULL);
        send(member, NULL, message);
        send(NULL, trainer, message);
        member_free(member);
        trainer_free(trainer);
        rules_free(&rules);
    }
    json_decref(spec);
    json_decref(message);
    return 0;
}
