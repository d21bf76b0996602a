#include "runtime/doc/schema.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/decimal.h"
#include "native/base/hex.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/cid.h"
#include "runtime/doc/did.h"
#include "runtime/doc/envelope.h"
#include "runtime/doc/verified.h"

enum { NAME = 64 };

/* Levenshtein's distance, with names cut at NAME. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME + 1], columns = strnlen(b, NAME);

    for (size_t j = 0; j <= columns; j++)
        row[j] = j;
    for (size_t i = 0; i < NAME && a[i]; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t j = 0; j < columns; j++) {
            size_t best = diagonal + (a[i] != b[j]);

            diagonal = row[j + 1];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j + 1] = best < diagonal + 1 ? best : diagonal + 1;
        }
    }
    return row[columns];
}

const char *schema_nearest(const char *name, const char *const *known)
{
    const char *nearest = NULL;
    size_t best = strlen(name) / 2 + 1 < 4 ? strlen(name) / 2 + 1 : 4;

    for (; *known; known++) {
        size_t far = distance(name, *known);

        if (far < best) {
            best = far;
            nearest = *known;
        }
    }
    return nearest;
}

static bool wrong_type(const char *expected, struct error *err)
{
    return error_set(err, ERROR_TYPE, NULL, "%s is expected", expected);
}

static bool check_integer(const struct schema_field *field, const json_t *value, struct error *err)
{
    json_int_t n = json_integer_value(value);
    int64_t most = field->most ? field->most : CANONICAL_INTEGER;

    if (!json_is_integer(value))
        return wrong_type("an integer", err);
    if (n < field->least || n > most)
        return error_set(err, ERROR_RANGE, NULL, "%lld is not between %lld and %lld", (long long)n, (long long)field->least,
                         (long long)most);
    return true;
}

static bool check_text(const struct schema_field *field, const json_t *value, struct error *err)
{
    size_t length = json_string_length(value), most = field->most ? (size_t)field->most : CANONICAL_SIZE;

    if (!json_is_string(value))
        return wrong_type("text", err);
    if (length < (size_t)field->least || length > most)
        return error_set(err, ERROR_RANGE, NULL, "%zu bytes of text, %lld to %zu are allowed", length, (long long)field->least,
                         most);
    if (memchr(json_string_value(value), 0, length))
        return error_set(err, ERROR_SYNTAX, NULL, "text with a zero byte");
    return true;
}

static bool check_choice(const struct schema_field *field, const json_t *value, struct error *err)
{
    char known[200] = "";
    const char *text = json_string_value(value);

    if (!text)
        return wrong_type("text", err);
    for (const char *const *choice = field->choices; *choice; choice++) {
        if (strcmp(*choice, text) == 0)
            return true;
        strncat(known, " ", sizeof known - strlen(known) - 1);
        strncat(known, *choice, sizeof known - strlen(known) - 1);
    }
    return error_set(err, ERROR_UNKNOWN, NULL, "unknown %s \"%.60s\"; known:%s",
                     field->name && field->name[0] ? field->name : "choice", text, known);
}

static bool check_decimal(const struct schema_field *field, const char *text, struct error *err)
{
    int64_t value;

    if (!decimal_parse(text, &value))
        return error_set(err, ERROR_SYNTAX, "write it as \"0.5\" or \"2\"",
                         "\"%.40s\" is not a decimal number of at most nine places", text);
    if (value < field->least || (field->most && value > field->most))
        return error_set(err, ERROR_RANGE, NULL, "%s is not between %.9g and %.9g", text, (double)field->least / DECIMAL_ONE,
                         (double)(field->most ? field->most : INT64_MAX) / DECIMAL_ONE);
    return true;
}

/* Kinds that are a text of a certain form. */
static bool check_form(const struct schema_field *field, const json_t *value, struct verified *known, struct error *err)
{
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    size_t size = field->kind == SCHEMA_FLOAT ? 4 : (size_t)field->most;
    uint8_t bytes[96];
    char exact[ADDRESS_TEXT];
    struct hash hash;
    struct public_key key;
    struct address address;
    struct envelope_signer signer;
    unsigned __int128 amount;

    if (!text || strlen(text) != length)
        return wrong_type("text", err);
    switch (field->kind) {
    case SCHEMA_CID:
        return cid_parse(text, &hash, err);
    case SCHEMA_DID:
        return (known && did_parse_known(text, &key) && verified_has_key(known, &key)) || did_parse_strict(text, &key, err);
    case SCHEMA_KEYID:
        return keyid_parse(text, &signer, err);
    case SCHEMA_HEX:
    case SCHEMA_FLOAT:
        return (size <= sizeof bytes && hex_decode(text, length, bytes, size)) ||
               error_set(err, ERROR_SYNTAX, NULL, "%zu bytes in lower-case hex are expected", size);
    case SCHEMA_ADDRESS:
        return (address_parse(text, &address) && strcmp(address_text(address, exact), text) == 0) ||
               error_set(err, ERROR_SYNTAX, "0x and 40 digits with the capitals of EIP-55", "\"%.60s\" is not an address", text);
    case SCHEMA_AMOUNT:
        return amount_parse(text, &amount) ||
               error_set(err, ERROR_SYNTAX, "write it as \"1000\"", "\"%.50s\" is not a whole amount in text", text);
    default:
        return check_decimal(field, text, err);
    }
}

static bool check_value(const struct schema_field *field, const json_t *value, struct verified *known, struct error *err);

static bool check_list(const struct schema_field *field, const json_t *value, struct verified *known, struct error *err)
{
    size_t count = json_array_size(value), most = field->most ? (size_t)field->most : SIZE_MAX;

    if (!json_is_array(value))
        return wrong_type(json_is_object(value) && !json_object_size(value) ? "a list with something in it" : "a list", err);
    if (count < (size_t)field->least)
        return error_set(err, ERROR_RANGE, NULL, "%zu entries, at least %lld are needed", count, (long long)field->least);
    if (count > most)
        return error_set(err, ERROR_RANGE, NULL, "%zu entries, at most %zu are allowed", count, most);
    for (size_t i = 0; i < count; i++)
        if (!check_value(field->item, json_array_get(value, i), known, err))
            return error_at(err, "[%zu]", i);
    return true;
}

static bool check_value(const struct schema_field *field, const json_t *value, struct verified *known, struct error *err)
{
    if (json_is_null(value) && field->nullable)
        return true;
    switch (field->kind) {
    case SCHEMA_INTEGER:
        return check_integer(field, value, err);
    case SCHEMA_FLAG:
        return json_is_boolean(value) || wrong_type("true or false", err);
    case SCHEMA_TEXT:
        return check_text(field, value, err);
    case SCHEMA_CHOICE:
        return check_choice(field, value, err);
    case SCHEMA_OBJECT:
        if (!json_is_object(value))
            return wrong_type("an object", err);
        return !field->of || schema_check_known(field->of, value, known, err);
    case SCHEMA_LIST:
        return check_list(field, value, known, err);
    case SCHEMA_ANY:
        return true;
    default:
        return check_form(field, value, known, err);
    }
}

static bool known_name(const struct schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->count; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return true;
    return false;
}

static bool unknown_name(const struct schema *schema, const char *name, struct error *err)
{
    const char *known[NAME + 1] = { 0 };
    char hint[240] = "known:";

    for (size_t i = 0; i < schema->count && i < NAME; i++)
        known[i] = schema->fields[i].name;

    const char *nearest = schema_nearest(name, known);

    if (nearest)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", nearest);
    for (size_t i = 0; !nearest && i < schema->count && i < NAME; i++) {
        size_t at = strlen(hint);

        snprintf(hint + at, sizeof hint - at, " %s", known[i]);
    }
    return error_set(err, ERROR_UNKNOWN, hint, "unknown field \"%.60s\"", name);
}

/* "a.b[2].c": names join with points, indices do not. */
static bool below(const char *name, struct error *err)
{
    char inner[sizeof err->place];

    if (!err)
        return false;
    memcpy(inner, err->place, sizeof inner);
    snprintf(err->place, sizeof err->place, "%s%s%s", name, inner[0] && inner[0] != '[' ? "." : "", inner);
    return false;
}

bool schema_check_known(const struct schema *schema, const json_t *object, struct verified *known, struct error *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return wrong_type("an object", err);
    json_object_foreach((json_t *)object, name, value) if (!known_name(schema, name)) return unknown_name(schema, name, err);
    for (size_t i = 0; i < schema->count; i++) {
        const struct schema_field *field = &schema->fields[i];

        value = json_object_get(object, field->name);
        if (!value && field->optional)
            continue;
        if (!value) {
            error_set(err, ERROR_MISSING, NULL, "this field is missing");
            return below(field->name, err);
        }
        if (!check_value(field, value, known, err))
            return below(field->name, err);
    }
    return true;
}

bool schema_check(const struct schema *schema, const json_t *object, struct error *err)
{
    return schema_check_known(schema, object, NULL, err);
}

void schema_complete(const struct schema *schema, json_t *object)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct schema_field *field = &schema->fields[i];
        json_t *value = json_object_get(object, field->name);

        if (!value && field->fallback) {
            value = json_loads(field->fallback, JSON_DECODE_ANY, NULL);
            json_object_set_new(object, field->name, value);
        }
        if (field->kind == SCHEMA_OBJECT && field->of && json_is_object(value))
            schema_complete(field->of, value);
        if (field->kind == SCHEMA_LIST && field->item && field->item->of)
            for (size_t j = 0; j < json_array_size(value); j++)
                if (json_is_object(json_array_get(value, j)))
                    schema_complete(field->item->of, json_array_get(value, j));
    }
}
