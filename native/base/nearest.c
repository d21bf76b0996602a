#include "native/base/nearest.h"

#include <string.h>

enum { MOST = 64 };

/* Optimal string alignment: insert, delete, replace, swap of neighbours. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), row[3][MOST + 1];

    if (n > MOST || m > MOST)
        return MOST;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);

            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *nearest_name(const char *word, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 1;

    for (size_t i = 0; i < count; i++) {
        size_t d = distance(word, names[i]);

        if (d <= least && (!best || d < least)) {
            best = names[i];
            least = d;
        }
    }
    return best;
}
