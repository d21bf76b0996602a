/* safetensors files of any bytes: opening either fails with a code or gives tensors that lie in the file. */
#include <stdlib.h>
#include <string.h>

#include "native/model/convert.h"
#include "native/model/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct safetensors file;
    struct error err = { 0 };

    if (safetensors_of(&file, bytes, size, &err)) {
        for (size_t i = 0; i < file.count; i++) {
            const struct tensor *t = &file.tensors[i];
            const uint64_t count = tensor_values(t);
            float *out = malloc((count + 1) * sizeof *out);

            if (out)
                convert_to_f32(t->type, t->data, count, out);
            free(out);
        }
    } else if (err.code == ERROR_NONE) {
        abort();
    }
    safetensors_close(&file);
    return 0;
}
