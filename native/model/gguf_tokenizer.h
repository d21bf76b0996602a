/* gguf_tokenizer.h - the tokenizer that stands in a GGUF file's metadata (tokenizer.ggml.*). */
#ifndef RONDO_MODEL_GGUF_TOKENIZER_H
#define RONDO_MODEL_GGUF_TOKENIZER_H

#include "native/model/gguf.h"
#include "native/text/tokenizer.h"

/* NULL with `err`: missing (no vocabulary), range, unsupported (a rule of splitting that is not known, by name). The file may be closed
 * afterwards. */
struct tokenizer *gguf_tokenizer(const struct gguf *file, struct error *err);

#endif
