#include "native/text/tokens.h"

#include <stdlib.h>

void tokens_free(struct tokens *tokens)
{
    free(tokens->ids);
    free(tokens->ends);
    *tokens = (struct tokens){ 0 };
}

void tokens_add(struct tokens *tokens, uint32_t id, uint32_t end)
{
    if (tokens->count == tokens->capacity) {
        size_t capacity = tokens->capacity ? tokens->capacity * 2 : 64;

        tokens->ids = reallocarray(tokens->ids, capacity, sizeof *tokens->ids);
        tokens->ends = reallocarray(tokens->ends, capacity, sizeof *tokens->ends);
        if (!tokens->ids || !tokens->ends)
            abort();
        tokens->capacity = capacity;
    }
    tokens->ids[tokens->count] = id;
    tokens->ends[tokens->count++] = end;
}
