/* attest.h - evidence of a machine: what an enrolment shows, whether it stands, and which hardware root it ends in.
 *
 *     { "kind": "sev-snp", "report": BASE64, "certificates": [ BASE64 of DER: VCEK, ASK, ARK ] }
 *
 *     data(run, did) = H("rondo/evidence", run id text as a part, DID as a part), then 32 zero bytes     what the report must carry
 *     root           = H("rondo/hardware", kind as a part, the chip's 64 bytes as a part)                one machine, whoever asks
 *
 * Verified here and nowhere else: no vendor's service is asked, no list of revocations, and no clock (the validity of certificates is not looked
 * at), so that every member and every later audit says the same. Only `sev-snp` is verified; other kinds are refused by name.
 */
#ifndef RONDO_ATTEST_ATTEST_H
#define RONDO_ATTEST_ATTEST_H

#include <jansson.h>

#include "runtime/attest/snp.h"
#include "runtime/crypto/hash.h"

/* Of the three certificates in DER, each: real ones have 1289 to 1688 bytes. Lengths of base64 that hold a report, and that. */
enum {
    ATTEST_CERTIFICATES = 3,
    ATTEST_CERTIFICATE = 2049,
    ATTEST_REPORT_TEXT = (SNP_REPORT + 2) / 3 * 4,
    ATTEST_CERTIFICATE_TEXT = ATTEST_CERTIFICATE / 3 * 4,
    ATTEST_FILE = 1 << 14, /* bytes of a file that holds evidence */
};

struct attest_machine {
    const char *kind; /* "sev-snp" */
    struct hash root;
    struct snp_machine snp;
};

/* Whether the evidence stands under these roots. False with `err`, its place the field: "evidence: report". */
bool attest_verify(const struct snp_roots *roots, const json_t *evidence, struct attest_machine *out, struct error *err);

/* The root of evidence that attest_verify has found good, without looking again. False when it has no form that could. */
bool attest_root(const json_t *evidence, struct hash *root);

/* What a report of this machine for this run carries. */
void attest_data(const char *run, const char *did, uint8_t data[SNP_DATA]);

/* Whether it carries that: else it was made for another key or run. */
bool attest_is_for(const struct attest_machine *machine, const char *run, const char *did, struct error *err);

/* The evidence of a report and three certificates in DER, not verified. New reference. */
json_t *attest_pack(struct der report, const struct der certificates[ATTEST_CERTIFICATES]);

#endif
