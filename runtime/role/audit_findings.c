#include "runtime/role/audit_internal.h"
#include "runtime/round/value.h"

void audit_count(json_t *checked, const char *name, int64_t n)
{
    json_object_set_new(checked, name, json_integer(json_integer_value(json_object_get(checked, name)) + n));
}

void audit_tell(struct audit *u, const char *what, int64_t done, int64_t of)
{
    if (u->options->told)
        u->options->told(u->options->context, what, done, of);
}

bool audit_is_own_fault(enum error_code code)
{
    return (error_is_local(code) && code != ERROR_DAMAGED) || code == ERROR_USAGE || code == ERROR_NONE || code == ERROR_REFUSED;
}

/* The same again; of what is not here, also under the place of another that wants it. */
static bool is_known(const json_t *findings, const json_t *finding)
{
    json_t *each;
    size_t index;

    json_array_foreach((json_t *)(uintptr_t)findings, index, each)
    {
        if (json_equal(each, finding) || (value_is(finding, "code", "missing") && value_is(each, "code", "missing") &&
                                          value_is(each, "message", value_text(finding, "message"))))
            return true;
    }
    return false;
}

bool audit_find(json_t *findings, const struct error *fault)
{
    json_t *finding;

    if (audit_is_own_fault(fault->code))
        return false;
    finding = json_pack("{s:s, s:s, s:s}", "place", fault->place, "code", error_name(fault->code), "message", fault->message);
    if (is_known(findings, finding))
        json_decref(finding);
    else
        json_array_append_new(findings, finding);
    return true;
}
