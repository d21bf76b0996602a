/* Files of 4-bit weights of any bytes: what opens folds into weights that pack and read, or is refused with a code. */
#include <stdlib.h>
#include <string.h>

#include "native/model/bitsandbytes.h"
#include "native/model/convert.h"
#include "native/model/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_as(const struct bitsandbytes *b, enum tensor_type type)
{
    uint64_t values;
    size_t packed;

    if (!tensor_measure(type, b->view.rank, b->view.dims, 1 << 20, &values, &packed, NULL))
        return;
    void *out = malloc(packed + 1);
    float *x = malloc((values + 1) * sizeof *x);

    if (out && x) {
        bitsandbytes_pack(b, type, out);
        convert_to_f32(type, out, values, x);
    }
    free(x);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct safetensors file;
    struct bitsandbytes_set set = { 0 };
    struct error err = { 0 };

    if (safetensors_of(&file, bytes, size, &err)) {
        size_t count = file.count;
        struct tensor *tensors = malloc((count + 1) * sizeof *tensors);

        memcpy(tensors, file.tensors, count * sizeof *tensors);
        if (bitsandbytes_fold(tensors, &count, &set, &err))
            for (size_t i = 0; i < set.count; i++) {
                read_as(&set.items[i], set.items[i].view.type);
                read_as(&set.items[i], TENSOR_NF4);
            }
        else if (err.code == ERROR_NONE)
            abort();
        free(tensors);
    }
    bitsandbytes_free(&set);
    safetensors_close(&file);
    return 0;
}
