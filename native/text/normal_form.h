/* normal_form.h - Unicode normal forms (UAX #15) of a text, with the places in the original. */
#ifndef RONDO_TEXT_NORMAL_FORM_H
#define RONDO_TEXT_NORMAL_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "native/text/aligned.h"

/* Whether valid UTF-8 is in the form already, by a look at each character; false may err. */
bool normal_form_holds(const char *text, size_t size, bool compatible, bool composed);

/* Appends the form of valid UTF-8. */
void normal_form_apply(const char *text, size_t size, struct origin origin, bool compatible, bool composed, struct aligned *out);

#endif
