/* date.h - a day of the calendar as text, 2026-01-31. */
#ifndef RONDO_BASE_DATE_H
#define RONDO_BASE_DATE_H

#include "native/base/error.h"

struct date {
    int year, month, day; /* 1 to 9999, from 1, from 1; Gregorian */
};

/* Errors: syntax. */
bool date_parse(const char *text, struct date *date, struct error *err);

#endif
