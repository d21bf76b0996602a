#include "runtime/round/amendment.h"
#include "runtime/round/record.h"
#include "runtime/round/value.h"

const json_t *record_find_contribution(const json_t *record, const char *cid, const char **did)
{
    json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(record, "unsettled"), i, entry)
    {
        const json_t *found = value_find(json_object_get(entry, "contributions"), "cid", cid);
        if (found) {
            *did = value_text(found, "did");
            return entry;
        }
    }
    return NULL;
}

bool record_is_last(const struct rules *rules, const json_t *record)
{
    return value_integer(record, "round") > amendment_rounds(rules, record) &&
           !json_array_size(json_object_get(record, "unsettled")) && !value_integer(record, "correct");
}
