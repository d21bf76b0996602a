/* A key file of any bytes: an error or a pair of keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "native/base/json.h"
#include "runtime/crypto/keyfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The costs of a sealed file may be seconds: only the least are tried with a passphrase. */
static bool is_cheap(const uint8_t *bytes, size_t size)
{
    json_t *object = json_read((const char *)bytes, size, 4096, NULL);
    bool cheap = json_integer_value(json_object_get(object, "operations")) <= 1 &&
                 json_integer_value(json_object_get(object, "memory")) <= 8192;

    json_decref(object);
    return cheap;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static int file = -1;
    char path[32];
    struct key_pair pair;
    struct error err;

    if (file < 0 && ((file = memfd_create("key", MFD_CLOEXEC)) < 0 || fchmod(file, 0600)))
        abort();
    if (ftruncate(file, 0) || pwrite(file, bytes, size, 0) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (keyfile_read(path, is_cheap(bytes, size) ? "passphrase" : NULL, &pair, &err))
        key_pair_wipe(&pair);
    return 0;
}
