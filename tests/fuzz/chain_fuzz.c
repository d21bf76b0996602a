/* A ledger's file of any bytes: an error, or a chain in which everything fits. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/ledger/local.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static int file = -1;
    struct error err = { 0 };

    if (file < 0) {
        const char *place = getenv("TMPDIR");

        snprintf(path, sizeof path, "%.40s/rondo-fuzz-XXXXXX", place ? place : "/tmp");
        if ((file = mkstemp(path)) < 0 || atexit(remove_file))
            abort();
    }
    if (ftruncate(file, 0) || pwrite(file, bytes, size, 0) != (ssize_t)size)
        abort();
    if (!ledger_local_check(path, NULL, &err) && err.code == ERROR_NONE)
        abort();
    return 0;
}
