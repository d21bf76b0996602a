/* terms.h - what a run promises for each of its rounds, as the round's escrow has to say it. */
#ifndef RONDO_ROLE_TERMS_H
#define RONDO_ROLE_TERMS_H

#include "runtime/doc/run_spec.h"
#include "runtime/ledger/ledger.h"

/* The panel's accounts, ascending, as an escrow names them. Gives their number. */
size_t terms_panel(const struct run_spec *spec, struct address panel[SPEC_PANEL]);

/* Amount, threshold and panel are those of the run. Says nothing about whether the escrow is open still. */
bool terms_met(const struct run_spec *spec, const struct ledger_escrow *escrow);

/* Whether an escrow is a machine's deposit of `amount` for the run: panel and threshold those of the run, open until `last`, the end of the run's last
 * escrow, and standing. */
bool terms_deposit(const struct run_spec *spec, const struct ledger_escrow *escrow, unsigned __int128 amount, uint64_t last);

#endif
