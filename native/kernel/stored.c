#include "native/kernel/class.h"

#define STORED_TABLE stored_scalar
#include "native/kernel/stored_body.h"

stored_read *stored_reader(enum stored_type type)
{
    static stored_read *const *const tables[KERNEL_ISAS] = KERNEL_TABLE(stored_scalar, stored);

    return tables[kernel_isa()][type];
}
