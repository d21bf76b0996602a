#include "runtime/worker/failure.h"

bool failure_is_everywhere(const struct error *err)
{
    switch (err->code) {
    case ERROR_NON_FINITE:
    case ERROR_RANGE:
    case ERROR_SHAPE:
    case ERROR_SCRIPT:
    case ERROR_FUEL:
    case ERROR_LIMIT:
        return true;
    default:
        return false;
    }
}

bool failure_is_here(const struct error *err)
{
    return error_is_local(err->code) || err->code == ERROR_MISSING;
}
