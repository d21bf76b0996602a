/* Names, canonical JSON and signed envelopes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/json.h"
#include "runtime/crypto/keyfile.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/cid.h"
#include "runtime/doc/did.h"
#include "runtime/doc/envelope.h"

static struct error err;

/* Any IPFS implementation names the raw block "abc" under blake2b-256 so; the digest is Python's hashlib.blake2b. */
static void cid_is_the_one_that_ipfs_computes(void **state)
{
    char text[CID_TEXT];
    struct hash again, hash = hash_block("abc", 3);

    (void)state;
    cid_text(hash, text);
    assert_string_equal(text, "bafk2bzacec653aj4mnbds4rrohxt73uyk6nzjfsohoy4wpscojrmrqdi2urrs");
    assert_int_equal(strlen(text), CID_TEXT - 1);
    assert_true(cid_parse(text, &again, &err));
    assert_true(hash_equal(hash, again));
}

static void cid_of_another_kind_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "b",
                                       "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                                       "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG",
                                       "BAFK2BZACEC65QE6GHRBDSVZBOHY75Y4YK6KZVNTTWHHMRH33JNEQ4FNDTUXRS",
                                       "bafk2bzacec653aj4mnbds4rrohxt73uyk6nzjfsohoy4wpscojrmrqdi2urrsa" };
    struct hash hash;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(cid_parse(bad[i], &hash, &err));
}

/* The example of did:key's specification. */
static void did_is_the_key_in_base_58(void **state)
{
    struct public_key key, again;
    char text[DID_TEXT];

    (void)state;
    assert_true(did_parse("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", &key, &err));
    assert_string_equal(did_text(&key, text), "did:tenzro:machine:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK");
    assert_true(did_parse(text, &again, &err));
    assert_true(public_key_equal(&key, &again));
    assert_true(did_parse_strict(text, &again, &err));
    assert_false(did_parse_strict("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", &again, &err));
}

static void did_of_another_method_or_a_bad_key_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "did:web:example.org",
                                       "did:key:z",
                                       "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2do",
                                       "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK1",
                                       "did:key:6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
                                       "did:key:z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc" };
    struct public_key key;
    char text[DID_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(did_parse(bad[i], &key, &err));
    memset(key.bytes, 0, sizeof key.bytes); /* a point of small order */
    assert_false(did_parse(did_text(&key, text), &key, &err));
}

static void dids_ascend_as_their_keys_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < 200; i++) {
        struct secret_key one, two;
        char first[DID_TEXT], second[DID_TEXT];

        secret_key_new(&one), secret_key_new(&two);
        struct public_key a = public_key_of(&one), b = public_key_of(&two);

        assert_int_equal(did_compare(&a, &b) < 0, strcmp(did_text(&a, first), did_text(&b, second)) < 0);
        assert_int_equal(strlen(first), DID_TEXT - 1);
    }
}

static void assert_canonical(const char *from, const char *expected)
{
    json_t *value = json_read(from, strlen(from), CANONICAL_SIZE, &err);
    struct buffer out = { 0 };

    assert_non_null(value);
    assert_true(canonical_write(value, &out, &err));
    assert_string_equal(buffer_text(&out), expected);
    json_decref(value);
    value = canonical_read(out.bytes, out.size, &err);
    assert_non_null(value);
    json_decref(value);
    buffer_free(&out);
}

/* After RFC 8785's own examples, without its reals. */
static void canonical_text_sorts_names_and_escapes_only_what_it_must(void **state)
{
    (void)state;
    assert_canonical("{ \"b\": 1, \"a\": [ true, null , -0 ], \"B\": {} , \"\": \"x\" }",
                     "{\"\":\"x\",\"B\":{},\"a\":[true,null,0],\"b\":1}");
    assert_canonical("\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\"",
                     "\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"");
    assert_canonical("\"\\b\\t\\n\\f\\r\\u0000\\u001f\\u007f\"", "\"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f\"");
    assert_canonical("[9007199254740991, -9007199254740991]", "[9007199254740991,-9007199254740991]");
}

/* Byte by byte, what canonical_write does eight bytes at once. */
static void assert_escaped(const char *text, size_t size)
{
    static const char escapes[] = "btn.fr";
    struct buffer out = { 0 }, expected = { 0 };
    json_t *value = json_stringn(text, size);
    buffer_add_u8(&expected, '"');
    for (size_t i = 0; i < size; i++) {
        uint8_t c = (uint8_t)text[i];
        if (c == '"' || c == '\\')
            buffer_add_u8(&expected, '\\'), buffer_add_u8(&expected, c);
        else if (c >= '\b' && c <= '\r' && c != '\v')
            buffer_add_u8(&expected, '\\'), buffer_add_u8(&expected, (uint8_t)escapes[c - '\b']);
        else if (c < 32)
            buffer_printf(&expected, "\\u%04x", c);
        else
            buffer_add_u8(&expected, c);
    }
    buffer_add_u8(&expected, '"');
    assert_true(canonical_write(value, &out, &err));
    assert_int_equal(out.size, expected.size);
    assert_memory_equal(out.bytes, expected.bytes, out.size);
    json_decref(value);
    buffer_free(&out);
    buffer_free(&expected);
}

static void each_character_is_escaped_alike_at_each_place_of_a_text(void **state)
{
    static const char around[] = "\x7f \xc3\xa9!#[]\xf0\x9f\x98\x80~";
    (void)state;
    for (int c = 0; c < 128; c++)
        for (size_t place = 0; place < 20; place++) {
            char text[40];
            memset(text, 'x', sizeof text);
            text[place] = (char)c;
            assert_escaped(text, 20);
            text[place + 1] = (char)(127 - c);
            memcpy(text + place + 2, around, sizeof around - 1);
            assert_escaped(text, sizeof text);
        }
}

static void few_names_are_sorted_like_many(void **state)
{
    struct buffer from = { 0 }, expected = { 0 };
    (void)state;
    for (int count = 1; count <= 40; count++) {
        from.size = expected.size = 0;
        for (int i = 0; i < count; i++) {
            buffer_printf(&from, "%s\"n%02d\":%d", i ? "," : "{", i * 7 % 41, i);
        }
        for (int name = 0, first = 1; name < 41; name++)
            for (int i = 0; i < count; i++)
                if (i * 7 % 41 == name)
                    buffer_printf(&expected, "%s\"n%02d\":%d", first ? "{" : ",", name, i), first = 0;
        buffer_add_u8(&from, '}');
        buffer_add_u8(&expected, '}');
        assert_canonical(buffer_text(&from), buffer_text(&expected));
    }
    buffer_free(&from);
    buffer_free(&expected);
}

static void values_without_one_safe_text_are_refused(void **state)
{
    static const struct {
        const char *text, *place;
        enum error_code code;
    } bad[] = {
        { "{\"a\":[1,1.5]}", "a: [1]", ERROR_TYPE }, { "1e3", "", ERROR_TYPE },
        { "9007199254740992", "", ERROR_RANGE },     { "-9007199254740992", "", ERROR_RANGE },
        { "{\"\xc3\xa4\":1}", "", ERROR_TYPE },
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *value = json_read(bad[i].text, strlen(bad[i].text), CANONICAL_SIZE, &err);
        struct buffer out = { 0 };

        assert_false(canonical_write(value, &out, &err));
        assert_int_equal(err.code, bad[i].code);
        assert_string_equal(err.place, bad[i].place);
        json_decref(value);
        buffer_free(&out);
    }
}

static void text_that_is_not_canonical_is_refused(void **state)
{
    static const char *const bad[] = {
        "{\"b\":1,\"a\":2}", "{ }", "[1, 2]", "{\"a\":1,\"a\":1}", "\"\\u0041\"", "\"\\/\"", "-0", "1.0", "01", "[1]\n", ""
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(canonical_read(bad[i], strlen(bad[i]), &err));
}

static void nesting_beyond_the_limit_is_refused(void **state)
{
    struct buffer text = { 0 };

    (void)state;
    for (size_t i = 0; i < CANONICAL_DEPTH + 2; i++)
        buffer_add_u8(&text, '[');
    for (size_t i = 0; i < CANONICAL_DEPTH + 2; i++)
        buffer_add_u8(&text, ']');
    assert_null(canonical_read(text.bytes, text.size, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    buffer_free(&text);
}

static void a_text_is_as_long_as_its_reader_allows(void **state)
{
    json_t *value = json_array();
    struct buffer text = { 0 };

    (void)state;
    for (int i = 0; i < CANONICAL_SIZE / 8; i++)
        json_array_append_new(value, json_string("12345")); /* and two quotes and a comma: one byte more than there are */
    assert_false(canonical_write(value, &text, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    assert_int_equal(text.size, 0);
    assert_true(canonical_write_most(value, CANONICAL_SIZE + 1, &text, &err));
    assert_int_equal(text.size, CANONICAL_SIZE + 1);
    json_decref(value);
    buffer_free(&text);
}

static struct key_pair keys;

static void make(struct buffer *out, bool with_account)
{
    json_t *payload = json_pack("{s:s}", "word", "hello");

    key_pair_derive("envelope_test", "one", &keys);
    envelope_prepare(payload, &keys.identity, NULL);
    assert_true(envelope_make("vote", payload, &keys.identity, with_account ? &keys.account : NULL, out, &err));
    json_decref(payload);
}

static void envelope_is_read_back_with_both_its_signers(void **state)
{
    struct buffer text = { 0 };
    struct envelope e;

    (void)state;
    make(&text, true);
    assert_true(envelope_read(text.bytes, text.size, &e, &err));
    assert_string_equal(e.type, "vote");
    assert_int_equal(e.signer_count, 2);
    assert_int_equal(e.signers[0].kind, SIGNER_DID);
    assert_int_equal(e.signers[1].kind, SIGNER_ACCOUNT);
    assert_true(address_equal(e.signers[1].account, account_address(&keys.account)));
    assert_string_equal(json_string_value(json_object_get(e.json, "word")), "hello");
    assert_true(hash_equal(e.id, hash_block(e.payload.bytes, e.payload.size)));
    envelope_free(&e);
    buffer_free(&text);
}

/* DSSE's protocol text: the bytes under the signature, written out by hand. */
static void signature_is_over_the_pre_authentication_encoding(void **state)
{
    struct buffer text = { 0 }, pae = { 0 };
    struct envelope e;
    struct signature signature;
    size_t size;

    (void)state;
    make(&text, false);
    assert_true(envelope_read(text.bytes, text.size, &e, &err));
    buffer_printf(&pae, "DSSEv1 31 application/vnd.rondo.vote+json %zu ", e.payload.size);
    buffer_add(&pae, e.payload.bytes, e.payload.size);

    json_t *outer = json_loadb((const char *)text.bytes, text.size, 0, NULL);
    const char *sig = json_string_value(json_object_get(json_array_get(json_object_get(outer, "signatures"), 0), "sig"));

    assert_int_equal(sodium_base642bin(signature.bytes, 64, sig, strlen(sig), NULL, &size, NULL, sodium_base64_VARIANT_ORIGINAL),
                     0);
    struct public_key public = public_key_of(&keys.identity);

    assert_true(sign_verify(&public, &signature, pae.bytes, pae.size));
    json_decref(outer);
    envelope_free(&e);
    buffer_free(&text);
    buffer_free(&pae);
}

static void every_changed_byte_of_an_envelope_is_noticed(void **state)
{
    struct buffer text = { 0 };

    (void)state;
    make(&text, true);
    for (size_t i = 0; i < text.size; i++) {
        struct envelope e;

        text.bytes[i] ^= 1;
        assert_false(envelope_read(text.bytes, text.size, &e, &err));
        text.bytes[i] ^= 1;
    }
    buffer_free(&text);
}

static void signer_that_did_not_sign_is_refused(void **state)
{
    struct buffer text = { 0 };
    struct envelope e;
    struct key_pair other;
    json_t *payload = json_object();

    (void)state;
    key_pair_derive("envelope_test", "one", &keys);
    key_pair_derive("envelope_test", "two", &other);
    envelope_prepare(payload, &other.identity, NULL); /* names the other */
    assert_true(envelope_make("vote", payload, &keys.identity, NULL, &text, &err));
    assert_false(envelope_read(text.bytes, text.size, &e, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    buffer_clear(&text);
    json_object_set_new(payload, "version", json_integer(2));
    assert_true(envelope_make("vote", payload, &other.identity, NULL, &text, &err));
    assert_false(envelope_read(text.bytes, text.size, &e, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    json_decref(payload);
    buffer_free(&text);
}

static void account_alone_may_sign(void **state)
{
    struct buffer text = { 0 };
    struct envelope e;
    json_t *payload = json_object();

    (void)state;
    key_pair_derive("envelope_test", "one", &keys);
    envelope_prepare(payload, NULL, &keys.account);
    assert_true(envelope_make("transaction", payload, NULL, &keys.account, &text, &err));
    assert_true(envelope_read(text.bytes, text.size, &e, &err));
    assert_int_equal(e.signers[0].kind, SIGNER_ACCOUNT);
    envelope_free(&e);
    json_decref(payload);
    buffer_free(&text);
}

static void envelopes_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"payload\":\"e30=\",\"payloadType\":\"application/vnd.rondo.vote+json\",\"signatures\":[]}",
        "{\"payload\":\"e30=\",\"payloadType\":\"application/json\",\"signatures\":[{\"keyid\":\"x\",\"sig\":\"\"}]}",
        "{\"payload\":\"e30\",\"payloadType\":\"application/vnd.rondo.vote+json\",\"signatures\":[{}]}",
        "{\"payload\":\"e30=\",\"payloadType\":\"application/vnd.rondo.vote+json\",\"signatures\":[{}]}",
        "{\"payload\":\"e30=\",\"payloadType\":\"application/vnd.rondo.+json\",\"signatures\":[{}]}",
        "{\"payload\":1,\"payloadType\":\"application/vnd.rondo.vote+json\",\"signatures\":[7]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct envelope e;

        assert_false(envelope_read(bad[i], strlen(bad[i]), &e, &err));
        assert_int_equal(error_status(err.code), 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cid_is_the_one_that_ipfs_computes),
        cmocka_unit_test(cid_of_another_kind_is_refused),
        cmocka_unit_test(did_is_the_key_in_base_58),
        cmocka_unit_test(did_of_another_method_or_a_bad_key_is_refused),
        cmocka_unit_test(dids_ascend_as_their_keys_do),
        cmocka_unit_test(canonical_text_sorts_names_and_escapes_only_what_it_must),
        cmocka_unit_test(each_character_is_escaped_alike_at_each_place_of_a_text),
        cmocka_unit_test(few_names_are_sorted_like_many),
        cmocka_unit_test(values_without_one_safe_text_are_refused),
        cmocka_unit_test(text_that_is_not_canonical_is_refused),
        cmocka_unit_test(nesting_beyond_the_limit_is_refused),
        cmocka_unit_test(a_text_is_as_long_as_its_reader_allows),
        cmocka_unit_test(envelope_is_read_back_with_both_its_signers),
        cmocka_unit_test(signature_is_over_the_pre_authentication_encoding),
        cmocka_unit_test(every_changed_byte_of_an_envelope_is_noticed),
        cmocka_unit_test(signer_that_did_not_sign_is_refused),
        cmocka_unit_test(account_alone_may_sign),
        cmocka_unit_test(envelopes_that_are_none_are_refused),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
