/* template_methods.h - the two tables of methods. */
#ifndef RONDO_TEXT_TEMPLATE_METHODS_H
#define RONDO_TEXT_TEMPLATE_METHODS_H

#include "native/text/template_call.h"

struct method {
    enum value_kind kind;
    const char *name;
    struct value (*run)(struct value self, struct arguments *args);
};

extern const struct method STRING_METHODS[];
extern const size_t STRING_METHOD_COUNT;

#endif
