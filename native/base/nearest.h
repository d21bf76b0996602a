/* nearest.h - the known name that a mistyped one most likely meant. */
#ifndef RONDO_BASE_NEAREST_H
#define RONDO_BASE_NEAREST_H

#include <stddef.h>

/* The name among `names[count]` with the smallest edit distance to `word`, if it is near (at most a third of its letters,
 * at least one); NULL otherwise. Ties go to the earlier name. */
const char *nearest_name(const char *word, const char *const *names, size_t count);

#endif
