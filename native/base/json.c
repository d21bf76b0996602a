#include "native/base/json.h"

#include <stdlib.h>
#include <string.h>

#include "native/base/buffer.h"
#include "native/base/file.h"

enum { DEPTH = 100 };

static bool depth_fits(const char *bytes, size_t size)
{
    size_t depth = 0;
    bool text = false;

    for (size_t i = 0; i < size; i++) {
        char c = bytes[i];

        if (text) {
            if (c == '\\')
                i++;
            else if (c == '"')
                text = false;
        } else if (c == '"') {
            text = true;
        } else if (c == '{' || c == '[') {
            if (++depth > DEPTH)
                return false;
        } else if ((c == '}' || c == ']') && depth) {
            depth--;
        }
    }
    return true;
}

json_t *json_read(const char *bytes, size_t size, size_t limit, struct error *err)
{
    if (size > limit) {
        error_set(err, ERROR_LIMIT, NULL, "%zu bytes of JSON, at most %zu are read", size, limit);
        return NULL;
    }
    if (!depth_fits(bytes, size)) {
        error_set(err, ERROR_LIMIT, NULL, "JSON is nested deeper than %d", DEPTH);
        return NULL;
    }

    json_error_t fault;
    json_t *value = json_loadb(bytes, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &fault);

    if (!value) {
        enum error_code code = json_error_code(&fault) == json_error_duplicate_key ? ERROR_DUPLICATE : ERROR_SYNTAX;

        error_set(err, code, json_error_code(&fault) == json_error_invalid_utf8 ? "save it as UTF-8" : NULL, "%s", fault.text);
        error_at(err, "line %d, column %d", fault.line, fault.column);
    }
    return value;
}

json_t *json_read_file(const char *path, size_t limit, struct error *err)
{
    struct buffer text = { 0 };
    json_t *value = NULL;

    if (file_read(path, limit, &text, err)) {
        value = json_read((const char *)text.bytes, text.size, limit, err);
        if (!value)
            error_at(err, "%s", path);
    }
    buffer_free(&text);
    return value;
}

const char *json_name(const json_t *value)
{
    const char *text = json_string_value(value);

    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

double json_decimal(const json_t *value, double otherwise)
{
    return json_is_string(value)   ? strtod(json_string_value(value), NULL)
           : json_is_number(value) ? json_number_value(value)
                                   : otherwise;
}
