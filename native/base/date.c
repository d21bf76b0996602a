#include "native/base/date.h"

#include <string.h>

static int digits(const char *text, int count)
{
    int value = 0;

    for (int i = 0; i < count; i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

static int days(int year, int month)
{
    static const int plain[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return plain[month - 1] + (month == 2 && leap);
}

bool date_parse(const char *text, struct date *date, struct error *err)
{
    static const char shape[] = "dddd-dd-dd";
    bool fits = strlen(text) == sizeof shape - 1;

    for (size_t i = 0; fits && shape[i]; i++)
        fits = shape[i] == '-' ? text[i] == '-' : text[i] >= '0' && text[i] <= '9';
    if (fits) {
        *date = (struct date){ digits(text, 4), digits(text + 5, 2), digits(text + 8, 2) };
        fits = date->year >= 1 && date->month >= 1 && date->month <= 12 && date->day >= 1 &&
               date->day <= days(date->year, date->month);
    }
    return fits || error_set(err, ERROR_SYNTAX, "as 2026-01-31", "\"%.40s\" is no date", text);
}
