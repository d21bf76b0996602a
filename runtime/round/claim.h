/* claim.h - whose machine it is: an account's word that a machine works for it in this run.
 *
 *     enrolment: account_signature = the account's signature over H("rondo/account", run id text as a part, DID as a part)
 *
 * An enrolment names an account, which for pay alone is nobody's business: who names another's gives money away. Groups of the replicated tier
 * (replica.h) keep machines of one account apart, and there a name that nobody has to prove would be a weapon: keys that name a victim's
 * account would take its seats. So trainers of that tier are taken with this signature only. It is of one run and one DID: said again
 * under another it does not fit.
 */
#ifndef RONDO_ROUND_CLAIM_H
#define RONDO_ROUND_CLAIM_H

#include <jansson.h>

#include "runtime/crypto/account.h"

enum { CLAIM_TEXT = 2 * ACCOUNT_SIGNATURE_SIZE + 1 };

/* `account_signature` of an enrolment of `did`; the same bytes each time. Returns `text`. */
const char *claim_sign(const struct account_key *account, const char *run, const char *did, char text[CLAIM_TEXT]);

/* Whether the account that an enrolment names signed for its signer and run. */
bool claim_stands(const json_t *enrolment);

#endif
