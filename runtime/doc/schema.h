/* schema.h - what a JSON object may hold, as a table.
 *
 *     static const struct schema_field vote_fields[] = {
 *         FIELD("phase", CHOICE, .choices = phases),
 *         FIELD("round", INTEGER, .most = UINT32_MAX),
 *     };
 *     static const struct schema vote = SCHEMA(vote_fields);
 *
 * The first field that does not fit is told with its path, what is allowed, and for an unknown name the nearest known one:
 * `trust.tier: unknown tier "opne"; known: open known`, `quorum: unknown field "round_sm"; did you mean "round_ms"?`
 */
#ifndef RONDO_DOC_SCHEMA_H
#define RONDO_DOC_SCHEMA_H

#include <jansson.h>

#include "native/base/error.h"

enum schema_kind {
    SCHEMA_INTEGER, /* least <= n <= most                                             */
    SCHEMA_FLAG,    /* true or false                                                  */
    SCHEMA_TEXT,    /* UTF-8; least <= bytes <= most                                  */
    SCHEMA_CHOICE,  /* one of `choices`                                               */
    SCHEMA_CID,     /* text of a content id                                           */
    SCHEMA_HEX,     /* lower-case digits of exactly `most` bytes                      */
    SCHEMA_FLOAT,   /* 8 hex digits: the bits of a binary32 value                     */
    SCHEMA_DID,     /* did:tenzro:machine:...                                         */
    SCHEMA_ADDRESS, /* 0x..., EIP-55                                                  */
    SCHEMA_KEYID,   /* a DID or eip155:0x...                                          */
    SCHEMA_AMOUNT,  /* text of a whole number, decimal.h                              */
    SCHEMA_DECIMAL, /* text of a number of at most nine places; least, most: billionths */
    SCHEMA_OBJECT,  /* `of` says its fields; NULL: any object                         */
    SCHEMA_LIST,    /* every entry fits `item`; least <= entries <= most              */
    SCHEMA_ANY,
};

struct schema_field {
    const char *name;
    enum schema_kind kind;
    int64_t least, most;             /* most 0: no upper limit but the kind's own            */
    const char *const *choices;      /* up to a NULL                                         */
    const struct schema *of;         /* of an object                                         */
    const struct schema_field *item; /* of a list; its name is not used                      */
    const char *fallback;            /* JSON text put in by schema_complete when it is absent */
    bool optional, nullable;
};

struct verified;

struct schema {
    const struct schema_field *fields;
    size_t count;
};

#define FIELD(name_, kind_, ...)                                                                                                 \
    {                                                                                                                            \
        .name = name_, .kind = SCHEMA_##kind_, ##__VA_ARGS__                                                                     \
    }
#define SCHEMA(table)                                                                                                            \
    {                                                                                                                            \
        table, sizeof(table) / sizeof(table)[0]                                                                                  \
    }

/* Whether the object fits. Errors carry the path as place: missing, unknown, type, range, syntax. */
bool schema_check(const struct schema *schema, const json_t *object, struct error *err);

/* The same; a DID whose key `known` (verified.h; may be NULL) holds is not looked at as a point again. */
bool schema_check_known(const struct schema *schema, const json_t *object, struct verified *known, struct error *err);

/* Puts in every absent field that has a fallback, objects within objects too. Does not check. */
void schema_complete(const struct schema *schema, json_t *object);

/* The name of `known` (up to a NULL) nearest to `name`, or NULL when none is near. */
const char *schema_nearest(const char *name, const char *const *known);

#endif
