/* call_schema.h - what a tool's arguments may be, read from its JSON Schema: what call_automaton.h walks along.
 *
 *     [{ function: { name: "f", parameters: { type: "object", properties: { x: { type: "integer" } }, required: ["x"] } } }]
 *         names  f                        sorted by their bytes
 *         nodes  object { "x": ─┐ }       one a place of the schema
 *                      integer <┘
 *
 * Every text that the nodes allow obeys the schema; not everything that the schema allows is allowed here:
 *   - an object with `properties` has those only; without any, names are free, unless `additionalProperties` is false
 *   - where `type` is absent it is told from `properties` and `items`; where they are absent, too, any value may stand
 *   - numbers have at most 15 digits before the point and behind it and an exponent of two; where they are bounded, no exponent, and a
 *     fraction only where all of its whole numbers' neighbourhood is within
 * Read are: type, enum, const, properties, required, additionalProperties, items, minItems, maxItems, minLength, maxLength, minimum, maximum,
 * exclusiveMinimum, exclusiveMaximum, anyOf, oneOf, allOf of one, $ref into the same parameters. Other words that forbid something
 * (pattern, not, ...) are refused by name; all else is a remark, as JSON Schema has it. Alternatives must begin differently: two kinds
 * of objects in one place are refused.
 * Source: JSON Schema 2020-12, core and validation.
 */
#ifndef RONDO_TEXT_CALL_SCHEMA_H
#define RONDO_TEXT_CALL_SCHEMA_H

#include "native/text/call_texts.h"

enum {
    CALL_DEPTH = 16,      /* of values in each other */
    CALL_PROPERTIES = 64, /* of an object */
    CALL_NODES = 4096,    /* of all tools */
    CALL_TOOLS = 512,
    CALL_DIGITS = 15,
};

enum call_kind { CALL_STRING = 1, CALL_INTEGER = 2, CALL_NUMBER = 4, CALL_OBJECT = 8, CALL_ARRAY = 16 };

struct call_node {
    unsigned kinds;          /* of values that are built up */
    struct call_texts texts; /* values that are one of a list, as JSON: true, null, "red" */
    uint32_t least_chars, most_chars;
    int64_t low, high; /* of a number, both possible */
    bool bounded;      /* else low and high are those of CALL_DIGITS digits */
    const struct call_node *items;
    uint32_t least_items, most_items;
    struct call_texts keys; /* with their quotes */
    const struct call_node **values;
    uint64_t required; /* bit of each key that must be there */
    bool free;         /* any names; then `items` is what they have */
    size_t least;      /* bytes of the shortest value */
};

struct call_schema {
    struct call_texts names;        /* of the tools, without quotes */
    const struct call_node **tools; /* the arguments of each: an object */
    struct call_node **nodes;       /* owned, all of them */
    size_t node_count, text_size;
};

/* `tools` as a conversation has them. Free with call_schema_free, after a failure too. Errors with the place in the list: missing (no tool),
 * type, unknown (a type), unsupported, range (nothing fits), duplicate, limit. */
bool call_schema_read(struct call_schema *s, const json_t *tools, struct error *err);
void call_schema_free(struct call_schema *s);

#endif
