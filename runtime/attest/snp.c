#include "runtime/attest/snp.h"

#include <sodium.h>
#include <string.h>

#include "runtime/attest/signature.h"

/* As AMD's key server gives the certificates (kdsintf.amd.com/vcek/v1/Milan/cert_chain, the second): `openssl x509 -outform der | sha256sum`. */
static const struct snp_line vendor_lines[] = {
    { .name = "Milan",
      .root = { 0x69, 0xd0, 0x63, 0xb4, 0x53, 0x44, 0xd2, 0x6a, 0x2e, 0x94, 0xe1, 0xf4, 0x21, 0x0d, 0xe4, 0x9e,
                0xf5, 0x55, 0x30, 0x82, 0x87, 0xd4, 0xc1, 0x74, 0x44, 0x5c, 0x95, 0x63, 0x9a, 0x54, 0x0b, 0xcd },
      .family = 0x19,
      .models = { { 0x00, 0x0f }, { 0x00, 0x0f } } },
    { .name = "Genoa",
      .root = { 0x4c, 0x65, 0x98, 0xd1, 0x9c, 0x18, 0x71, 0x9c, 0x5d, 0xfd, 0x4a, 0x7d, 0x33, 0x5f, 0x67, 0x4e,
                0x5b, 0xfe, 0x1d, 0x8f, 0x80, 0x0c, 0xea, 0x2c, 0xf2, 0x70, 0xc1, 0x0d, 0x10, 0x3d, 0xb2, 0xf1 },
      .family = 0x19,
      .models = { { 0x10, 0x1f }, { 0xa0, 0xaf } } },
    { .name = "Turin",
      .root = { 0x1f, 0x08, 0x41, 0x61, 0xa4, 0x4b, 0xb6, 0xd9, 0x37, 0x78, 0xa9, 0x04, 0x87, 0x7d, 0x48, 0x19,
                0xca, 0xfa, 0x5d, 0x05, 0xef, 0x41, 0x93, 0xb2, 0xde, 0xd9, 0xdd, 0x9c, 0x73, 0xdd, 0x3f, 0x6a },
      .family = 0x1a,
      .models = { { 0x00, 0x11 }, { 0x00, 0x11 } },
      .turin = true },
};
const struct snp_roots snp_vendor_roots = { vendor_lines, sizeof vendor_lines / sizeof *vendor_lines };

/* ---- the report ---------------------------------------------------------------------------------------------------------- */

enum {
    VERSION = 0x000,
    POLICY = 0x008,
    VMPL = 0x030,
    ALGORITHM = 0x034,
    CURRENT = 0x038,
    KEY_INFO = 0x048,
    KEY_INFO_END = 0x04c,
    DATA = 0x050,
    MEASUREMENT = 0x090,
    REPORTED = 0x180,
    FAMILY = 0x188,
    CPUID_END = 0x18b,
    CHIP = 0x1a0,
    VERSIONS = 0x1e8,
    MITIGATIONS = 0x1f8,
    MITIGATIONS_END = 0x208,
    SIGNED = 0x2a0,
    SIGNATURE_S = 0x2e8,
    SIGNATURE_END = 0x330,

    ECDSA_P384_SHA384 = 1,
    OLDEST = 2,
    WITH_CPUID = 3,
    WITH_MITIGATIONS = 5,
    NEWEST = 5,
    POLICY_BITS = 26,
};
#define POLICY_ONE        (UINT64_C(1) << 17) /* reserved, must be 1 */
#define POLICY_MIGRATION  (UINT64_C(1) << 18)
#define POLICY_DEBUG      (UINT64_C(1) << 19)
#define KEY_MASKED        (UINT32_C(1) << 1)
#define KEY_SIGNING(info) ((info) >> 2 & 7)

static uint32_t u32_at(const uint8_t *report, size_t at)
{
    return report[at] | (uint32_t)report[at + 1] << 8 | (uint32_t)report[at + 2] << 16 | (uint32_t)report[at + 3] << 24;
}

static uint64_t u64_at(const uint8_t *report, size_t at)
{
    return u32_at(report, at) | (uint64_t)u32_at(report, at + 4) << 32;
}

static bool is_zero(const uint8_t *report, size_t from, size_t to)
{
    return sodium_is_zero(report + from, to - from);
}

/* What no version fills is zero; what a later one fills is zero before it. */
static bool check_reserved(const uint8_t *r, uint32_t version, struct error *err)
{
    const size_t gaps[][2] = {
        { KEY_INFO_END, DATA },
        { version < WITH_CPUID ? FAMILY : CPUID_END, CHIP },
        { VERSIONS + 3, VERSIONS + 4 },
        { VERSIONS + 7, VERSIONS + 8 },
        { version < WITH_MITIGATIONS ? MITIGATIONS : MITIGATIONS_END, SIGNED },
        { SIGNED + P384_SIZE, SIGNATURE_S },
        { SIGNATURE_S + P384_SIZE, SIGNATURE_END },
        { SIGNATURE_END, SNP_REPORT },
    };

    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
        if (!is_zero(r, gaps[i][0], gaps[i][1]))
            return error_set(err, ERROR_SYNTAX, NULL, "the bytes from 0x%zx to 0x%zx of a version %u report are reserved",
                             gaps[i][0], gaps[i][1], version);
    return true;
}

static bool check_guest(const uint8_t *r, struct error *err)
{
    const uint64_t policy = u64_at(r, POLICY);

    if (policy & POLICY_DEBUG)
        return error_set(err, ERROR_REFUSED, "start the guest with a policy without bit 19",
                         "the host may debug the guest: whoever runs it writes what it says");
    if (policy & POLICY_MIGRATION)
        return error_set(err, ERROR_REFUSED, "start the guest with a policy without bit 18",
                         "a migration agent may move the guest to another chip");
    if (!(policy & POLICY_ONE) || policy >> POLICY_BITS)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "policy %llx has bits that are not known here",
                         (unsigned long long)policy);
    if (u32_at(r, VMPL) != 0)
        return error_set(err, ERROR_REFUSED, "ask for it at VMPL 0", "the report was asked for at VMPL %u", u32_at(r, VMPL));
    return true;
}

/* Of the chip: a key of its own, and not hidden. */
static bool check_signer(const uint8_t *r, struct error *err)
{
    const uint32_t info = u32_at(r, KEY_INFO);

    if (u32_at(r, ALGORITHM) != ECDSA_P384_SHA384)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "signature algorithm %u: only 1, ECDSA with P-384 and SHA-384, is known",
                         u32_at(r, ALGORITHM));
    if (info >> 5)
        return error_set(err, ERROR_SYNTAX, NULL, "bits of the key's description are reserved");
    if (KEY_SIGNING(info) != 0)
        return error_set(err, ERROR_REFUSED, "ask for a report that the VCEK signs",
                         "signed by key %u, not by the chip's own: it names no machine", KEY_SIGNING(info));
    if (info & KEY_MASKED || is_zero(r, CHIP, CHIP + SNP_CHIP))
        return error_set(err, ERROR_REFUSED, "the host must not set MASK_CHIP_ID or MASK_CHIP_KEY",
                         "the host hides which chip this is: it names no machine");
    return true;
}

static bool check_report(struct der report, struct error *err)
{
    const uint8_t *r = report.at;

    if (report.size != SNP_REPORT)
        return error_set(err, ERROR_TRUNCATED, NULL, "%zu bytes, a report has %d", report.size, SNP_REPORT);

    const uint32_t version = u32_at(r, VERSION);

    if (version < OLDEST || version > NEWEST)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "version %u: %d to %d are known", version, OLDEST, NEWEST);
    return check_reserved(r, version, err) && check_signer(r, err) && check_guest(r, err);
}

/* ---- the chain ----------------------------------------------------------------------------------------------------------- */

#define AMD 0x2b, 0x06, 0x01, 0x04, 0x01, 0x9c, 0x78, 0x01 /* 1.3.6.1.4.1.3704.1 */
enum { PART_FMC = 9, PART_BOOT = 1, PART_TEE = 2, PART_SNP = 3, PART_MICROCODE = 8, SPARE_FIRST = 4, SPARE_LAST = 7 };

/* Where the parts of a TCB stand in its 8 bytes: extension .3.N -> byte. What is left is reserved. */
struct part {
    uint8_t number, at;
};
static const struct part parts_before[] = { { PART_BOOT, 0 }, { PART_TEE, 1 }, { PART_SNP, 6 }, { PART_MICROCODE, 7 }, { 0, 0 } };
static const struct part parts_turin[] = { { PART_FMC, 0 }, { PART_BOOT, 1 },      { PART_TEE, 2 },
                                           { PART_SNP, 3 }, { PART_MICROCODE, 7 }, { 0, 0 } };

static bool short_extension(const struct certificate *c, uint8_t number, struct der *value)
{
    const uint8_t oid[] = { AMD, number };

    return certificate_extension(c, (struct der){ oid, sizeof oid }, value);
}

static bool tcb_extension(const struct certificate *c, uint8_t number, struct der *value)
{
    const uint8_t oid[] = { AMD, 3, number };

    return certificate_extension(c, (struct der){ oid, sizeof oid }, value);
}

static const struct snp_line *line_of(const struct snp_roots *roots, struct der root)
{
    uint8_t digest[crypto_hash_sha256_BYTES];

    crypto_hash_sha256(digest, root.at, root.size);
    for (size_t i = 0; i < roots->count; i++)
        if (memcmp(digest, roots->lines[i].root, sizeof digest) == 0)
            return &roots->lines[i];
    return NULL;
}

/* "SEV-" "Milan" */
static bool is_named(const char *name, const char *head, const char *tail)
{
    const size_t length = strlen(head);

    return strncmp(name, head, length) == 0 && strcmp(name + length, tail) == 0;
}

/* From the pinned root down; `c`: leaf, intermediate, root. */
static bool check_chain(const struct snp_line *line, const struct certificate c[3], struct error *err)
{
    if (!is_named(c[1].name, "SEV-", line->name) || !certificate_is_from(&c[1], &c[2]))
        return error_set(err, ERROR_SIGNATURE, "the order is: VCEK, intermediate (ASK), root (ARK)",
                         "%s is not SEV-%s under the root ARK-%s", c[1].name, line->name, line->name) ||
               error_at(err, "certificates[1]");
    if (strcmp(c[0].name, "SEV-VCEK") != 0 || !signature_key_is_p384(c[0].key) || !certificate_is_from(&c[0], &c[1]))
        return error_set(err, ERROR_SIGNATURE, "the order is: VCEK, intermediate (ASK), root (ARK)",
                         "%s is not a VCEK under SEV-%s", c[0].name, line->name) ||
               error_at(err, "certificates[0]");
    return true;
}

/* "Milan", or with a stepping: "Milan-B0". */
static bool is_product(const struct certificate *c, const char *name)
{
    const size_t length = strlen(name);
    struct der value, text;

    return short_extension(c, 2, &value) && der_take(&value, DER_IA5, &text, NULL) && !value.size && text.size >= length &&
           memcmp(text.at, name, length) == 0 && (text.size == length || text.at[length] == '-');
}

static bool check_product(const struct snp_line *line, const struct certificate *c, const uint8_t *r, struct error *err)
{
    const uint8_t family = r[FAMILY], model = r[FAMILY + 1];
    struct der value;
    uint8_t structure;

    if (!is_product(c, line->name) || !short_extension(c, 1, &value) || !der_byte(value, &structure) || structure != line->turin)
        return error_set(err, ERROR_MISMATCH, NULL, "the VCEK is not one of a %s", line->name);
    if (u32_at(r, VERSION) < WITH_CPUID)
        return true; /* the report does not say */
    for (size_t i = 0; i < 2; i++)
        if (family == line->family && model >= line->models[i].first && model <= line->models[i].last)
            return true;
    return error_set(err, ERROR_MISMATCH, NULL, "the report is of family %02xh, model %02xh: no %s", family, model, line->name);
}

/* Each part on its own: one number of eight bytes would let a high one hide a low one. */
static bool check_tcb(const struct snp_line *line, const struct certificate *c, const uint8_t *r, struct error *err)
{
    bool known[SNP_TCB] = { false };

    for (const struct part *p = line->turin ? parts_turin : parts_before; p->number; p++) {
        struct der value;
        uint8_t number;

        known[p->at] = true;
        if (!tcb_extension(c, p->number, &value) || !der_byte(value, &number))
            return error_set(err, ERROR_MISSING, NULL, "the VCEK does not say part %u of the TCB it stands for", p->number);
        if (number != r[REPORTED + p->at])
            return error_set(err, ERROR_MISMATCH, "fetch the VCEK of the TCB that the report has",
                             "part %u of the TCB: %u in the report, %u in the VCEK", p->number, r[REPORTED + p->at], number);
        if (r[REPORTED + p->at] > r[CURRENT + p->at])
            return error_set(err, ERROR_MISMATCH, NULL, "the TCB is reported newer than it is");
    }
    for (size_t i = 0; i < SNP_TCB; i++)
        if (!known[i] && r[REPORTED + i])
            return error_set(err, ERROR_UNSUPPORTED, NULL, "byte %zu of the TCB is not known here", i);
    for (uint8_t spare = SPARE_FIRST; spare <= SPARE_LAST; spare++) {
        struct der value;
        uint8_t number;

        if (tcb_extension(c, spare, &value) && (!der_byte(value, &number) || number))
            return error_set(err, ERROR_UNSUPPORTED, NULL, "part %u of the VCEK's TCB is not known here", spare);
    }
    return true;
}

/* The chip's number stands in the extension as it is, in some certificates as an OCTET STRING. */
static bool check_chip(const struct snp_line *line, const struct certificate *c, const uint8_t *r, struct error *err)
{
    const size_t size = line->turin ? 8 : SNP_CHIP;
    struct der value, inner;

    if (!short_extension(c, 4, &value))
        return error_set(err, ERROR_MISSING, NULL, "the certificate names no chip");
    if (value.size == size + 2 && der_take(&value, DER_OCTETS, &inner, NULL))
        value = inner;
    if (value.size != size || memcmp(value.at, r + CHIP, size) != 0 || !is_zero(r, CHIP + size, CHIP + SNP_CHIP))
        return error_set(err, ERROR_MISMATCH, NULL, "the VCEK is another chip's than the report");
    return true;
}

/* r and s stand with the low byte first. */
static bool check_signature(const struct certificate *c, const uint8_t *report, struct error *err)
{
    uint8_t r[P384_SIZE], s[P384_SIZE];

    for (size_t i = 0; i < P384_SIZE; i++) {
        r[i] = report[SIGNED + P384_SIZE - 1 - i];
        s[i] = report[SIGNATURE_S + P384_SIZE - 1 - i];
    }
    return signature_p384_stands(c->key, (struct der){ report, SIGNED }, r, s) ||
           error_set(err, ERROR_SIGNATURE, NULL, "the VCEK did not sign the report");
}

bool snp_verify(const struct snp_roots *roots, struct der report, const struct der chain[3], struct snp_machine *out,
                struct error *err)
{
    struct certificate c[3];
    const uint8_t *r = report.at;

    if (!check_report(report, err))
        return error_at(err, "report");
    for (size_t i = 0; i < 3; i++)
        if (!certificate_read(chain[i], &c[i], err))
            return error_at(err, "certificates[%zu]", i);

    const struct snp_line *line = line_of(roots, chain[2]);

    if (!line)
        return error_set(err, ERROR_SIGNATURE, "the order is: VCEK, intermediate (ASK), root (ARK)",
                         "%s is no root that is pinned here", c[2].name) ||
               error_at(err, "certificates[2]");
    if (!check_chain(line, c, err))
        return false;
    if (!check_product(line, &c[0], r, err) || !check_tcb(line, &c[0], r, err) || !check_chip(line, &c[0], r, err))
        return error_at(err, "certificates[0]");
    if (!check_signature(&c[0], r, err))
        return error_at(err, "report");
    *out = (struct snp_machine){ .line = line, .version = u32_at(r, VERSION), .policy = u64_at(r, POLICY) };
    memcpy(out->tcb, r + REPORTED, sizeof out->tcb);
    memcpy(out->chip, r + CHIP, sizeof out->chip);
    memcpy(out->data, r + DATA, sizeof out->data);
    memcpy(out->measurement, r + MEASUREMENT, sizeof out->measurement);
    return true;
}

bool snp_chip(struct der report, uint8_t chip[SNP_CHIP])
{
    if (report.size != SNP_REPORT)
        return false;
    memcpy(chip, report.at + CHIP, SNP_CHIP);
    return true;
}
