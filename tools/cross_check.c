/* cross_check.c - the self-test of the kernels as a program of its own: it needs native/kernel, native/numerics and a C library.
 *
 *     cross_check [--isa NAME] [--threads N] [--shift N] [--table]
 *
 * prints the digest of what this build really computes (docs/numerics.md, "The class digest") and, to standard error, the checks whose
 * hash is not that of class_table.h. Exit status: 0, 1 something differs, 2 bad usage, 3 the instruction set is absent, 4 the
 * arithmetic is not that of the class. --table prints the lines of class_table.h (tools/cross_check.sh --table
 * writes them).
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/kernel/class.h"
#include "native/kernel/digest.h"
#include "native/kernel/self_test.h"

struct run {
    struct self_test *test;
    char hash[2][SELF_TEST_HEX];
    int different;
};

static const char *hash_of(void *context, size_t index, bool full)
{
    struct run *run = context;

    self_test_hash(run->test, index, full, run->hash[full]);
    if (strcmp(run->hash[full], self_test_expected(index, full)) != 0) {
        fprintf(stderr, "%s (%s) gives %s\n", self_test_name(index), full ? "full" : "start", run->hash[full]);
        run->different++;
    }
    return run->hash[full];
}

/* How the table names each check. */
static const char *const rows[] = {
#define CLASS_CHECK(name, function, parameter, start, full) "CLASS_CHECK(\"" name "\", " #function ", " #parameter ", ",
#include "native/kernel/class_table.h"
#undef CLASS_CHECK
};

static void print_table(struct run *run)
{
    for (size_t i = 0; i < self_test_count(); i++) {
        self_test_hash(run->test, i, false, run->hash[0]);
        self_test_hash(run->test, i, true, run->hash[1]);
        printf("%s\"%s\", \"%s\")\n", rows[i], run->hash[0], run->hash[1]);
    }
}

int main(int argc, char **argv)
{
    struct error err = { 0 };
    struct run run = { 0 };
    unsigned threads = 1;
    size_t shift = 0;
    bool table = false;
    uint8_t digest[32];
    char hex[65], text[1024];

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--table") == 0)
            table = true;
        else if (i + 1 < argc && strcmp(argv[i], "--isa") == 0)
            setenv("RONDO_ISA", argv[++i], 1);
        else if (i + 1 < argc && strcmp(argv[i], "--threads") == 0)
            threads = (unsigned)atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--shift") == 0)
            shift = (size_t)atoi(argv[++i]);
        else
            return fprintf(stderr, "cross_check [--isa NAME] [--threads N] [--shift N] [--table]\n"), 2;
    }
    mallopt(M_PERTURB, 0x5a); /* so that a check that reads what it never wrote is seen */
    if (!kernel_choose(&err) || !kernel_arithmetic(&err)) {
        fprintf(stderr, "%s\n", error_text(&err, text, sizeof text));
        return error_status(err.code);
    }
    struct pool *pool = pool_new(threads ? threads : 1);

    run.test = self_test_new(pool, shift);
    if (!pool || !run.test)
        return fprintf(stderr, "no memory or no threads\n"), 4;
    if (table) {
        print_table(&run);
    } else {
        self_test_digest(hash_of, &run, digest);
        digest_hex(digest, sizeof digest, hex);
        printf("%s\n", hex);
    }
    self_test_free(run.test);
    pool_free(pool);
    return run.different ? 1 : 0;
}
