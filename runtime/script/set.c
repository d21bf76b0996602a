/* set.c - scripts of a folder as a bundle. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "native/base/file.h"
#include "runtime/script/host.h"

static const char *const folders[] = { "objectives", "aggregators", "optimisers", "models", "schedules", "rewards", "", "runs" };
enum { IMPORTABLE = sizeof folders / sizeof *folders - 1 }; /* nothing imports a run file */

static char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path;
    size_t n = strlen(start);
    if (n > 4 && !strcmp(start + n - 4, ".lua"))
        n -= 4;
    return strndup(start, n);
}

static bool add_file(struct script_set *set, const char *path, struct error *err)
{
    struct buffer bytes = { 0 };
    if (!file_read(path, 1 << 20, &bytes, err))
        return false;
    struct script_file *grown = realloc(set->files, (set->count + 1) * sizeof *grown);
    if (!grown) {
        buffer_free(&bytes);
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %s", path);
    }
    set->files = grown;
    set->files[set->count++] = (struct script_file){ base_name(path), (char *)bytes.bytes, bytes.size };
    return true;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_script(const struct dirent *d)
{
    size_t n = strlen(d->d_name);
    return n > 4 && d->d_name[0] != '.' && !strcmp(d->d_name + n - 4, ".lua");
}

static bool has(const struct script_set *set, const char *path)
{
    char *name = base_name(path);
    bool found = false;
    for (size_t i = 0; i < set->count && !found; i++)
        found = !strcmp(set->files[i].name, name);
    free(name);
    return found;
}

static bool add_folder(struct script_set *set, const char *folder, struct error *err)
{
    struct dirent **list;
    int n = scandir(folder, &list, is_script, by_name);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        ok = ok && (has(set, path) || add_file(set, path, err));
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    return ok;
}

static bool find(const char *folder, const char *path, char *found, size_t size)
{
    struct stat st;
    snprintf(found, size, "%s", path);
    if (!stat(path, &st) && S_ISREG(st.st_mode))
        return true;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(found, size, "%s/%s/%s%s", folder, folders[i], path, strstr(path, ".lua") ? "" : ".lua");
        if (!stat(found, &st) && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

bool script_set_read(const char *folder, const char *path, json_t *options, struct script_set *set, struct error *err)
{
    char found[4096];
    *set = (struct script_set){ 0 };
    if (!find(folder, path, found, sizeof found))
        return error_set(err, ERROR_MISSING, "a path is taken from the current folder, a name from the scripts folder",
                         "no script %s", path);
    bool ok = add_file(set, found, err);
    for (size_t i = 0; ok && i < IMPORTABLE; i++) {
        char below[4096];
        snprintf(below, sizeof below, "%s/%s", folder, folders[i]);
        ok = add_folder(set, below, err);
    }
    if (!ok) {
        script_set_free(set);
        return false;
    }
    set->bundle = (struct script_bundle){ set->files, set->count, options };
    return true;
}

void script_set_free(struct script_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free((char *)set->files[i].name);
        free((char *)set->files[i].source);
    }
    free(set->files);
    *set = (struct script_set){ 0 };
}
