/* call_texts.h - lists of texts that one of is written: names of tools, keys of objects, values of an enum. */
#ifndef RONDO_TEXT_CALL_TEXTS_H
#define RONDO_TEXT_CALL_TEXTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

enum { CALL_TEXTS = 1 << 20 /* bytes of a list */ };

struct call_text {
    char *bytes; /* owned */
    uint32_t size;
};

/* After call_texts_sort: by their bytes, each once. Of JSON texts none is the beginning of another unless it is a number. */
struct call_texts {
    struct call_text *list;
    uint32_t count;
    size_t size; /* bytes of all */
};

/* What may stand in no text of a call, since readers take it for a call's edge (tool_calls.h). */
enum { CALL_MARKS = 3 };
extern const char *const call_marks[CALL_MARKS];

/* Takes `bytes`, from malloc; NULL is a value that cannot be written. Errors: type, limit, unsupported (call_marks). */
bool call_texts_add(struct call_texts *texts, char *bytes, size_t size, struct error *err);
/* A value as JSON in one line, its numbers as short as they can be. */
bool call_texts_value(struct call_texts *texts, const json_t *value, struct error *err);
void call_texts_sort(struct call_texts *texts);
void call_texts_free(struct call_texts *texts);

#endif
