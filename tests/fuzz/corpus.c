/* corpus.c - runs one fuzz target over a folder of inputs without a fuzzer: every file as it is, cut short, and with bytes changed.
 * usage: NAME_fuzz FOLDER     the changes are the same at every run. Where clang is, -DRONDO_FUZZ=ON builds the same targets with libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/error.h"
#include "native/base/file.h"

enum { CUTS = 64, CHANGES = 192, FILE_LIMIT = 1 << 24 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The target gets a copy of exactly size bytes, so that a sanitizer sees a read past the end. */
static void feed(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(4);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static size_t feed_variants(uint8_t *bytes, size_t size)
{
    uint64_t state = size;

    feed(bytes, size);
    if (!size)
        return 1;
    for (size_t i = 0; i < CUTS; i++)
        feed(bytes, draw(&state) % size);
    for (size_t i = 0; i < CHANGES; i++) {
        size_t at = draw(&state) % size;
        uint8_t kept = bytes[at];
        bytes[at] = i % 2 ? (uint8_t)draw(&state) : kept ^ (uint8_t)(1u << draw(&state) % 8);
        feed(bytes, size);
        bytes[at] = kept;
    }
    return 1 + CUTS + CHANGES;
}

int main(int count, char **words)
{
    DIR *folder = count == 2 ? opendir(words[1]) : NULL;
    size_t files = 0, inputs = 0;

    if (!folder) {
        fprintf(stderr, "usage: %s FOLDER\n", words[0]);
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[1024];
        struct buffer bytes = { 0 };
        struct error err = { 0 };
        char text[1024];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", words[1], entry->d_name);
        if (!file_read(path, FILE_LIMIT, &bytes, &err)) {
            fprintf(stderr, "%s\n", error_text(&err, text, sizeof text));
            closedir(folder);
            return 3;
        }
        files++;
        inputs += feed_variants(bytes.bytes, bytes.size);
        buffer_free(&bytes);
    }
    closedir(folder);
    printf("%zu files, %zu inputs\n", files, inputs);
    return files ? 0 : 3;
}
