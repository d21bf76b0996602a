/* template_filters.h - the two tables of filters. */
#ifndef RONDO_TEXT_TEMPLATE_FILTERS_H
#define RONDO_TEXT_TEMPLATE_FILTERS_H

#include "native/text/template_call.h"

extern const struct filter LIST_FILTERS[];
extern const size_t LIST_FILTER_COUNT;

#endif
