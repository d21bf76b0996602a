/* pattern.h - a regular expression of a tokenizer file, run by PCRE2 with its limits set.
 *
 * The files are written for Oniguruma in its Ruby syntax. What it reads otherwise than PCRE2 is rewritten (\w, \s, \h, \uXXXX,
 * {,n}, {m,n}+); what cannot be is refused by name. ^ and $ are line anchors.
 */
#ifndef RONDO_TEXT_PATTERN_H
#define RONDO_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"

enum { PATTERN_MAX_SIZE = 4096 }; /* bytes of an expression */

struct pattern; /* never changes; may be shared between threads */
struct pattern_search;

/* NULL with `err`: syntax, unsupported, limit. The empty expression is allowed and matches nothing. */
struct pattern *pattern_new(const char *text, size_t size, bool literal, struct error *err);
void pattern_free(struct pattern *p);

/* What a search needs; one a thread. */
struct pattern_search *pattern_search_new(void); /* NULL: no memory */
void pattern_search_free(struct pattern_search *s);

/* The first match in valid UTF-8 from `from`: 1 and [*start, *end), which may be empty; 0 if there is none; -1 with `err` (limit)
 * where the search takes too long. */
int pattern_find(const struct pattern *p, struct pattern_search *s, const char *text, size_t size, size_t from, size_t *start,
                 size_t *end, struct error *err);

#endif
