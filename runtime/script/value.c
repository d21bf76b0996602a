#include "runtime/script/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_number(struct buffer *out, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    buffer_add_u8(out, VALUE_NUMBER);
    buffer_add_u64(out, bits);
}

static void add_text(struct buffer *out, const char *text, size_t size)
{
    buffer_add_u32(out, (uint32_t)size);
    buffer_add(out, text, size);
}

static bool write_at(struct buffer *out, const json_t *json, int depth, struct error *err)
{
    if (depth > VALUE_DEPTH)
        return error_set(err, ERROR_LIMIT, NULL, "a value nested deeper than %d", VALUE_DEPTH);
    switch (json_typeof(json)) {
    case JSON_NULL:
        buffer_add_u8(out, VALUE_NIL);
        return true;
    case JSON_FALSE:
    case JSON_TRUE:
        buffer_add_u8(out, json_is_true(json) ? VALUE_TRUE : VALUE_FALSE);
        return true;
    case JSON_REAL:
        add_number(out, json_real_value(json));
        return true;
    case JSON_INTEGER: {
        json_int_t i = json_integer_value(json);
        if (i > (1LL << 53) || i < -(1LL << 53))
            return error_set(err, ERROR_RANGE, "write it as text", "%lld is beyond 2^53", (long long)i);
        add_number(out, (double)i);
        return true;
    }
    case JSON_STRING:
        buffer_add_u8(out, VALUE_TEXT);
        add_text(out, json_string_value(json), json_string_length(json));
        return true;
    case JSON_ARRAY: {
        buffer_add_u8(out, VALUE_LIST);
        buffer_add_u32(out, (uint32_t)json_array_size(json));
        for (size_t i = 0; i < json_array_size(json); i++)
            if (!write_at(out, json_array_get(json, i), depth + 1, err))
                return error_at(err, "[%zu]", i);
        return true;
    }
    case JSON_OBJECT: {
        const char *key;
        json_t *item;
        buffer_add_u8(out, VALUE_MAP);
        buffer_add_u32(out, (uint32_t)json_object_size(json));
        json_object_foreach((json_t *)json, key, item)
        {
            add_text(out, key, strlen(key));
            if (!write_at(out, item, depth + 1, err))
                return error_at(err, "%s", key);
        }
        return true;
    }
    }
    return error_set(err, ERROR_FAULT, NULL, "a JSON value of no known type");
}

bool value_write(struct buffer *out, const json_t *json, struct error *err)
{
    return write_at(out, json, 0, err);
}

/* Digits of x rounded to `count` significant ones, and the power of ten of the first. glibc rounds these exactly. */
static int digits_of(double x, int count, char digits[24])
{
    char text[40];
    snprintf(text, sizeof text, "%.*e", count - 1, x);
    int n = 0;
    const char *at = text;
    for (; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            digits[n++] = *at;
    digits[n] = 0;
    return atoi(at + 1);
}

static double read_back(const char *digits, int power)
{
    char text[48];
    snprintf(text, sizeof text, "%c.%se%d", digits[0], digits + 1, power);
    return strtod(text, NULL);
}

char *value_number_text(double x, char text[32])
{
    if (x != x)
        return strcpy(text, "nan");
    if (isinf(x))
        return strcpy(text, x < 0 ? "-inf" : "inf");
    char *at = text;
    if (signbit(x))
        *at++ = '-';
    x = fabs(x);
    if (x == 0) {
        strcpy(at, "0");
        return text;
    }
    char digits[24];
    int count = 1, power = digits_of(x, 1, digits);
    while (count < 17 && read_back(digits, power) != x)
        power = digits_of(x, ++count, digits);
    if (power >= 21 || power < -6) {
        sprintf(at, count > 1 ? "%c.%se%d" : "%c%se%d", digits[0], digits + 1, power);
    } else if (power < 0) {
        at += sprintf(at, "0.%.*s", -power - 1, "00000");
        strcpy(at, digits);
    } else if (count <= power + 1) {
        at += sprintf(at, "%s", digits);
        memset(at, '0', (size_t)(power + 1 - count));
        at[power + 1 - count] = 0;
    } else {
        sprintf(at, "%.*s.%s", power + 1, digits, digits + power + 1);
    }
    return text;
}

static json_t *read_at(struct reader *in, int depth, struct error *err);

static json_t *fail(struct error *err, enum error_code code, const char *what)
{
    error_set(err, code, "the child answered with something no script can make", "script reply: %s", what);
    return NULL;
}

static json_t *read_number(struct reader *in, struct error *err)
{
    uint64_t bits = reader_u64(in);
    double x;
    memcpy(&x, &bits, sizeof x);
    if (x != x)
        return fail(err, ERROR_NON_FINITE, "NaN");
    if (x >= -9007199254740992.0 && x <= 9007199254740992.0 && (double)(int64_t)x == x && !(x == 0 && signbit(x)))
        return json_integer((json_int_t)x);
    char text[32];
    return json_string(value_number_text(x, text));
}

static json_t *read_text(struct reader *in, struct error *err)
{
    uint32_t size = reader_u32(in);
    const uint8_t *bytes = reader_bytes(in, size);
    if (!bytes || !in->ok)
        return fail(err, ERROR_TRUNCATED, "text is cut off");
    json_t *text = json_stringn((const char *)bytes, size);
    if (!text)
        error_set(err, ERROR_SCRIPT, "escapes above \\127 must make up whole characters",
                  "the script's answer holds text that is not UTF-8");
    return text;
}

static json_t *read_list(struct reader *in, int depth, struct error *err)
{
    uint32_t count = reader_u32(in);
    if (!in->ok || count > reader_left(in))
        return fail(err, ERROR_TRUNCATED, "a list is cut off");
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_t *item = read_at(in, depth + 1, err);
        if (!item || json_array_append_new(list, item)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *read_map(struct reader *in, int depth, struct error *err)
{
    uint32_t count = reader_u32(in);
    if (!in->ok || count > reader_left(in) / 5)
        return fail(err, ERROR_TRUNCATED, "a map is cut off");
    json_t *map = json_object();
    for (uint32_t i = 0; i < count; i++) {
        json_t *key = read_text(in, err), *item = key ? read_at(in, depth + 1, err) : NULL;
        const char *name = json_string_value(key);
        bool clean = item && strlen(name) == json_string_length(key) && !json_object_get(map, name);
        if (clean)
            json_object_set_new(map, name, item);
        else if (item)
            json_decref(item);
        json_decref(key);
        if (!clean) {
            json_decref(map);
            if (item)
                error_set(err, ERROR_SCRIPT, "leave \\0 out of the keys of tables",
                          "a name stands twice in the script's answer, or holds a zero");
            return NULL;
        }
    }
    return map;
}

static json_t *read_at(struct reader *in, int depth, struct error *err)
{
    if (depth > VALUE_DEPTH)
        return fail(err, ERROR_LIMIT, "nested too deep");
    uint8_t tag = reader_u8(in);
    json_t *out = NULL;
    switch (in->ok ? tag : 255) {
    case VALUE_NIL:
        out = json_null();
        break;
    case VALUE_FALSE:
        out = json_false();
        break;
    case VALUE_TRUE:
        out = json_true();
        break;
    case VALUE_NUMBER:
        out = read_number(in, err);
        break;
    case VALUE_TEXT:
        return read_text(in, err);
    case VALUE_LIST:
        return read_list(in, depth, err);
    case VALUE_MAP:
        return read_map(in, depth, err);
    default:
        return fail(err, in->ok ? ERROR_SYNTAX : ERROR_TRUNCATED, in->ok ? "an unknown tag" : "it ends too early");
    }
    if (in->ok)
        return out;
    json_decref(out);
    return fail(err, ERROR_TRUNCATED, "it ends too early");
}

json_t *value_read(struct reader *in, struct error *err)
{
    return read_at(in, 0, err);
}
