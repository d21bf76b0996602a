/* folder.h - the small files of a model's folder, written beside new weights. */
#ifndef RONDO_MODEL_FOLDER_H
#define RONDO_MODEL_FOLDER_H

#include <jansson.h>
#include <stdbool.h>

#include "native/base/error.h"

/* Copies config.json, the tokenizer's files and the chat template, those that are there, from folder `base` into folder `out`. In config.json
 * "quantization_config" becomes `quantised` (borrowed); with NULL it is left out, as the new weights are not quantised. */
bool folder_copy_beside(const char *base, const char *out, json_t *quantised, struct error *err);

#endif
