/* call_automaton.h - which byte may come next where a model writes tool calls.
 *
 *     form     head <tool_call>{"name": "   NAME   middle ", "arguments":_   ARGUMENTS   tail }</tool_call>[end of turn]
 *                                       ^                                       └── again ──┐
 *                                       └──────────────── }</tool_call>\n<tool_call>{"name": " 
 *     schema   the names, and what the arguments of each may be (call_schema.h)
 *
 * A deterministic automaton with a stack: a state, and frames for the objects and lists that are open. Its symbols are the bytes 0 to 255 and,
 * from 256 on, the special tokens that a form is printed with. What has been read is always the beginning of a right answer: call_rest
 * says how many symbols the shortest one still takes, and the way there is never barred.
 *
 * Values are JSON in one line; one space may stand behind a comma and a colon. Texts are UTF-8 without \u escapes and without call_marks; names
 * that the schema leaves free have no escapes and are not repeated.
 */
#ifndef RONDO_TEXT_CALL_AUTOMATON_H
#define RONDO_TEXT_CALL_AUTOMATON_H

#include "native/text/call_memory.h"
#include "native/text/call_schema.h"

enum { CALL_SPECIAL = 256, CALL_MOST = 16 /* calls of an answer */ };

struct call_symbols {
    uint32_t *list; /* owned by whom it says */
    size_t count;
};

/* How a template prints calls (call_form.h makes it). `again`: what stands between the arguments of one call and the name of the next; empty:
 * there is one call. `later`: what stands between text of the turn and the name, less the space it begins with; empty: no text stands before a call.
 * The first symbol of `middle` is in no name. */
struct call_form {
    struct call_symbols head, middle, tail, again, later;
};

struct call_grammar {
    const struct call_form *form; /* borrowed, both */
    const struct call_schema *schema;
    size_t shortest; /* symbols of a name to the end of the tail; call_grammar_of sets it */
};

/* Errors: unsupported (a name that holds the first symbol of the middle). */
bool call_grammar_of(struct call_grammar *g, const struct call_form *form, const struct call_schema *schema, struct error *err);

enum call_mode {
    CALL_HEAD,
    CALL_NAME,
    CALL_MIDDLE,
    CALL_VALUE,
    CALL_WORD,
    CALL_CHARS,
    CALL_DIGIT,
    CALL_FIRST_ITEM,
    CALL_FIRST_KEY,
    CALL_KEY,
    CALL_FREE_KEY,
    CALL_COLON,
    CALL_AFTER,
    CALL_COMMA,
    CALL_TAIL
};

struct call_frame;
struct call_letter;

/* Copied freely; frames and letters lie in the memory that call_feed was given. */
struct call_state {
    const struct call_frame *frame;    /* the innermost open object or list; NULL: the arguments themselves */
    const struct call_node *node;      /* the value that is read or comes next */
    const struct call_letter *letters; /* of a free name */
    int64_t value;                     /* of a number's digits */
    uint32_t low, high,
        at; /* of names and words: those that begin as what was read, and how much was; else `at` in a list of symbols */
    uint32_t chars, calls;
    uint8_t mode, phase, digits, escape;
    uint8_t left, least, most; /* of a character: bytes to come, and the bounds of the next */
    uint8_t marks[CALL_MARKS]; /* how much of each stands before here */
    bool space, negative, fraction, tail, again;
};

struct call_state call_begin(const struct call_grammar *g);
/* Behind the head, or what stands for it later in a turn: the first call's name comes next. */
struct call_state call_begin_name(const struct call_grammar *g);
/* Reads a symbol; false: it may not come, and the state means nothing any more. */
bool call_feed(const struct call_grammar *g, struct call_memory *m, struct call_state *s, uint32_t symbol);
/* The answer may end here, and how many symbols the shortest way there takes. */
bool call_ended(const struct call_grammar *g, const struct call_state *s);
size_t call_rest(const struct call_grammar *g, const struct call_state *s);

#endif
