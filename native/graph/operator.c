#include "native/graph/operator.h"

#include <string.h>

enum { MANY = OPERATOR_MANY };

const struct operator_info operator_table[OPERATOR_CODES] = {
#define OPERATOR(id, name, version, in0, in1, axes0, axes1, numbers, integers, named, flags)                                     \
    [OPERATOR_##id] = { name, version, in0, in1, axes0, axes1, numbers, integers, named, flags },
#include "native/graph/operator_table.h"
#undef OPERATOR
};

bool operator_find(const char *name, enum operator_code *code)
{
    for (unsigned i = 0; i < OPERATOR_INTERNAL; i++)
        if (strcmp(operator_table[i].name, name) == 0) {
            *code = (enum operator_code)i;
            return true;
        }
    return false;
}
