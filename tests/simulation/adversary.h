/* adversary.h - what a lying machine says instead. It signs with its own key only; whatever it says, honest machines must agree.
 */
#ifndef RONDO_SIMULATION_ADVERSARY_H
#define RONDO_SIMULATION_ADVERSARY_H

#include "tests/simulation/simulator.h"

/* The message that `to` gets in place of `message`; new reference, NULL: none. `records`: round -> final record. */
json_t *adversary_message(enum liar liar, const char *did, const char *to, json_t *message, const json_t *records,
                          uint64_t chance);

/* What a liar sends to some members after hearing `heard`; new reference, NULL. */
json_t *adversary_extra(enum liar liar, const char *did, const char *run, const json_t *heard, const json_t *records);

#endif
