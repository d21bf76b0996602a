#include "runtime/round/hardware.h"

#include <string.h>

#include "runtime/attest/attest.h"
#include "runtime/doc/verified.h"
#include "runtime/round/value.h"

/* What was found good is known again: members look at an enrolment many times, and a chain takes a millisecond. */
static bool name_of(const struct rules *rules, const json_t *evidence, const char *did, struct hash *out)
{
    char digest[HASH_TEXT];
    struct hasher h;
    if (!rules->evidence || !value_hash(evidence, "rondo/shown", digest))
        return false;
    verified_name(rules->evidence, &h);
    hash_text(&h, "evidence");
    hash_text(&h, did);
    hash_text(&h, digest);
    *out = hash_end(&h);
    return true;
}

static bool stands(const struct rules *rules, const json_t *evidence, const char *did)
{
    struct attest_machine machine;
    struct hash name;
    const bool named = name_of(rules, evidence, did, &name);
    if (named && verified_has(rules->evidence, name))
        return true;
    if (!rules->roots || !attest_verify(rules->roots, evidence, &machine, NULL) ||
        !attest_is_for(&machine, rules->run, did, NULL))
        return false;
    if (named)
        verified_add(rules->evidence, name);
    return true;
}

const char *hardware_root(const json_t *enrolment, char text[HASH_TEXT])
{
    const json_t *evidence = json_object_get(enrolment, "evidence");
    struct hash root;
    text[0] = 0;
    return evidence && attest_root(evidence, &root) ? hash_hex(root, text) : text;
}

bool hardware_held(const json_t *members, const char *root, const char *did)
{
    json_t *member;
    size_t i;
    if (!*root)
        return false;
    json_array_foreach((json_t *)members, i, member)
    {
        if (value_is(member, "root", root) && !value_is(member, "did", did))
            return true;
    }
    return false;
}

const char *hardware_code(const struct rules *rules, const json_t *members, const json_t *enrolment)
{
    const json_t *evidence = json_object_get(enrolment, "evidence");
    const char *did = value_text(enrolment, "signer");
    char root[HASH_TEXT];
    if (!evidence)
        return rules->attested && !value_is(enrolment, "role", "syncer") ? "unattested" : "ok";
    if (!stands(rules, evidence, did))
        return "evidence";
    if (value_is(enrolment, "role", "syncer")) /* the spec names it, so that a neighbour on its chip cannot have its seat */
        return "ok";
    return hardware_held(members, hardware_root(enrolment, root), did) ? "root" : "ok";
}
