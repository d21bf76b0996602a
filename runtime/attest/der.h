/* der.h - reads DER (X.690), of which machine evidence needs little: definite lengths in their shortest form, tags of one byte.
 *
 *     tag  length  value            30 82 05 4c ...    a SEQUENCE of 0x54c bytes
 *
 * The reading of certificates is ours and strict, not a library's: whether evidence stands is the same for every member, whatever it is built with.
 */
#ifndef RONDO_ATTEST_DER_H
#define RONDO_ATTEST_DER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DER_BOOLEAN = 0x01,
    DER_INTEGER = 0x02,
    DER_BITS = 0x03,
    DER_OCTETS = 0x04,
    DER_OID = 0x06,
    DER_UTF8 = 0x0c,
    DER_PRINTABLE = 0x13,
    DER_IA5 = 0x16,
    DER_SEQUENCE = 0x30,
    DER_SET = 0x31,
    DER_VERSION = 0xa0,   /* [0] of a certificate */
    DER_EXTENSIONS = 0xa3 /* [3] of a certificate */
};

/* Borrowed bytes. */
struct der {
    const uint8_t *at;
    size_t size;
};

/* Takes the next element off `in` when its tag is this; its value, and the element with its head (either may be NULL). False, and `in` as it
 * was, when it is another or does not end within `in`. */
bool der_take(struct der *in, uint8_t tag, struct der *value, struct der *whole);

/* Whether the next element has this tag. */
bool der_comes(const struct der *in, uint8_t tag);

/* An INTEGER from 0 to 255, the whole of `in`. */
bool der_byte(struct der in, uint8_t *out);

bool der_equal(struct der a, struct der b);

#endif
