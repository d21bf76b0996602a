/* A SentencePiece model or a list of ranks of any bytes. */
#include "tests/fuzz/encoding.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return encoding_check(size && bytes[0] == 0x0a ? tokenizer_read_sentencepiece(bytes, size, NULL)
                                                   : tokenizer_read_ranks((const char *)bytes, size, NULL));
}
