/* Evidence of hardware: what to ask the machine for, what to attach to an enrolment, and what stands in it. */
#include <stdio.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/hex.h"
#include "native/base/json.h"
#include "runtime/attest/attest.h"
#include "runtime/cli/commands.h"
#include "runtime/doc/cid.h"
#include "runtime/doc/did.h"
#include "runtime/role/home.h"

enum { CERTIFICATE_FILE = 1 << 16 };

static const struct option whose_options[] = {
    { "name", "NAME|DID", "whose: a node of this home, or a DID (default: trainer)" },
    { "out", "FILE", "also write the 64 bytes to FILE, as tools of SEV-SNP take them" },
    { NULL, NULL, NULL },
};
static const struct option verify_options[] = {
    { "run", "RUN", "also ask whether the report was made for this run, and for --name" },
    { "name", "NAME|DID", "a node of this home, or a DID (default: trainer)" },
    { NULL, NULL, NULL },
};

/* The DID meant by --name. */
static bool read_did(const struct invocation *in, char did[DID_TEXT], struct error *err)
{
    const char *word = option_text(in, "name", "trainer");
    char found[DID_TEXT];
    struct public_key key;

    if (!did_parse_strict(home_did(in->home, word, found), &key, NULL))
        return error_set(err, ERROR_MISSING, "rondo key new --name NAME makes its key; or give its DID",
                         "%.80s is no node of %.200s, nor a DID", word, in->home);
    did_text(&key, did);
    return true;
}

static bool read_run(const char *run, struct error *err)
{
    struct hash id;

    return cid_parse(run, &id, err) || error_at(err, "RUN");
}

/* ---- data ----------------------------------------------------------------------------------------------------------------- */

static int data_main(struct invocation *in)
{
    struct error err = { 0 };
    char did[DID_TEXT], digits[2 * SNP_DATA + 1];
    const char *run = in->argument[0], *out = option_text(in, "out", NULL);
    uint8_t data[SNP_DATA];

    if (!read_run(run, &err) || !read_did(in, did, &err))
        return command_fail(in, &err);
    attest_data(run, did, data);
    hex_encode(data, sizeof data, digits);
    if (out && !file_write(out, data, sizeof data, 0644, &err))
        return command_fail(in, &err);
    if (in->json)
        command_print_json(json_pack("{s:s, s:s, s:s}", "run", run, "did", did, "report_data", digits));
    else
        printf("%s\n", digits);
    return EXIT_OK;
}

const struct command command_attest_data = {
    "attest data",
    "RUN",
    "print what a machine's report must carry to stand for a node in a run",
    "rondo attest data RUN --name trainer --out request.bin",
    "64 bytes as hexadecimal digits: a hash of run and DID, so that nobody else can use the report. Ask the guest's firmware for "
    "a\n"
    "report with these bytes as its report data, at VMPL 0; then rondo attest pack.",
    whose_options,
    data_main,
};

/* ---- pack ----------------------------------------------------------------------------------------------------------------- */

/* Certificates as they are found: DER, or any number in PEM. */
struct found {
    struct buffer bytes[ATTEST_CERTIFICATES];
    size_t count;
};

static bool add_certificate(struct found *f, const void *bytes, size_t size, struct error *err)
{
    if (f->count == ATTEST_CERTIFICATES)
        return error_set(err, ERROR_LIMIT, "give VCEK, ASK and ARK", "more than %d certificates", ATTEST_CERTIFICATES);
    if (size >= ATTEST_CERTIFICATE)
        return error_set(err, ERROR_LIMIT, NULL, "%zu bytes, a certificate has %d at most", size, ATTEST_CERTIFICATE - 1);
    buffer_add(&f->bytes[f->count++], bytes, size);
    return true;
}

static bool add_pem(struct found *f, const char *text, struct error *err)
{
    static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
    const char *from, *to;

    while ((from = strstr(text, begin))) {
        uint8_t bytes[CERTIFICATE_FILE];
        size_t size;

        from += sizeof begin - 1;
        to = strstr(from, end);
        if (!to || sodium_base642bin(bytes, sizeof bytes, from, (size_t)(to - from), "\r\n", &size, NULL,
                                     sodium_base64_VARIANT_ORIGINAL) != 0)
            return error_set(err, ERROR_SYNTAX, NULL, "a certificate that is no PEM");
        if (!add_certificate(f, bytes, size, err))
            return false;
        text = to + sizeof end - 1;
    }
    return true;
}

static bool add_file(struct found *f, const char *path, struct error *err)
{
    struct buffer bytes = { 0 };
    bool ok = file_read(path, CERTIFICATE_FILE, &bytes, err);

    if (ok && strstr(buffer_text(&bytes), "-----BEGIN"))
        ok = add_pem(f, buffer_text(&bytes), err) || error_at(err, "%s", path);
    else if (ok)
        ok = add_certificate(f, bytes.bytes, bytes.size, err) || error_at(err, "%s", path);
    buffer_free(&bytes);
    return ok;
}

static int pack_main(struct invocation *in)
{
    struct error err = { 0 };
    struct buffer report = { 0 };
    struct found f = { 0 };
    bool ok = file_read(in->argument[0], CERTIFICATE_FILE, &report, &err);

    if (ok && report.size != SNP_REPORT)
        ok = error_set(&err, ERROR_TRUNCATED, "give the report first: the bytes as the firmware gave them",
                       "%zu bytes, a report has %d", report.size, SNP_REPORT) ||
             error_at(&err, "%s", in->argument[0]);
    for (size_t i = 1; ok && i < in->arguments; i++)
        ok = add_file(&f, in->argument[i], &err);
    if (ok && f.count != ATTEST_CERTIFICATES)
        ok = error_set(&err, ERROR_MISSING, "give VCEK, ASK and ARK, in this order", "%zu certificates, %d are needed", f.count,
                       ATTEST_CERTIFICATES);
    if (ok) {
        struct der certificates[ATTEST_CERTIFICATES];

        for (size_t i = 0; i < ATTEST_CERTIFICATES; i++)
            certificates[i] = (struct der){ f.bytes[i].bytes, f.bytes[i].size };

        json_t *evidence = attest_pack((struct der){ report.bytes, report.size }, certificates);

        json_dumpf(evidence, stdout, JSON_INDENT(2));
        printf("\n");
        json_decref(evidence);
    }
    buffer_free(&report);
    for (size_t i = 0; i < ATTEST_CERTIFICATES; i++)
        buffer_free(&f.bytes[i]);
    return ok ? EXIT_OK : command_fail(in, &err);
}

const struct command command_attest_pack = {
    "attest pack",
    "REPORT CERTIFICATE...",
    "put a report of AMD SEV-SNP and its certificates into one file of evidence",
    "rondo attest pack report.bin vcek.der ask_ark.pem >evidence.json",
    "REPORT has 1184 bytes, as the firmware gives it. The certificates are VCEK, ASK and ARK in this order, each in DER or PEM; "
    "a file "
    "of PEM\n"
    "may hold several. AMD's key server has them: kdsintf.amd.com/vcek/v1. Nothing is verified: rondo attest verify does.",
    NULL,
    pack_main,
};

/* ---- verify --------------------------------------------------------------------------------------------------------------- */

static json_t *told(const struct attest_machine *machine)
{
    const struct snp_machine *snp = &machine->snp;
    char root[HASH_TEXT], chip[2 * SNP_CHIP + 1], data[2 * SNP_DATA + 1], measurement[2 * SNP_MEASUREMENT + 1],
        tcb[2 * SNP_TCB + 1], policy[17];

    snprintf(policy, sizeof policy, "%llx", (unsigned long long)snp->policy);
    return json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:s}", "kind", machine->kind, "root",
                     hash_hex(machine->root, root), "processor", snp->line->name, "report_version", (json_int_t)snp->version,
                     "chip", hex_encode(snp->chip, SNP_CHIP, chip), "tcb", hex_encode(snp->tcb, SNP_TCB, tcb), "policy", policy,
                     "measurement", hex_encode(snp->measurement, SNP_MEASUREMENT, measurement), "report_data",
                     hex_encode(snp->data, SNP_DATA, data));
}

static int verify_main(struct invocation *in)
{
    struct error err = { 0 };
    struct attest_machine machine;
    const char *run = option_text(in, "run", NULL);
    char did[DID_TEXT] = "";
    json_t *evidence = NULL, *out, *value;
    const char *name;

    if (run && (!read_run(run, &err) || !read_did(in, did, &err)))
        return command_fail(in, &err);
    evidence = json_read_file(in->argument[0], ATTEST_FILE, &err);
    if (!evidence)
        return command_fail(in, &err);

    const bool stands =
        attest_verify(&snp_vendor_roots, evidence, &machine, &err) && (!run || attest_is_for(&machine, run, did, &err));

    json_decref(evidence);
    if (!stands) {
        error_at(&err, "%s", in->argument[0]);
        command_fail(in, &err);
        return EXIT_VERDICT;
    }
    out = told(&machine);
    if (run)
        json_object_set_new(out, "did", json_string(did));
    if (run)
        json_object_set_new(out, "run", json_string(run));
    if (in->json) {
        command_print_json(out);
        return EXIT_OK;
    }
    json_object_foreach(out, name, value)
    {
        if (json_is_integer(value))
            printf("%-15s %lld\n", name, (long long)json_integer_value(value));
        else
            printf("%-15s %s\n", name, json_string_value(value));
    }
    json_decref(out);
    return EXIT_OK;
}

const struct command command_attest_verify = {
    "attest verify",
    "FILE",
    "say what stands in evidence of hardware, and whether a run would take it",
    "rondo attest verify evidence.json\nrondo attest verify evidence.json --run RUN --name trainer --json",
    "Under the vendors' roots that are compiled in, with no service asked and no clock (docs/protocol.md, section 3). Exit "
    "status 1: "
    "it\n"
    "does not stand, or was made for another run or machine; the line says what is wrong. `root` is what counts once in a run.",
    verify_options,
    verify_main,
};
