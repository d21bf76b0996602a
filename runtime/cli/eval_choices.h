/* eval_choices.h - multiple choice: the answer is the choice that a model finds most likely after the question.
 *
 *     row { prompt: text | messages (and tools), choices: [ text, ... ], answer: index from 0 }
 *
 * Two readings, as the usual harnesses give them: by the sum of log-probabilities, and by that sum over the choice's bytes. Of equal ones the
 * first counts.
 */
#ifndef RONDO_CLI_EVAL_CHOICES_H
#define RONDO_CLI_EVAL_CHOICES_H

#include "runtime/cli/speaker.h"

/* { data, cases, right, accuracy, right_by_byte, accuracy_by_byte }, over `most` rows at most (0: all). New reference; NULL with `err`: missing,
 * type and range (a row of another form), those of reading the data and of the job "choose". */
json_t *eval_choices(struct invocation *in, struct speaker *speaker, const char *data, int64_t most, struct error *err);

#endif
