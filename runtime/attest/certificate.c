#include "runtime/attest/certificate.h"

#include <string.h>

#include "runtime/attest/signature.h"

/* RFC 4055: SHA-384, MGF1 with SHA-384, 48 bytes of salt; the trailer field's default said, or left out. */
static const uint8_t pss[] = { 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a, 0x30, 0x39, 0xa0,
                               0x0f, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02,
                               0x05, 0x00, 0xa1, 0x1c, 0x30, 0x1a, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d,
                               0x01, 0x01, 0x08, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04,
                               0x02, 0x02, 0x05, 0x00, 0xa2, 0x03, 0x02, 0x01, 0x30, 0xa3, 0x03, 0x02, 0x01, 0x01 };
enum { PSS_LENGTH = 12, TRAILER = 5 };
static const uint8_t version_3[] = { 0x02, 0x01, 0x02 };
static const uint8_t common_name[] = { 0x55, 0x04, 0x03 };

static bool is_pss(struct der algorithm)
{
    uint8_t shorter[sizeof pss - TRAILER];

    memcpy(shorter, pss, sizeof shorter);
    shorter[PSS_LENGTH] -= TRAILER;
    return der_equal(algorithm, (struct der){ pss, sizeof pss }) || der_equal(algorithm, (struct der){ shorter, sizeof shorter });
}

/* The only common name of a subject, of printable ASCII. */
static bool read_name(struct der subject, char name[CERTIFICATE_NAME])
{
    struct der names, set, pair, oid, text;

    name[0] = '\0';
    if (!der_take(&subject, DER_SEQUENCE, &names, NULL))
        return false;
    while (names.size) {
        if (!der_take(&names, DER_SET, &set, NULL) || !der_take(&set, DER_SEQUENCE, &pair, NULL) || set.size ||
            !der_take(&pair, DER_OID, &oid, NULL))
            return false;
        if (!der_equal(oid, (struct der){ common_name, sizeof common_name }))
            continue;
        if (name[0] || (!der_take(&pair, DER_UTF8, &text, NULL) && !der_take(&pair, DER_PRINTABLE, &text, NULL)) || pair.size ||
            !text.size || text.size >= CERTIFICATE_NAME)
            return false;
        for (size_t i = 0; i < text.size; i++)
            if (text.at[i] < 0x20 || text.at[i] > 0x7e)
                return false;
        memcpy(name, text.at, text.size);
        name[text.size] = '\0';
    }
    return name[0] != '\0';
}

static bool next_extension(struct der *list, struct der *oid, struct der *value)
{
    struct der one, critical;

    return der_take(list, DER_SEQUENCE, &one, NULL) && der_take(&one, DER_OID, oid, NULL) && oid->size &&
           (!der_comes(&one, DER_BOOLEAN) ||
            (der_take(&one, DER_BOOLEAN, &critical, NULL) && critical.size == 1 && critical.at[0] == 0xff)) &&
           der_take(&one, DER_OCTETS, value, NULL) && !one.size;
}

static bool check_extensions(struct der list)
{
    struct der seen[CERTIFICATE_EXTENSIONS], value;
    size_t count = 0;

    while (list.size) {
        if (count == CERTIFICATE_EXTENSIONS || !next_extension(&list, &seen[count], &value))
            return false;
        for (size_t i = 0; i < count; i++)
            if (der_equal(seen[i], seen[count]))
                return false;
        count++;
    }
    return true;
}

static bool read_body(struct der body, struct der algorithm, struct certificate *out)
{
    struct der version, inner, wrapped;

    return der_take(&body, DER_VERSION, &version, NULL) && der_equal(version, (struct der){ version_3, sizeof version_3 }) &&
           der_take(&body, DER_INTEGER, NULL, NULL) && der_take(&body, DER_SEQUENCE, &inner, NULL) &&
           der_equal(inner, algorithm) && der_take(&body, DER_SEQUENCE, NULL, &out->issuer) &&
           der_take(&body, DER_SEQUENCE, NULL, NULL) && der_take(&body, DER_SEQUENCE, NULL, &out->subject) &&
           der_take(&body, DER_SEQUENCE, NULL, &out->key) && der_take(&body, DER_EXTENSIONS, &wrapped, NULL) && !body.size &&
           der_take(&wrapped, DER_SEQUENCE, &out->extensions, NULL) && !wrapped.size && check_extensions(out->extensions) &&
           read_name(out->subject, out->name);
}

bool certificate_read(struct der bytes, struct certificate *out, struct error *err)
{
    struct der parts, content, algorithm, bits;

    *out = (struct certificate){ .whole = bytes };
    if (!der_take(&bytes, DER_SEQUENCE, &parts, NULL) || bytes.size || !der_take(&parts, DER_SEQUENCE, &content, &out->body) ||
        !der_take(&parts, DER_SEQUENCE, &algorithm, NULL) || !der_take(&parts, DER_BITS, &bits, NULL) || parts.size)
        return error_set(err, ERROR_SYNTAX, NULL, "no X.509 certificate in DER");
    if (!is_pss(algorithm))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "signed by another algorithm than RSASSA-PSS with SHA-384");
    if (bits.size < 2 || bits.at[0] || !read_body(content, algorithm, out))
        return error_set(err, ERROR_SYNTAX, NULL, "a certificate of another form than the vendor makes");
    out->signature = (struct der){ bits.at + 1, bits.size - 1 };
    return true;
}

bool certificate_extension(const struct certificate *c, struct der oid, struct der *value)
{
    struct der list = c->extensions, name;

    while (next_extension(&list, &name, value))
        if (der_equal(name, oid))
            return true;
    return false;
}

bool certificate_is_from(const struct certificate *c, const struct certificate *issuer)
{
    return der_equal(c->issuer, issuer->subject) && signature_rsa_stands(issuer->key, c->body, c->signature);
}
