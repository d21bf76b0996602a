/* constraint.h - answers that are tool calls and nothing else: the tokens that generate.h may draw.
 *
 *     tools of the conversation ── call_schema ──┐
 *     its template              ── call_form ────┴─> call_automaton ── token_table ──> a bit for each token, before each draw
 *
 * With a choice the answer may be free text, too. It is a call from where it has all of the opening that the template prints before a name: at its
 * beginning the form's head, anywhere the form's `later`. A token that would write the opening and then what is no call, or no whole one, may not come.
 * Where openings stand is found as in Knuth, Morris, Pratt (SIAM J. Comput. 6, 1977): time is linear in the answer.
 *
 * An answer is one call or several (call_automaton.h), then the end of the turn. It is whole within the tokens that it may have: a token
 * is left out where the shortest right answer behind it would not fit. The same tokens are allowed on every machine.
 */
#ifndef RONDO_WORKER_CONSTRAINT_H
#define RONDO_WORKER_CONSTRAINT_H

#include "native/text/call_form.h"
#include "native/text/token_table.h"
#include "runtime/worker/generate.h"

/* Where an answer stands. */
struct constraint_place {
    struct call_state state; /* of the call; before it begins, of the head */
    uint32_t later;          /* symbols of the form's `later` that the text ends with */
    bool calls;              /* a call has begun */
    bool parted;             /* the answer does not begin with the head */
};

/* Of one sequence. Zero is none. */
struct constraint {
    struct call_schema schema;
    struct call_form form;
    struct call_grammar grammar;
    struct call_memory memory;
    struct constraint_place place;
    uint32_t *shorter; /* owned: of each beginning of `later`, the longest one that it ends with */
    uint32_t *closers; /* owned: the tokens that may end an opening */
    size_t closer_count;
    uint32_t fed; /* tokens of the sequence */
    bool choice;  /* text may come instead */
};

/* For what follows `conversation`, in at most `most` tokens, the one that ends the turn included. Free with constraint_free, after a failure too.
 * Errors: those of call_schema.h and call_form.h, unsupported (bytes of the tools' names that no token is alone; a choice where the template
 * prints nothing before a name), limit (no call is so short, and there is no choice). */
bool constraint_new(struct constraint *c, const struct session *s, const struct token_table *table, const json_t *conversation,
                    bool choice, uint64_t most, struct error *err);
void constraint_free(struct constraint *c);

/* The bits of the tokens that g may go on with; `most` as above. `bits` is all zero. */
void constraint_allow(struct constraint *c, const struct token_table *table, const struct generation *g, uint64_t most,
                      const uint32_t *ends, size_t end_count, uint64_t *bits);

/* Of the sequences of one call of generate. Zero is none. */
struct constraints {
    const struct session *session;
    const struct generation *first; /* borrowed: where the sequences lie */
    struct token_table table;
    struct constraint *list; /* owned, one a sequence */
    size_t count;
    uint32_t ends[GENERATE_ENDS];
    size_t end_count;
    bool choice;
};

/* By the job's `constrain`: "tools", "tools-or-text", or absent, and then nothing is done. Sets `allow` of the options; then constraints_add is needed for every
 * sequence, whose prompt and `most` stand. `c` and `list` stay where they are. Free with constraints_free, after a failure too. Errors: unknown (another
 * word), missing (a prompt that is no conversation), unsupported (no token ends a turn), those of token_table.h; those of
 * constraint_new. */
bool constraints_of(struct constraints *c, const struct session *s, const json_t *job, const struct generation *list,
                    size_t count, struct generate_options *options, struct error *err);
bool constraints_add(struct constraints *c, size_t i, const json_t *conversation, struct error *err);
void constraints_free(struct constraints *c);

#endif
