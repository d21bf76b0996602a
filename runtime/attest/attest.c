#include "runtime/attest/attest.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static const char sev_snp[] = "sev-snp";

/* Known, but not verified here: their names are no spelling mistakes. */
static const char *const later[] = { "tdx", "nvidia", "tpm" };

static bool check_kind(const json_t *evidence, struct error *err)
{
    const char *kind = json_string_value(json_object_get(evidence, "kind"));

    if (!kind)
        return error_set(err, ERROR_MISSING, NULL, "evidence without a kind") || error_at(err, "evidence: kind");
    if (strcmp(kind, sev_snp) == 0)
        return true;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (strcmp(kind, later[i]) == 0)
            return error_set(err, ERROR_UNSUPPORTED, NULL, "%s: not verified by this version; sev-snp is", kind) ||
                   error_at(err, "evidence: kind");
    return error_set(err, ERROR_UNKNOWN, NULL, "unknown kind \"%.32s\"; known: sev-snp", kind) || error_at(err, "evidence: kind");
}

/* Refuses spaces, missing padding and unused bits that are not zero: one text for the same bytes. */
static bool read_base64(const json_t *text, uint8_t *bytes, size_t capacity, struct der *out, struct error *err)
{
    const char *from = json_string_value(text), *end;
    const size_t length = json_string_length(text);
    size_t size;

    if (!from || length > capacity / 3 * 4)
        return error_set(err, from ? ERROR_LIMIT : ERROR_MISSING, NULL, from ? "longer than any that is known" : "no base64");
    if (sodium_base642bin(bytes, capacity, from, length, NULL, &size, &end, sodium_base64_VARIANT_ORIGINAL) != 0 ||
        end != from + length)
        return error_set(err, ERROR_SYNTAX, NULL, "no base64");
    *out = (struct der){ bytes, size };
    return true;
}

static struct hash root_of(const uint8_t chip[SNP_CHIP])
{
    struct hasher h;

    hash_start(&h, "rondo/hardware");
    hash_text(&h, sev_snp);
    hash_part(&h, chip, SNP_CHIP);
    return hash_end(&h);
}

bool attest_verify(const struct snp_roots *roots, const json_t *evidence, struct attest_machine *out, struct error *err)
{
    uint8_t report[SNP_REPORT + 1], certificates[ATTEST_CERTIFICATES][ATTEST_CERTIFICATE];
    struct der report_bytes, chain[ATTEST_CERTIFICATES];
    const json_t *list = json_object_get(evidence, "certificates");

    if (!check_kind(evidence, err))
        return false;
    if (!read_base64(json_object_get(evidence, "report"), report, sizeof report, &report_bytes, err))
        return error_at(err, "evidence: report");
    if (json_array_size(list) != ATTEST_CERTIFICATES)
        return error_set(err, ERROR_MISSING, "give VCEK, intermediate (ASK) and root (ARK)", "%zu certificates, %d are needed",
                         json_array_size(list), ATTEST_CERTIFICATES) ||
               error_at(err, "evidence: certificates");
    for (size_t i = 0; i < ATTEST_CERTIFICATES; i++)
        if (!read_base64(json_array_get(list, i), certificates[i], sizeof certificates[i], &chain[i], err))
            return error_at(err, "evidence: certificates[%zu]", i);
    if (!snp_verify(roots, report_bytes, chain, &out->snp, err))
        return error_at(err, "evidence");
    out->kind = sev_snp;
    out->root = root_of(out->snp.chip);
    return true;
}

bool attest_root(const json_t *evidence, struct hash *root)
{
    uint8_t report[SNP_REPORT + 1], chip[SNP_CHIP];
    struct der bytes;

    if (!check_kind(evidence, NULL) || !read_base64(json_object_get(evidence, "report"), report, sizeof report, &bytes, NULL) ||
        !snp_chip(bytes, chip))
        return false;
    *root = root_of(chip);
    return true;
}

void attest_data(const char *run, const char *did, uint8_t data[SNP_DATA])
{
    struct hasher h;

    hash_start(&h, "rondo/evidence");
    hash_text(&h, run);
    hash_text(&h, did);

    struct hash digest = hash_end(&h);

    memset(data, 0, SNP_DATA);
    memcpy(data, digest.bytes, sizeof digest.bytes);
}

bool attest_is_for(const struct attest_machine *machine, const char *run, const char *did, struct error *err)
{
    uint8_t data[SNP_DATA];

    attest_data(run, did, data);
    return memcmp(machine->snp.data, data, sizeof data) == 0 ||
           error_set(err, ERROR_MISMATCH, "ask the machine for one with what rondo attest data prints",
                     "the report was not made for this machine's key and this run") ||
           error_at(err, "evidence: report");
}

static json_t *base64_of(struct der bytes)
{
    const size_t capacity = sodium_base64_ENCODED_LEN(bytes.size, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(capacity);
    json_t *out =
        text ? json_string(sodium_bin2base64(text, capacity, bytes.at, bytes.size, sodium_base64_VARIANT_ORIGINAL)) : NULL;

    free(text);
    return out;
}

json_t *attest_pack(struct der report, const struct der certificates[ATTEST_CERTIFICATES])
{
    json_t *list = json_array();

    for (size_t i = 0; i < ATTEST_CERTIFICATES; i++)
        json_array_append_new(list, base64_of(certificates[i]));
    return json_pack("{s:s, s:o, s:o}", "kind", sev_snp, "report", base64_of(report), "certificates", list);
}
