/* outcome.h - what a fuzz target tells of each input: taken, or refused and with which code. Counted by corpus.c; of no matter to libFuzzer,
 * which is linked without it. A refusal without a code is a fault. */
#ifndef RONDO_TESTS_FUZZ_OUTCOME_H
#define RONDO_TESTS_FUZZ_OUTCOME_H

#include <stdbool.h>

#include "native/base/error.h"

/* `parser` lives for ever: its address tells parsers apart. */
void fuzz_outcome(const char *parser, bool taken, const struct error *err) __attribute__((weak));

static inline bool fuzz_tell(const char *parser, bool taken, const struct error *err)
{
    if (fuzz_outcome)
        fuzz_outcome(parser, taken, err);
    return taken;
}

#endif
