#include "native/model/folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/json.h"

enum { CONFIG_LIMIT = 1 << 20 };

static const char quantization[] = "quantization_config";

static bool copy_config(const char *from, const char *to, json_t *quantised, struct error *err)
{
    json_t *config = json_read_file(from, CONFIG_LIMIT, err);
    bool ok = config != NULL;

    if (!ok)
        return false;
    if (!quantised && !json_object_get(config, quantization)) {
        json_decref(config);
        return file_copy(from, to, err);
    }
    if (quantised)
        json_object_set(config, quantization, quantised);
    else
        json_object_del(config, quantization);
    char *text = json_dumps(config, JSON_INDENT(2));

    ok = text ? file_write(to, text, strlen(text), 0666, err) : error_set(err, ERROR_MEMORY, NULL, "no memory for config.json");
    free(text);
    json_decref(config);
    return ok;
}

bool folder_copy_beside(const char *base, const char *out, json_t *quantised, struct error *err)
{
    static const char *const names[] = { "config.json",           "generation_config.json",  "tokenizer.json",
                                         "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja" };
    char from[PATH_MAX], to[PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (snprintf(from, sizeof from, "%s/%s", base, names[i]) >= PATH_MAX ||
            snprintf(to, sizeof to, "%s/%s", out, names[i]) >= PATH_MAX)
            return error_set(err, ERROR_LIMIT, NULL, "path is too long");
        if (!file_exists(from))
            continue;
        if (i == 0 ? !copy_config(from, to, quantised, err) : !file_copy(from, to, err))
            return false;
    }
    return true;
}
