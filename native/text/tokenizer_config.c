#include <stdlib.h>
#include <string.h>

#include "native/text/tokenizer_build.h"

/* "added_tokens_decoder": { "128000": { "content": "<|begin|>", "lstrip": false, ... } ... } */
static const json_t *tokens_of(const json_t *config)
{
    return json_object_get(config, "added_tokens_decoder");
}

static bool id_of(const char *key, uint64_t *id)
{
    char *end;

    *id = strtoull(key, &end, 10);
    return *key >= '0' && *key <= '9' && *end == 0 && *id < TOKENIZER_MAX_TOKENS;
}

static bool broken(struct error *err, const char *key, const char *what)
{
    error_set(err, ERROR_RANGE, NULL, "%s", what);
    return error_at(err, "tokenizer_config.json: added_tokens_decoder[\"%.20s\"]", key);
}

bool config_greatest_id(const json_t *config, size_t *ids, struct error *err)
{
    const char *key;
    json_t *token;
    uint64_t id;

    json_object_foreach((json_t *)tokens_of(config), key, token)
    {
        if (!id_of(key, &id))
            return broken(err, key, "no id of a token");
        *ids = id >= *ids ? id + 1 : *ids;
    }
    return true;
}

/* A token that is there, under whatever id, keeps its id; an entry of the model becomes an added token. */
bool config_add_tokens(struct tokenizer_builder *b, const json_t *config, struct error *err)
{
    const char *key;
    json_t *token;

    json_object_foreach((json_t *)tokens_of(config), key, token)
    {
        const json_t *content = json_object_get(token, "content");
        struct text_slice text = { json_string_value(content), json_string_length(content) };
        uint64_t id;

        if (!text.size || !id_of(key, &id))
            return broken(err, key, "no content");

        uint32_t known = builder_find(b, text);

        if (known != BPE_NONE && !(b->flags[known] & TOKEN_ADDED))
            b->flags[known] |= added_token_flags(token);
        if (known == BPE_NONE && !builder_add(b, id, text, added_token_flags(token), err))
            return broken(err, key, "its id is another token's");
    }
    return true;
}

/* "bos_token" is a text, or an object with "content". */
static uint32_t named_token(const struct tokenizer_builder *b, const json_t *config, const char *name)
{
    const json_t *value = json_object_get(config, name);

    value = json_is_object(value) ? json_object_get(value, "content") : value;
    return json_string_length(value) ? builder_find(b, (struct text_slice){ json_string_value(value), json_string_length(value) })
                                     : BPE_NONE;
}

void config_surround(const struct tokenizer_builder *b, struct tokenizer *t, const json_t *config)
{
    const json_t *bos = json_object_get(config, "add_bos_token"), *eos = json_object_get(config, "add_eos_token");
    uint32_t before = json_is_true(bos) ? named_token(b, config, "bos_token") : BPE_NONE,
             after = json_is_true(eos) ? named_token(b, config, "eos_token") : BPE_NONE;

    if (!bos && !eos)
        return;
    t->before_count = t->after_count = 0;
    if (before != BPE_NONE)
        t->before[t->before_count++] = before;
    if (after != BPE_NONE)
        t->after[t->after_count++] = after;
}
