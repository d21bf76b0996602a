/* labelled.h - rows of images with a label, and of time series with what follows, to examples.
 *
 *     {"image": {"shape": [channels, height, width], "values": [0.5, ...]}, "label": 3}     values as they are
 *     {"image": {"shape": [3, 224, 224], "bytes": "00ff7f..."}, "label": 3}                 two hexadecimal digits a value v: v / 127.5 - 1
 *     {"series": [1.5, null, 2], "target": [2.5, null]}                                     null: not observed
 *
 * `rondo data convert` puts the picture of a file into its row. An example has `values` and `target`: of an image the label alone; of a series
 * NaN stands where nothing was observed.
 */
#ifndef RONDO_TEXT_LABELLED_H
#define RONDO_TEXT_LABELLED_H

#include "native/text/conversation.h"

/* Appends the row's example. false with `err` on a fault, the place a field: "image.values", "target[3]". */
bool labelled_example(const json_t *row, uint32_t line, struct examples *out, struct error *err);

#endif
