/* hardware.h - what an enrolment shows of the hardware it comes from, and that a machine counts once.
 *
 *     enrolment: evidence { kind, report, certificates }   stands under the pinned roots, and was made for this signer and run (runtime/attest)
 *     member:    root = H("rondo/hardware", kind, chip)    of two members none have the same
 *
 * With admission `attested` trainers and auditors are taken with evidence only; elsewhere it may be left out, but what is shown must stand. The
 * panel is named by the spec: one of it whose root another has is seated without it. A root is held by who was taken first, and free again when that
 * one is no member any more.
 */
#ifndef RONDO_ROUND_HARDWARE_H
#define RONDO_ROUND_HARDWARE_H

#include <jansson.h>

#include "runtime/crypto/hash.h"
#include "runtime/round/rules.h"

/* Why an enrolment may not be taken for what it shows: "evidence" (it does not stand, or was made for another key or run), "unattested" (none, where
 * the spec asks for it), "root" (a member with another DID has this root); else "ok". `members` may be NULL. */
const char *hardware_code(const struct rules *rules, const json_t *members, const json_t *enrolment);

/* The root of an enrolment whose code is "ok", as 64 digits; "" when it shows nothing. Returns `text`. */
const char *hardware_root(const json_t *enrolment, char text[HASH_TEXT]);

/* Whether one with another DID has the root. "" is nobody's. */
bool hardware_held(const json_t *members, const char *root, const char *did);

#endif
