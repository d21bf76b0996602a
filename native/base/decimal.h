/* decimal.h - exact numbers in text: amounts of money and fractions. No binary fraction ever stands between.
 *
 *     amount    "1000000"     a whole number below 2^128, no sign, no leading zero
 *     decimal   "0.8" "-3"    a number with at most nine places, kept in billionths (int64)
 */
#ifndef RONDO_BASE_DECIMAL_H
#define RONDO_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

enum { AMOUNT_TEXT = 40, DECIMAL_ONE = 1000000000 }; /* 39 digits and the zero; one, in billionths */

/* False when the text is not the one canonical form of an amount. */
bool amount_parse(const char *text, unsigned __int128 *out);
const char *amount_text(unsigned __int128 amount, char text[AMOUNT_TEXT]);

/* False when the text is not canonical: an optional '-', digits without a leading zero, then perhaps a point and one to nine
 * digits of which the last is not zero; or when |value| >= 2^63 / 10^9. "-0" is refused. */
bool decimal_parse(const char *text, int64_t *billionths);

#endif
