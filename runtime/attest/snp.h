/* snp.h - reports of AMD SEV-SNP, and the chain of certificates that ends in the chip that signed one.
 *
 *     ARK-Milan ──> SEV-Milan ──> SEV-VCEK ──> report        RSA-4096, RSA-4096, P-384
 *      pinned                     chip, TCB     chip, TCB, report data
 *
 * A report has 1184 bytes, little-endian (AMD 56860, "SEV Secure Nested Paging Firmware ABI", ATTESTATION_REPORT); the extensions of a VCEK
 * stand in AMD 57230. Taken is a report of version 2 to 5, of a guest that may not be debugged nor migrated, asked for at VMPL 0, signed
 * by a VCEK whose TCB and chip are the report's. A chip that the host hides (MASK_CHIP_KEY, VLEK) is no identity, and refused.
 */
#ifndef RONDO_ATTEST_SNP_H
#define RONDO_ATTEST_SNP_H

#include "native/base/error.h"
#include "runtime/attest/certificate.h"

enum { SNP_REPORT = 1184, SNP_DATA = 64, SNP_CHIP = 64, SNP_MEASUREMENT = 48, SNP_TCB = 8, SNP_DIGEST = 32 };

/* A line of processors: its root by the SHA-256 of its certificate, and how its firmware counts. */
struct snp_line {
    const char *name; /* "Milan": of the root ARK-Milan, the intermediate SEV-Milan, the product's name in the VCEK */
    uint8_t root[SNP_DIGEST];
    uint8_t family;
    struct {
        uint8_t first, last;
    } models[2];
    bool turin; /* TCB with an FMC before the rest, 8 bytes of chip */
};

/* What is pinned; a parameter, so that tests have roots of their own and nothing can switch another on. */
struct snp_roots {
    const struct snp_line *lines;
    size_t count;
};

/* ARK-Milan, ARK-Genoa, ARK-Turin. */
extern const struct snp_roots snp_vendor_roots;

struct snp_machine {
    const struct snp_line *line;
    uint32_t version;
    uint64_t policy;
    uint8_t tcb[SNP_TCB];
    uint8_t chip[SNP_CHIP];
    uint8_t data[SNP_DATA];
    uint8_t measurement[SNP_MEASUREMENT];
};

/* `chain`: VCEK, the line's intermediate, its root, in this order. False with `err` at the first thing that is not as it must be; its place is
 * the part of the evidence: "report", "certificates[0]". */
bool snp_verify(const struct snp_roots *roots, struct der report, const struct der chain[3], struct snp_machine *out,
                struct error *err);

/* The chip that a report names, whoever signed it. False when it has another length. */
bool snp_chip(struct der report, uint8_t chip[SNP_CHIP]);

#endif
