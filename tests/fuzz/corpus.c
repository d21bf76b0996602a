/* corpus.c - runs one fuzz target without a fuzzer, the same at every run. Where clang is, -DRONDO_FUZZ=ON builds the same targets with libFuzzer.
 * usage: NAME_fuzz FOLDER                 every file of it as it is, cut short, and with bytes changed
 *        NAME_fuzz FOLDER COUNT [SEED]    COUNT inputs made of these files by one to eight changes each, and what became of them by code
 * An input that takes longer than HANG_S ends the program, and is named by SEED and its number. */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "native/base/file.h"
#include "tests/fuzz/outcome.h"

enum { CUTS = 64, CHANGES = 192, FILE_LIMIT = 1 << 24, FILES = 256, PARSERS = 16, INPUT_LIMIT = 1 << 16, HANG_S = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct {
    const char *parser;
    unsigned long taken, refused[ERROR_CODES];
} outcomes[PARSERS];

static unsigned long current;

void fuzz_outcome(const char *parser, bool taken, const struct error *err)
{
    size_t i = 0;

    while (i < PARSERS - 1 && outcomes[i].parser && outcomes[i].parser != parser)
        i++;
    outcomes[i].parser = parser;
    if (!taken && (err->code <= ERROR_NONE || err->code >= ERROR_CODES))
        abort();
    if (taken)
        outcomes[i].taken++;
    else
        outcomes[i].refused[err->code]++;
}

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

/* ---- changes ---- */

/* Replaces `gone` bytes at `at` by `count` others, as far as the limit allows. */
static void splice(struct buffer *b, size_t at, size_t gone, const void *bytes, size_t count)
{
    uint8_t kept[INPUT_LIMIT];
    size_t rest = b->size - at - gone;

    if (b->size - gone + count > INPUT_LIMIT)
        return;
    memcpy(kept, b->bytes + at + gone, rest);
    b->size = at;
    buffer_add(b, bytes, count);
    buffer_add(b, kept, rest);
}

static void change_number(struct buffer *b, size_t at, uint64_t *state)
{
    static const uint64_t odd[] = {
        0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff
    };
    uint64_t value = odd[draw(state) % 12];
    size_t size = (size_t)1 << draw(state) % 4;

    if (at + size <= b->size)
        memcpy(b->bytes + at, &value, size);
}

static void change_text(struct buffer *b, size_t at, uint64_t *state)
{
    static const char *const words[] = { "null",
                                         "true",
                                         "-1",
                                         "0",
                                         "9007199254740992",
                                         "18446744073709551616",
                                         "1e999",
                                         "\"\"",
                                         "[]",
                                         "{}",
                                         "\"",
                                         "\\u0000",
                                         "\\ud800",
                                         "{\"a\":1,\"a\":1}",
                                         "[[[[[[[[",
                                         ",",
                                         ":",
                                         "\r\n\r\n",
                                         "Content-Length: 99999\r\n",
                                         "%00",
                                         "/../",
                                         "\xff\xfe" };
    const char *word = words[draw(state) % (sizeof words / sizeof *words)];
    size_t gone = draw(state) % 8;

    splice(b, at, gone < b->size - at ? gone : 0, word, strlen(word));
}

static void change(struct buffer *b, const struct buffer *other, uint64_t *state)
{
    size_t at = b->size ? draw(state) % b->size : 0, most = b->size - at, some = most ? draw(state) % (most < 64 ? most : 64) : 0;
    uint8_t byte = (uint8_t)draw(state), copy[64];
    size_t from = other->size ? draw(state) % other->size : 0;

    if (!b->size) {
        buffer_add_u8(b, byte);
        return;
    }
    switch (draw(state) % 9) {
    case 0:
        b->bytes[at] ^= (uint8_t)(1u << byte % 8);
        break;
    case 1:
        b->bytes[at] = byte;
        break;
    case 2:
        splice(b, at, some, NULL, 0);
        break;
    case 3: /* said twice */
        memcpy(copy, b->bytes + at, some);
        splice(b, at, 0, copy, some);
        break;
    case 4:
        splice(b, at, 0, &byte, 1);
        break;
    case 5: /* a piece of another input */
        some = other->size - from < 4096 ? other->size - from : draw(state) % 4096;
        splice(b, at, draw(state) % 2 && some < most ? some : 0, other->bytes + from, some);
        break;
    case 6:
        change_number(b, at, state);
        break;
    case 7:
        change_text(b, at, state);
        break;
    default:
        if (draw(state) % 8 == 0)
            b->size = at;
    }
}

static void on_hang(int number)
{
    static const char text[] = "an input takes too long\n";

    (void)number;
    if (write(2, text, sizeof text - 1) < 0)
        _exit(6);
    _exit(5);
}

static void feed_changed(const struct buffer *files, size_t count, unsigned long inputs, uint64_t seed)
{
    const struct itimerval limit = { .it_value.tv_sec = HANG_S };
    struct buffer b = { 0 };

    signal(SIGVTALRM, on_hang);
    for (current = 0; current < inputs; current++) {
        uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15u + current * 0xd1342543de82ef95u;
        const struct buffer *file = &files[draw(&state) % count];
        unsigned changes = 1 + draw(&state) % 8;

        buffer_clear(&b);
        buffer_add(&b, file->bytes, file->size < INPUT_LIMIT ? file->size : INPUT_LIMIT);
        for (unsigned i = 0; i < changes; i++)
            change(&b, &files[draw(&state) % count], &state);
        setitimer(ITIMER_VIRTUAL, &limit, NULL); /* of the processor: a machine that is busy hangs nothing */
        feed(b.bytes, b.size);
    }
    buffer_free(&b);
}

static void print_outcomes(void)
{
    for (size_t i = 0; i < PARSERS && outcomes[i].parser; i++) {
        printf("  %-16s taken %lu", outcomes[i].parser, outcomes[i].taken);
        for (int code = 0; code < ERROR_CODES; code++)
            if (outcomes[i].refused[code])
                printf(", %s %lu", error_name((enum error_code)code), outcomes[i].refused[code]);
        printf("\n");
    }
}

/* ---- files ---- */

static size_t read_files(const char *path, struct buffer files[FILES])
{
    DIR *folder = opendir(path);
    size_t count = 0;

    for (struct dirent *entry; folder && count < FILES && (entry = readdir(folder));) {
        char at[1024], text[1024];
        struct error err = { 0 };

        if (entry->d_name[0] == '.')
            continue;
        snprintf(at, sizeof at, "%s/%s", path, entry->d_name);
        if (!file_read(at, FILE_LIMIT, &files[count++], &err)) {
            fprintf(stderr, "%s\n", error_text(&err, text, sizeof text));
            exit(3);
        }
    }
    if (folder)
        closedir(folder);
    return count;
}

static int by_content(const void *a, const void *b)
{
    const struct buffer *x = a, *y = b;
    size_t least = x->size < y->size ? x->size : y->size;
    int order = least ? memcmp(x->bytes, y->bytes, least) : 0;

    return order ? order : (x->size > y->size) - (x->size < y->size);
}

int main(int count, char **words)
{
    static struct buffer files[FILES];
    size_t number = count >= 2 ? read_files(words[1], files) : 0;
    unsigned long inputs = count > 2 ? strtoul(words[2], NULL, 10) : 0;

    if (count < 2 || count > 4) {
        fprintf(stderr, "usage: %s FOLDER [COUNT [SEED]]\n", words[0]);
        return 2;
    }
    if (!number) {
        fprintf(stderr, "%s holds no inputs\n", words[1]);
        return 3;
    }
    qsort(files, number, sizeof *files, by_content); /* folders have no order of their own */
    if (inputs)
        feed_changed(files, number, inputs, count > 3 ? strtoul(words[3], NULL, 10) : 0);
    for (size_t i = 0; !inputs && i < number; i++)
        current += feed_variants(files[i].bytes, files[i].size);
    printf("%zu files, %lu inputs\n", number, current);
    print_outcomes();
    for (size_t i = 0; i < number; i++)
        buffer_free(&files[i]);
    return 0;
}
