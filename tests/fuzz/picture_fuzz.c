/* A picture's file of any bytes: what is read has a row's form, and as many digits as its shape says. */
#include <stdlib.h>

#include "native/text/conversation_row.h"
#include "native/text/labelled.h"
#include "native/text/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(json_t *image)
{
    struct examples list = { 0 };
    json_t *row;

    if (!image)
        return;
    row = json_pack("{s:o, s:i}", "image", image, "label", 1);
    if (!labelled_example(row, 1, &list, NULL) || list.items[0].count == 0)
        __builtin_trap();
    json_decref(row);
    examples_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    json_t *shape = size > 3 ? json_pack("[i,i,i]", (int)bytes[0], (int)bytes[1], (int)bytes[2]) : NULL;

    check(picture_read(bytes, size, NULL, NULL));
    if (shape)
        check(picture_read(bytes + 3, size - 3, shape, NULL));
    json_decref(shape);
    return 0;
}
