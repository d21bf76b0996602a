#include "runtime/role/audit.h"

#include "runtime/role/audit_internal.h"
#include "runtime/round/record.h"
#include "runtime/round/value.h"

/* A finding, or the end of the audit with `err`. */
static bool found(struct audit *u, const struct error *fault, struct error *err)
{
    if (audit_find(u->findings, fault))
        return true;
    *err = *fault;
    return false;
}

/* Everything before the rounds; `*sound` false: what was found does not let the rounds be read. */
static bool open_evidence(struct audit *u, bool *sound, struct error *err)
{
    const struct audit_options *o = u->options;
    struct error fault = { 0 };

    audit_tell(u, "copies", 0, 0);
    *sound = archive_open_in(&u->a, o->home, u->folder.path, o->run, &fault);
    /* Once the run is known, what its nodes have lost is a finding. */
    if (!*sound && ((fault.code == ERROR_MISSING && !u->a.course.spec.json) || audit_is_own_fault(fault.code))) {
        *err = fault;
        return false;
    }
    if (!audit_copies(&u->a, u->checked, u->findings, err) || (!*sound && !found(u, &fault, err)))
        return false;
    if (!*sound)
        return true;
    if (o->ledger)
        u->books = books_of_url(o->ledger, o->plain, err);
    else if (u->a.ledger)
        u->books = books_of_file(u->a.ledger);
    else
        error_set(err, ERROR_MISSING, "name the run's ledger by --ledger URL", "%s holds no ledger", o->home);
    return u->books != NULL;
}

static bool audit_ledger(struct audit *u, struct error *err)
{
    const struct run_spec *spec = &u->a.course.spec;
    struct ledger_status status;
    struct error fault = { 0 };

    if (!books_status(u->books, &status, err))
        return false;
    audit_count(u->checked, "ledger_blocks", u->options->ledger ? 0 : (int64_t)status.height);
    if (status.chain == spec->payment.chain && address_equal(status.contract, spec->payment.contract))
        return true;
    error_set(&fault, ERROR_MISMATCH, NULL, "the ledger is chain %llu, the run's spec names %llu",
              (unsigned long long)status.chain, (unsigned long long)spec->payment.chain);
    error_at(&fault, "ledger");
    return found(u, &fault, err);
}

static bool audit_rounds(struct audit *u, struct error *err)
{
    const json_t *previous = NULL;
    json_t *final;
    size_t index;

    json_array_foreach(u->a.finals, index, final)
    {
        struct error fault = { 0 };

        audit_tell(u, "rounds", (int64_t)index, (int64_t)json_array_size(u->a.finals));
        if (!verifier_round(&u->verifier, previous, final, &fault)) {
            if (!found(u, &fault, err))
                return false;
        } else {
            audit_count(u->checked, "rounds", 1);
        }
        audit_count(u->checked, "votes",
                    (int64_t)json_array_size(json_object_get(json_object_get(final, "certificate"), "votes")));
        previous = json_object_get(final, "record");
    }
    audit_count(u->checked, "plans", u->verifier.plans);
    audit_count(u->checked, "folds", u->verifier.folds);
    audit_count(u->checked, "seeds", u->verifier.blocks);
    return true;
}

static bool walk(struct audit *u, struct error *err)
{
    struct error fault = { 0 };

    u->verifier = (struct verifier){ .a = &u->a, .books = u->books, .quick = u->options->quick };
    if (!audit_ledger(u, err))
        return false;
    if (!archive_worker(&u->a, u->options->threads, &fault) || !verifier_start(&u->verifier, &fault))
        return found(u, &fault, err);
    return audit_rounds(u, err) && audit_work(u, err) && audit_money(u, err);
}

/* What no node of the home has is told apart from what does not hold. */
static json_t *take_missing(json_t *findings)
{
    json_t *missing = json_array();

    for (size_t i = 0; i < json_array_size(findings);) {
        if (value_is(json_array_get(findings, i), "code", "missing")) {
            json_array_append(missing, json_array_get(findings, i));
            json_array_remove(findings, i);
        } else {
            i++;
        }
    }
    return missing;
}

static json_t *result_of(struct audit *u)
{
    json_t *incomplete = take_missing(u->findings);
    size_t rounds = json_array_size(u->a.finals);
    const json_t *last = archive_record(&u->a, (int64_t)rounds - 1);

    return json_pack("{s:b, s:s, s:I, s:b, s:O?, s:O, s:O, s:o}", "ok",
                     json_array_size(u->findings) == 0 && json_array_size(incomplete) == 0, "run",
                     u->a.course.run[0] ? u->a.course.run
                     : u->options->run  ? u->options->run
                                        : "",
                     "rounds", (json_int_t)(rounds ? rounds - 1 : 0), "finished",
                     last && u->a.course.rules.spec && record_is_last(&u->a.course.rules, last), "state_root",
                     json_object_get(last, "state"), "checked", u->checked, "findings", u->findings, "incomplete", incomplete);
}

json_t *audit_run(const struct audit_options *options, struct error *err)
{
    struct audit u = { .options = options };
    struct hash id;
    bool sound = false, ok;
    json_t *result;

    if (options->run && !cid_parse(options->run, &id, err)) {
        error_at(err, "RUN");
        return NULL;
    }
    if (!scratch_open(&u.folder, "audit", err)) /* evidence stays as it is, and may be read-only */
        return NULL;
    u.checked = json_object();
    u.findings = json_array();
    ok = open_evidence(&u, &sound, err);
    if (ok && sound && json_array_size(u.a.finals) == 0)
        ok = error_set(err, ERROR_MISSING, ARCHIVE_ELSEWHERE, "no record of the run is in %s", options->home);
    ok = ok && (!sound || walk(&u, err));
    result = ok ? result_of(&u) : NULL;
    verifier_free(&u.verifier);
    books_free(u.books);
    archive_close(&u.a);
    scratch_close(&u.folder);
    json_decref(u.checked);
    json_decref(u.findings);
    return result;
}
