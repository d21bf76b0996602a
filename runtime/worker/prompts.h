/* prompts.h - rows of a data file to prompts: what the completions of a run on rollouts go on from.
 *
 *     {"messages": [..., user], "tools": [...], "reference": any JSON}     rendered with the generation prompt
 *     {"prompt": "text", "reference": any JSON}                            as it stands
 *
 * A row whose last message is the assistant's is taken up to that message: rows of chat data serve as they are. A row too long to be
 * gone on from by one token is left out and counted.
 */
#ifndef RONDO_WORKER_PROMPTS_H
#define RONDO_WORKER_PROMPTS_H

#include "native/text/conversation.h"

struct prompt {
    uint32_t *ids; /* owned */
    size_t count;
    json_t *row; /* owned: the row, for the reward */
};

struct prompts {
    struct prompt *items;
    size_t count, dropped;
};

/* Errors: those of the row's JSON and of the template, with file and line. Free with prompts_free, after a failure too. */
bool prompts_read(const struct conversation_format *format, const struct rows *rows, struct prompts *out, struct error *err);
void prompts_free(struct prompts *prompts);

#endif
