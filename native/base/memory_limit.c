#include "native/base/memory_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_LONGEST = 4096, LINE_LONGEST = 8192 };

/* The number that a file of a group holds; UINT64_MAX where it says "max" or is not there. */
static uint64_t group_limit(const char *path)
{
    char text[32] = "";
    FILE *f = fopen(path, "re");
    uint64_t limit = UINT64_MAX;
    if (!f)
        return limit;
    if (fgets(text, sizeof text, f) && text[0] >= '0' && text[0] <= '9')
        limit = strtoull(text, NULL, 10);
    fclose(f);
    return limit;
}

/* The least limit of group `group` under `mount` and of all above it. */
static uint64_t groups_limit(const char *mount, const char *group, const char *file)
{
    char folder[PATH_LONGEST], path[PATH_LONGEST + 64];
    uint64_t least = UINT64_MAX;
    const size_t mounted = strlen(mount);
    if (mounted + strlen(group) >= sizeof folder)
        return least;
    snprintf(folder, sizeof folder, "%s%s", mount, group);
    for (;;) {
        snprintf(path, sizeof path, "%s/%s", folder, file);
        const uint64_t limit = group_limit(path);
        least = limit < least ? limit : least;
        char *last = strlen(folder) > mounted ? strrchr(folder, '/') : NULL;
        if (!last || (size_t)(last - folder) < mounted)
            return least;
        *last = 0;
    }
}

/* Whether "memory" is among the controllers "cpu,memory". */
static bool has_memory(const char *controllers)
{
    for (const char *at = controllers; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strcspn(at, ",") == 6 && strncmp(at, "memory", 6) == 0)
            return true;
    return false;
}

static uint64_t line_limit(const char *root, char *line)
{
    char mount[PATH_LONGEST];
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    const bool second = controllers[1] == 0;
    if (!second && !has_memory(controllers + 1))
        return UINT64_MAX;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, second ? "" : "/memory");
    return groups_limit(mount, group, second ? "memory.max" : "memory.limit_in_bytes");
}

uint64_t memory_limit_under(const char *root, uint64_t machine)
{
    char path[PATH_LONGEST], line[LINE_LONGEST];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        const uint64_t limit = line_limit(root, line);
        machine = limit < machine ? limit : machine;
    }
    if (f)
        fclose(f);
    return machine;
}

uint64_t memory_limit(void)
{
    return memory_limit_under("", (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}

bool memory_size_read(const char *text, uint64_t *bytes)
{
    static const char letters[] = "KMGT";
    uint64_t n = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (n > (UINT64_C(1) << 63) / 10 - 1)
            return false;
        n = 10 * n + (uint64_t)(*at - '0');
    }
    if (at == text || n == 0)
        return false;
    const char *letter = *at ? strchr(letters, *at & ~32) : NULL;
    const unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
    at += letter != NULL;
    at += letter && *at == 'i';
    at += (*at & ~32) == 'B';
    *bytes = n << shift;
    return *at == 0 && *bytes >> shift == n && *bytes <= UINT64_C(1) << 63;
}

uint64_t memory_allowance(unsigned workers)
{
    const char *text = getenv("RONDO_MEMORY");
    uint64_t bytes;
    return text && memory_size_read(text, &bytes) ? bytes : memory_limit() / 4 * 3 / workers;
}
