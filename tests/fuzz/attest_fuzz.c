/* Evidence of a machine, of any bytes: one that begins with "{" as JSON, else a report of 1184 bytes with three certificates behind it, each after
 * its length. There whatever comes last is pinned, so that what lies behind the roots is reached; of JSON nothing stands under the vendor's. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/buffer.h"
#include "native/base/json.h"
#include "runtime/attest/attest.h"
#include "tests/fuzz/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_parts(const uint8_t *bytes, size_t size)
{
    struct reader r = reader_of(bytes, size);
    struct der report = { reader_bytes(&r, SNP_REPORT), SNP_REPORT }, chain[ATTEST_CERTIFICATES];
    struct snp_machine machine;
    struct error err = { 0 };

    if (!report.at)
        report = (struct der){ bytes, size };
    for (size_t i = 0; i < ATTEST_CERTIFICATES; i++) {
        size_t length = reader_u16(&r);
        const size_t left = reader_left(&r);

        length = length < left ? length : left;
        chain[i] = (struct der){ reader_bytes(&r, length), length };
        if (!chain[i].at)
            chain[i] = (struct der){ bytes, 0 };

        struct certificate c;
        struct error why = { 0 };
        const bool read = fuzz_tell("certificate", certificate_read(chain[i], &c, &why), &why);

        if (read && (c.body.at < chain[i].at || c.signature.at + c.signature.size != chain[i].at + length))
            abort();
    }
    const bool turin = size > 3 && bytes[3]; /* of its version only the first byte is used */
    struct snp_line line = { .name = turin ? "Turin" : "Genoa",
                             .family = turin ? 0x1a : 0x19,
                             .models = { { 0x00, 0x1f }, { 0xa0, 0xaf } },
                             .turin = turin };
    uint8_t copy[SNP_REPORT];

    memcpy(copy, report.at, report.size < SNP_REPORT ? report.size : SNP_REPORT);
    if (report.size == SNP_REPORT) {
        copy[3] = 0;
        report.at = copy;
    }
    crypto_hash_sha256(line.root, chain[2].at, chain[2].size);
    fuzz_tell("report", snp_verify(&(struct snp_roots){ &line, 1 }, report, chain, &machine, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size && bytes[0] == '{') {
        struct error err = { 0 };
        struct attest_machine machine;
        json_t *evidence = json_read((const char *)bytes, size, ATTEST_FILE, &err);

        if (evidence && fuzz_tell("evidence", attest_verify(&snp_vendor_roots, evidence, &machine, &err), &err))
            abort();
        json_decref(evidence);
    } else {
        read_parts(bytes, size);
    }
    return 0;
}
