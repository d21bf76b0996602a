#include "runtime/role/terms.h"

#include <stdlib.h>
#include <string.h>

static int by_address(const void *a, const void *b)
{
    return address_compare(*(const struct address *)a, *(const struct address *)b);
}

size_t terms_panel(const struct run_spec *spec, struct address panel[SPEC_PANEL])
{
    size_t count = spec->committee.panel_count;

    for (size_t i = 0; i < count; i++)
        panel[i] = spec->committee.panel[i].account;
    qsort(panel, count, sizeof *panel, by_address);
    return count;
}

static bool panel_met(const struct run_spec *spec, const struct ledger_escrow *e)
{
    struct address panel[SPEC_PANEL];
    size_t count = terms_panel(spec, panel);

    return e->threshold == spec->committee.release_threshold && e->panel_count == count &&
           memcmp(e->panel, panel, count * sizeof *panel) == 0;
}

bool terms_met(const struct run_spec *spec, const struct ledger_escrow *e)
{
    return e->amount == spec->payment.per_round && panel_met(spec, e);
}

bool terms_deposit(const struct run_spec *spec, const struct ledger_escrow *e, unsigned __int128 amount, uint64_t last)
{
    return e->amount == amount && panel_met(spec, e) && e->status == LEDGER_FUNDED && e->expiry >= last && last > 0;
}
