/* Evidence of machines: real reports of AMD against the pinned roots (RONDO_FIXTURES), and machines that are made here, one thing wrong in each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/base/hex.h"
#include "tests/fixture/attest_chain.h"

static const char run[] = "bafkrun", did[] = "did:tenzro:machine:z6MkOne";

/* What is wrong with the chain, "" when it stands. */
static const char *fault_of(const struct attest_chain *c, const struct snp_roots *roots, struct attest_machine *machine)
{
    static char text[1024];
    struct error err = { 0 };
    json_t *evidence = attest_chain_pack(c);
    const bool ok = attest_verify(roots, evidence, machine, &err);

    json_decref(evidence);
    return ok ? "" : error_text(&err, text, sizeof text);
}

static void refuses(const struct attest_chain *c, const char *why)
{
    struct attest_machine machine;
    const char *fault = fault_of(c, &c->roots, &machine);

    if (!strstr(fault, why) || !*why)
        fail_msg("\"%s\" where \"%s\" was expected", fault, why);
}

static void stands(const struct attest_chain *c)
{
    struct attest_machine machine;

    assert_string_equal(fault_of(c, &c->roots, &machine), "");
}

/* ---- machines that are made here ------------------------------------------------------------------------------------------- */

static void a_machine_of_either_kind_stands_under_its_root_and_no_other(void **state)
{
    (void)state;
    static const struct attest_plan plans[] = {
        { .chip = 1, .tcb = { 10, 0, 0, 0, 0, 0, 23, 200 } },
        { .chip = 1, .version = 2, .long_trailer = true },
        { .chip = 1, .version = 4, .form = CHIP_OCTETS },
        { .chip = 1, .version = 5, .product = "Genoa-B1" },
        { .chip = 1, .turin = true, .version = 5, .tcb = { 1, 1, 1, 4, 0, 0, 0, 81 } },
        { .chip = 1, .turin = true, .form = CHIP_OCTETS },
    };

    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct attest_chain c;
        struct attest_machine machine;

        attest_chain_make(&c, &plans[i]);
        assert_string_equal(fault_of(&c, &c.roots, &machine), "");
        assert_string_equal(machine.kind, "sev-snp");
        assert_memory_equal(machine.snp.tcb, plans[i].tcb, SNP_TCB);
        assert_non_null(strstr(fault_of(&c, &snp_vendor_roots, &machine), "is no root that is pinned here"));
        attest_chain_free(&c);
    }
}

static void one_chip_has_one_root_whoever_asks_and_two_chips_have_two(void **state)
{
    (void)state;
    struct attest_chain a, b, other;
    struct attest_machine one, same, another;

    attest_chain_make(&a, &(struct attest_plan){ .chip = 1 });
    attest_chain_make(&b, &(struct attest_plan){ .chip = 1, .tcb = { 4 }, .under = &a });
    attest_chain_make(&other, &(struct attest_plan){ .chip = 2, .under = &a });
    attest_data(run, did, a.report + 0x50);
    attest_chain_sign(&a);
    assert_string_equal(fault_of(&a, &a.roots, &one), "");
    assert_string_equal(fault_of(&b, &a.roots, &same), "");
    assert_string_equal(fault_of(&other, &a.roots, &another), "");
    assert_true(hash_equal(one.root, same.root));
    assert_false(hash_equal(one.root, another.root));
    attest_chain_free(&a);
    attest_chain_free(&b);
    attest_chain_free(&other);
}

static void a_report_is_of_one_key_and_one_run(void **state)
{
    (void)state;
    struct attest_chain c;
    struct attest_machine machine;
    struct error err = { 0 };

    attest_chain_make(&c, &(struct attest_plan){ .chip = 1 });
    assert_string_equal(fault_of(&c, &c.roots, &machine), "");
    assert_false(attest_is_for(&machine, run, did, &err));
    attest_data(run, did, c.report + 0x50);
    attest_chain_sign(&c);
    assert_string_equal(fault_of(&c, &c.roots, &machine), "");
    assert_true(attest_is_for(&machine, run, did, &err));
    assert_false(attest_is_for(&machine, run, "did:tenzro:machine:z6MkTwo", &err));
    assert_false(attest_is_for(&machine, "bafkother", did, &err));
    assert_false(attest_is_for(&machine, "bafkrundid", ":tenzro:machine:z6MkOne", &err));
    c.report[0x50 + 63] = 1; /* all 64 bytes count */
    attest_chain_sign(&c);
    assert_string_equal(fault_of(&c, &c.roots, &machine), "");
    assert_false(attest_is_for(&machine, run, did, &err));
    attest_chain_free(&c);
}

/* The bytes that a report carries are told to whoever asks a machine, so they must not change. From Python's hashlib.blake2b. */
static void what_a_report_carries_is_fixed(void **state)
{
    (void)state;
    uint8_t data[SNP_DATA];
    char digits[2 * SNP_DATA + 1];

    attest_data(run, did, data);
    assert_string_equal(hex_encode(data, sizeof data, digits),
                        "5fbbb10eef9467e88b6fb9f7c8e9d9ad561c1aee11f3678d3e9e23c37bad27f1"
                        "0000000000000000000000000000000000000000000000000000000000000000");
}

static void no_byte_of_a_report_may_change(void **state)
{
    (void)state;
    struct attest_chain c;
    struct attest_machine machine;

    attest_chain_make(&c, &(struct attest_plan){ .chip = 1, .version = 5 });
    for (size_t i = 0; i < SNP_REPORT; i++) {
        c.report[i] ^= (uint8_t)(1 << i % 8);
        if (!*fault_of(&c, &c.roots, &machine))
            fail_msg("byte 0x%zx was changed, and the report stands", i);
        c.report[i] ^= (uint8_t)(1 << i % 8);
    }
    stands(&c);
    attest_chain_free(&c);
}

/* Signed as they are: what refuses them is the rule, not the signature. */
static void what_a_report_must_not_say_is_refused_also_when_the_chip_signed_it(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
        uint32_t version;
        const char *why;
    } cases[] = {
        { 0x00, 1, 3, "version 1:" },
        { 0x00, 6, 3, "version 6:" },
        { 0x01, 1, 3, "version 259" },
        { 0x0a, 0x0b, 3, "may debug" },
        { 0x0a, 0x07, 3, "migration agent" },
        { 0x0a, 0x01, 3, "bits that are not known" },
        { 0x0b, 0x04, 3, "bits that are not known" },
        { 0x0f, 0x80, 3, "bits that are not known" },
        { 0x30, 1, 3, "VMPL 1" },
        { 0x34, 2, 3, "signature algorithm 2" },
        { 0x48, 0x02, 3, "hides which chip" },
        { 0x48, 0x04, 3, "signed by key 1" },
        { 0x48, 0x1c, 3, "signed by key 7" },
        { 0x48, 0x20, 3, "reserved" },
        { 0x4c, 1, 3, "0x4c to 0x50" },
        { 0x188, 0x19, 2, "0x188 to 0x1a0 of a version 2" },
        { 0x18b, 1, 3, "0x18b to 0x1a0" },
        { 0x188, 0x1a, 3, "no Genoa" },
        { 0x189, 0x40, 3, "no Genoa" },
        { 0x1a0, 9, 3, "another chip" },
        { 0x180, 1, 3, "part 1 of the TCB: 1 in the report, 0 in the VCEK" },
        { 0x187, 200, 3, "part 8 of the TCB" },
        { 0x182, 1, 3, "byte 2 of the TCB" },
        { 0x1eb, 1, 3, "0x1eb to 0x1ec" },
        { 0x1f8, 1, 4, "0x1f8 to 0x2a0 of a version 4" },
        { 0x208, 1, 5, "0x208 to 0x2a0" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct attest_chain c;

        attest_chain_make(&c, &(struct attest_plan){ .chip = 1, .version = cases[i].version });
        c.report[cases[i].at] = cases[i].value;
        attest_chain_sign(&c);
        refuses(&c, cases[i].why);
        attest_chain_free(&c);
    }
}

static void a_chip_that_the_host_hides_is_no_machine(void **state)
{
    (void)state;
    struct attest_chain c;

    attest_chain_make(&c, &(struct attest_plan){ .chip = 1 });
    memset(c.report + 0x1a0, 0, SNP_CHIP);
    attest_chain_sign(&c);
    refuses(&c, "hides which chip");
    attest_chain_free(&c);
}

static void a_chip_of_eight_bytes_has_zeros_behind(void **state)
{
    (void)state;
    struct attest_chain c;

    attest_chain_make(&c, &(struct attest_plan){ .chip = 1, .turin = true });
    c.report[0x1a0 + 8] = 1;
    attest_chain_sign(&c);
    refuses(&c, "another chip");
    attest_chain_free(&c);
}

/* A TCB that is reported higher than what runs; and one whose low part is hidden by a high one, were they one number. */
static void a_tcb_is_compared_part_by_part(void **state)
{
    (void)state;
    struct attest_chain c;

    attest_chain_make(&c, &(struct attest_plan){ .chip = 1, .tcb = { 3, 0, 0, 0, 0, 0, 8, 115 } });
    c.report[0x38] = 2, c.report[0x3f] = 206;
    attest_chain_sign(&c);
    refuses(&c, "reported newer than it is");
    c.report[0x38] = 3;
    attest_chain_sign(&c);
    stands(&c);
    attest_chain_free(&c);
}

static void what_a_certificate_must_say_is_asked_for(void **state)
{
    (void)state;
    static const struct {
        struct attest_plan plan;
        const char *why;
    } cases[] = {
        { { .leaf = "SEV-VLEK" }, "SEV-VLEK is not a VCEK" },
        { { .leaf = "SEV-VCEK2" }, "is not a VCEK" },
        { { .between = "SEV-VLEK-Genoa" }, "SEV-VLEK-Genoa is not SEV-Genoa" },
        { { .between = "SEV-Milan" }, "SEV-Milan is not SEV-Genoa" },
        { { .cross = true }, "is not a VCEK under SEV-Genoa" },
        { { .issuer = "SEV-Milan" }, "is not a VCEK under SEV-Genoa" },
        { { .spare = 1 }, "part 4 of the VCEK's TCB is not known" },
        { { .form = CHIP_NONE }, "names no chip" },
        { { .product = "Milan" }, "not one of a Genoa" },
        { { .product = "Genoa2" }, "not one of a Genoa" },
        { { .product = "G" }, "not one of a Genoa" },
        { { .structure = true }, "not one of a Genoa" },
        { { .lacks = 1 }, "does not say part 1" },
        { { .lacks = 2 }, "does not say part 2" },
        { { .lacks = 3 }, "does not say part 3" },
        { { .lacks = 8 }, "does not say part 8" },
        { { .lacks = 9, .turin = true }, "does not say part 9" },
        { { .wrong = 3 }, "part 3 of the TCB: 0 in the report, 1 in the VCEK" },
        { { .wrong = 9, .turin = true }, "part 9 of the TCB" },
        { { .twice = true }, "another form" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct attest_chain c;
        struct attest_plan plan = cases[i].plan;

        plan.chip = 1;
        attest_chain_make(&c, &plan);
        refuses(&c, cases[i].why);
        attest_chain_free(&c);
    }
}

static void certificates_stand_in_their_order_and_belong_together(void **state)
{
    (void)state;
    static const size_t orders[][3] = { { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 1, 0 }, { 2, 0, 1 }, { 0, 0, 2 },
                                        { 0, 2, 2 }, { 1, 1, 2 }, { 0, 1, 1 }, { 0, 1, 0 }, { 2, 2, 2 } };
    struct attest_chain c, other;
    struct buffer kept[3], leaf;

    attest_chain_make(&c, &(struct attest_plan){ .chip = 1 });
    memcpy(kept, c.certificates, sizeof kept);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        for (size_t k = 0; k < 3; k++)
            c.certificates[k] = kept[orders[i][k]];
        refuses(&c, "the order is: VCEK");
    }
    memcpy(c.certificates, kept, sizeof kept);
    for (size_t k = 0; k < 3; k++) { /* one more byte: two texts for one certificate */
        buffer_add_u8(&c.certificates[k], 0);
        refuses(&c, "no X.509 certificate");
        c.certificates[k].size--;
    }
    attest_chain_make(&other, &(struct attest_plan){ .chip = 2, .under = &c });
    leaf = c.certificates[0];
    c.certificates[0] = other.certificates[0]; /* a good one, another chip's */
    refuses(&c, "another chip");
    memset(c.report + 0x1a0, 2, SNP_CHIP); /* and what it names put in */
    refuses(&c, "did not sign");
    memset(c.report + 0x1a0, 1, SNP_CHIP);
    c.certificates[0] = leaf;
    stands(&c);
    attest_chain_free(&other);
    attest_chain_free(&c);
}

static void no_byte_of_a_certificate_may_change(void **state)
{
    (void)state;
    struct attest_chain c;
    struct attest_machine machine;

    attest_chain_make(&c, &(struct attest_plan){ .chip = 1 });
    for (size_t k = 0; k < ATTEST_CERTIFICATES; k++)
        for (size_t i = 0; i < c.certificates[k].size; i += k ? 7 : 1) {
            c.certificates[k].bytes[i] ^= (uint8_t)(1 << i % 8);
            if (!*fault_of(&c, &c.roots, &machine))
                fail_msg("byte %zu of certificate %zu was changed, and the chain stands", i, k);
            c.certificates[k].bytes[i] ^= (uint8_t)(1 << i % 8);
        }
    stands(&c);
    attest_chain_free(&c);
}

/* CVE-2022-21449: a library that takes zeros takes every report. */
static void a_signature_of_zeros_or_of_the_order_is_none(void **state)
{
    (void)state;
    static const uint8_t low_order[] = { 0x73, 0x29, 0xc5, 0xcc, 0x6a, 0x19, 0xec, 0xec, 0x7a, 0xa7, 0xb0, 0x48,
                                         0xb2, 0x0d, 0x1a, 0x58, 0xdf, 0x2d, 0x37, 0xf4, 0x81, 0x4d, 0x63, 0xc7,
                                         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    struct attest_chain c;

    attest_chain_make(&c, &(struct attest_plan){ .chip = 1 });
    memset(c.report + 0x2a0, 0, 144);
    refuses(&c, "did not sign");
    for (size_t i = 0; i < 2; i++) {
        attest_chain_sign(&c);
        memcpy(c.report + (i ? 0x2e8 : 0x2a0), low_order, sizeof low_order);
        refuses(&c, "did not sign");
    }
    attest_chain_sign(&c);
    stands(&c);
    attest_chain_free(&c);
}

/* ---- the evidence as it is sent -------------------------------------------------------------------------------------------- */

static void evidence_of_another_form_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text; /* JSON */
        enum error_code code;
        const char *why;
    } cases[] = {
        { "{}", ERROR_MISSING, "evidence: kind: evidence without a kind" },
        { "{\"kind\":1}", ERROR_MISSING, "evidence: kind" },
        { "{\"kind\":\"tdx\"}", ERROR_UNSUPPORTED, "tdx: not verified by this version" },
        { "{\"kind\":\"nvidia\"}", ERROR_UNSUPPORTED, "nvidia: not verified by this version" },
        { "{\"kind\":\"tpm\"}", ERROR_UNSUPPORTED, "tpm: not verified by this version" },
        { "{\"kind\":\"simulated\"}", ERROR_UNKNOWN, "unknown kind \"simulated\"" },
        { "{\"kind\":\"sev-snp\"}", ERROR_MISSING, "evidence: report" },
        { "{\"kind\":\"sev-snp\",\"report\":\"A\"}", ERROR_SYNTAX, "evidence: report: no base64" },
        { "{\"kind\":\"sev-snp\",\"report\":\"AAB=\"}", ERROR_SYNTAX, "evidence: report: no base64" },
        { "{\"kind\":\"sev-snp\",\"report\":\" AAA=\"}", ERROR_SYNTAX, "evidence: report: no base64" },
        { "{\"kind\":\"sev-snp\",\"report\":\"AAA=\"}", ERROR_MISSING, "0 certificates, 3 are needed" },
        { "{\"kind\":\"sev-snp\",\"report\":\"AAA=\",\"certificates\":[\"\",\"\"]}", ERROR_MISSING, "2 certificates" },
        { "{\"kind\":\"sev-snp\",\"report\":\"AAA=\",\"certificates\":[\"\",\"\",3]}", ERROR_MISSING, "certificates[2]" },
        { "{\"kind\":\"sev-snp\",\"report\":\"AAA=\",\"certificates\":[\"\",\"\",\"\"]}", ERROR_TRUNCATED,
          "evidence: report: 2 bytes" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *evidence = json_loads(cases[i].text, 0, NULL);
        struct attest_machine machine;
        struct error err = { 0 };
        char text[1024];

        assert_non_null(evidence);
        assert_false(attest_verify(&snp_vendor_roots, evidence, &machine, &err));
        assert_int_equal(err.code, cases[i].code);
        if (!strstr(error_text(&err, text, sizeof text), cases[i].why))
            fail_msg("\"%s\" where \"%s\" was expected", text, cases[i].why);
        assert_false(attest_verify(&snp_vendor_roots, evidence, &machine, NULL));
        json_decref(evidence);
    }
}

static void a_report_or_certificate_that_is_too_long_is_refused(void **state)
{
    (void)state;
    struct attest_chain c;
    char *text = calloc(1, ATTEST_CERTIFICATE_TEXT + 5);

    attest_chain_make(&c, &(struct attest_plan){ .chip = 1 });
    for (int i = 0; i < 2; i++) {
        json_t *evidence = attest_chain_pack(&c);
        struct attest_machine machine;
        struct error err = { 0 };
        const size_t length = (i ? ATTEST_REPORT_TEXT : ATTEST_CERTIFICATE_TEXT) + 4;

        memset(text, 'A', length);
        text[length] = '\0';
        if (i)
            json_object_set_new(evidence, "report", json_string(text));
        else
            json_array_set_new(json_object_get(evidence, "certificates"), 0, json_string(text));
        assert_false(attest_verify(&c.roots, evidence, &machine, &err));
        assert_int_equal(err.code, ERROR_LIMIT);
        json_decref(evidence);
    }
    free(text);
    attest_chain_free(&c);
}

/* ---- real machines --------------------------------------------------------------------------------------------------------- */

static bool fixture(const char *name, struct buffer *out)
{
    const char *root = getenv("RONDO_FIXTURES");
    char path[700];
    struct error err = { 0 };

    snprintf(path, sizeof path, "%s/attestation/snp/%s", root ? root : RONDO_SOURCE "/../shared/fixtures", name);
    return file_read(path, 1 << 16, out, &err);
}

/* The two certificates of a file of PEM. */
static void read_pem(struct buffer *file, struct buffer out[2])
{
    const char *at = buffer_text(file);

    for (int i = 0; i < 2; i++) {
        static const char begin[] = "-----BEGIN CERTIFICATE-----";
        const char *from = strstr(at, begin), *to = from ? strstr(from, "-----END") : NULL;
        size_t size;

        assert_non_null(to);
        buffer_reserve(&out[i], (size_t)(to - from));
        assert_int_equal(sodium_base642bin(out[i].bytes, (size_t)(to - from), from + sizeof begin - 1,
                                           (size_t)(to - from) - sizeof begin + 1, "\r\n", &size, NULL,
                                           sodium_base64_VARIANT_ORIGINAL),
                         0);
        out[i].size = size;
        at = to + 8;
    }
}

struct real {
    const char *report, *vcek, *chain, *why; /* why: "" stands */
};

static const struct real real[] = {
    { "derived/virtee-milan-v2-report.bin", "virtee-sev/vcek_milan.der", "milan", "" },
    { "trustee/test-report.bin", "trustee/test-vcek.der", "milan", "" },
    { "attestation-rs/live-report-v5-genoa.bin", "attestation-rs/live-vcek-genoa.der", "genoa", "" },
    { "derived/az-genoa-v3-report.bin", "derived/az-genoa-vcek.der", "genoa", "" },
    { "derived/e2e-zen4c-v3-report.bin", "derived/e2e-zen4c-vcek.der", "genoa", "" },
    { "go-sev-guest/report.bin", "go-sev-guest/vcek.cer", "milan", "may debug" },
    { "trustee/test-report.bin", "trustee/test-vcek-invalid-legacy.der", "milan", "is not a VCEK under SEV-Milan" },
    { "trustee/test-report.bin", "trustee/test-vcek-invalid-new.der", "milan", "is not a VCEK under SEV-Milan" },
    { "trustee/test-report.bin", "virtee-sev/vcek_milan.der", "milan", "another chip" },
    { "trustee/test-report.bin", "trustee/test-vcek.der", "genoa", "is not a VCEK under SEV-Genoa" },
    { "trustee/test-report.bin", "trustee/test-vcek.der", "turin", "is not a VCEK under SEV-Turin" },
    { "trustee/test-vlek-report.bin", "trustee/test-vlek.der", "milan", "signed by key 1" },
    { "derived/az-genoa-v3-report.bin", "virtee-sev/vcek_turin.der", "turin", "no Turin" },
};

static void real_reports_stand_or_fall_as_their_makers_say(void **state)
{
    struct buffer probe = { 0 };

    (void)state;
    if (!fixture("roots/ask_ark_milan.pem", &probe)) {
        buffer_free(&probe);
        skip();
    }
    buffer_free(&probe);
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        const struct real *one = &real[i];
        struct buffer report = { 0 }, vcek = { 0 }, file = { 0 }, chain[2] = { { 0 }, { 0 } };
        struct error err = { 0 };
        struct attest_machine machine;
        char path[64], text[1024] = "";

        snprintf(path, sizeof path, "roots/ask_ark_%s.pem", one->chain);
        assert_true(fixture(one->report, &report) && fixture(one->vcek, &vcek) && fixture(path, &file));
        read_pem(&file, chain);

        json_t *evidence = attest_pack(
            (struct der){ report.bytes, report.size },
            (struct der[]){ { vcek.bytes, vcek.size }, { chain[0].bytes, chain[0].size }, { chain[1].bytes, chain[1].size } });
        const bool ok = attest_verify(&snp_vendor_roots, evidence, &machine, &err);

        if (!ok)
            error_text(&err, text, sizeof text);
        if (ok != !*one->why || !strstr(text, one->why))
            fail_msg("%s: \"%s\" where \"%s\" was expected", one->report, text, one->why);
        assert_true(!ok || !attest_is_for(&machine, run, did, &err)); /* each was made for somebody else */
        json_decref(evidence);
        buffer_free(&report);
        buffer_free(&vcek);
        buffer_free(&file);
        buffer_free(&chain[0]);
        buffer_free(&chain[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_of_either_kind_stands_under_its_root_and_no_other),
        cmocka_unit_test(one_chip_has_one_root_whoever_asks_and_two_chips_have_two),
        cmocka_unit_test(a_report_is_of_one_key_and_one_run),
        cmocka_unit_test(what_a_report_carries_is_fixed),
        cmocka_unit_test(no_byte_of_a_report_may_change),
        cmocka_unit_test(what_a_report_must_not_say_is_refused_also_when_the_chip_signed_it),
        cmocka_unit_test(a_chip_that_the_host_hides_is_no_machine),
        cmocka_unit_test(a_chip_of_eight_bytes_has_zeros_behind),
        cmocka_unit_test(a_tcb_is_compared_part_by_part),
        cmocka_unit_test(what_a_certificate_must_say_is_asked_for),
        cmocka_unit_test(certificates_stand_in_their_order_and_belong_together),
        cmocka_unit_test(no_byte_of_a_certificate_may_change),
        cmocka_unit_test(a_signature_of_zeros_or_of_the_order_is_none),
        cmocka_unit_test(evidence_of_another_form_is_refused_with_its_place),
        cmocka_unit_test(a_report_or_certificate_that_is_too_long_is_refused),
        cmocka_unit_test(real_reports_stand_or_fall_as_their_makers_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
