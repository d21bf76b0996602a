#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "native/text/tokenizer_build.h"

/* A SentencePiece model is a protocol buffer (sentencepiece_model.proto): fields of a number and a kind, in any order. */
struct field {
    uint32_t number;
    uint64_t value;       /* of kinds 0, 1 and 5 */
    struct reader inside; /* of kind 2 */
};

static uint64_t read_number(struct reader *r)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = reader_u8(r);

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    r->ok = false;
    return 0;
}

/* The next field; false at the end and where the bytes are none (r->ok). */
static bool next_field(struct reader *r, struct field *f)
{
    if (!r->ok || reader_left(r) == 0)
        return false;

    uint64_t key = read_number(r), size;

    *f = (struct field){ .number = (uint32_t)(key >> 3) };
    switch (key & 7) {
    case 0:
        f->value = read_number(r);
        break;
    case 1:
        f->value = reader_u64(r);
        break;
    case 2:
        size = read_number(r);
        if (!r->ok || size > reader_left(r)) {
            r->ok = false;
            break;
        }
        f->inside = reader_of(reader_bytes(r, (size_t)size), (size_t)size);
        break;
    case 5:
        f->value = reader_u32(r);
        break;
    default:
        r->ok = false;
    }
    return r->ok;
}

enum { PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_USER_DEFINED, PIECE_UNUSED, PIECE_BYTE };
enum { KIND_UNIGRAM = 1, KIND_BPE = 2 };

struct piece {
    struct text_slice text;
    float score;
    int type;
};

struct model {
    struct piece *pieces; /* owned */
    size_t count;
    uint64_t kind;
    bool byte_fallback, suffix, dummy_prefix, remove_spaces, escape_spaces;
    struct reader charsmap;
    bool has_charsmap;
};

static bool read_piece(struct reader r, struct piece *piece)
{
    struct field f;
    uint32_t bits;

    *piece = (struct piece){ .type = PIECE_NORMAL };
    while (next_field(&r, &f)) {
        if (f.number == 1)
            piece->text = (struct text_slice){ (const char *)f.inside.at, reader_left(&f.inside) };
        if (f.number == 2) {
            bits = (uint32_t)f.value;
            memcpy(&piece->score, &bits, sizeof bits);
        }
        if (f.number == 3)
            piece->type = f.value <= PIECE_BYTE ? (int)f.value : 0;
    }
    return r.ok && piece->type && piece->score == piece->score;
}

static bool read_trainer(struct reader r, struct model *m)
{
    struct field f;

    while (next_field(&r, &f)) {
        if (f.number == 3)
            m->kind = f.value;
        if (f.number == 24)
            m->suffix = f.value;
        if (f.number == 35)
            m->byte_fallback = f.value;
    }
    return r.ok;
}

static bool read_normaliser(struct reader r, struct model *m)
{
    struct field f;

    while (next_field(&r, &f)) {
        if (f.number == 2 && reader_left(&f.inside)) {
            m->charsmap = f.inside;
            m->has_charsmap = true;
        }
        if (f.number == 3)
            m->dummy_prefix = f.value;
        if (f.number == 4)
            m->remove_spaces = f.value;
        if (f.number == 5)
            m->escape_spaces = f.value;
    }
    return r.ok;
}

static bool read_model(struct model *m, const uint8_t *bytes, size_t size, struct error *err)
{
    struct reader r = reader_of(bytes, size);
    struct field f;
    size_t count = 0;
    bool ok = true;

    while (next_field(&r, &f))
        count += f.number == 1;
    if (!r.ok || count == 0 || count > TOKENIZER_MAX_TOKENS)
        return error_set(err, ERROR_SYNTAX, NULL, "no SentencePiece model of 1 to %d pieces", TOKENIZER_MAX_TOKENS);
    m->pieces = calloc(count, sizeof *m->pieces);
    if (!m->pieces)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu pieces", count);
    m->kind = KIND_UNIGRAM;
    m->dummy_prefix = m->remove_spaces = m->escape_spaces = true;
    r = reader_of(bytes, size);
    while (ok && next_field(&r, &f)) {
        if (f.number == 1 && !read_piece(f.inside, &m->pieces[m->count++]))
            ok = error_set(err, ERROR_SYNTAX, NULL, "not a piece with text, score and type") ||
                 error_at(err, "piece %zu", m->count - 1);
        if (f.number == 2)
            ok = read_trainer(f.inside, m) || error_set(err, ERROR_SYNTAX, NULL, "broken trainer_spec");
        if (f.number == 3)
            ok = read_normaliser(f.inside, m) || error_set(err, ERROR_SYNTAX, NULL, "broken normalizer_spec");
    }
    if (ok && m->kind != KIND_UNIGRAM && m->kind != KIND_BPE)
        ok = error_set(err, ERROR_UNSUPPORTED, "Unigram and BPE are offered", "model type %llu", (unsigned long long)m->kind);
    if (ok && m->suffix)
        ok = error_set(err, ERROR_UNSUPPORTED, NULL, "treat_whitespace_as_suffix is not offered");
    return ok;
}

static struct normalizer_step *add_step(struct normalizer *n, int kind, const char *content, struct error *err)
{
    struct normalizer_step *step = normalizer_add(n, err);

    if (step) {
        step->kind = kind;
        step->content_size = strlen(content);
        strcpy(step->content, content);
    }
    return step;
}

/* The library's own order: the map, spaces at the ends and doubled ones, the space before, spaces as "▁". */
static bool add_normalizer(struct normalizer *n, const struct model *m, struct error *err)
{
    static const char mark[] = "\xe2\x96\x81", last_marks[] = "(?<!\xe2\x96\x81)\xe2\x96\x81+\\z";
    struct normalizer_step *step;

    if (m->has_charsmap) {
        step = add_step(n, NORMALIZER_CHARSMAP, "", err);
        if (!step || !charsmap_read(&step->charsmap, m->charsmap.at, reader_left(&m->charsmap), err))
            return false;
        step->longest = true;
    }
    if (m->remove_spaces) {
        step = add_step(n, NORMALIZER_REPLACE, "", err);
        if (!step || !(step->pattern = pattern_new("\\A +| +\\z| +(?= )", 17, false, err)))
            return false;
    }
    if (m->dummy_prefix && !add_step(n, NORMALIZER_PREPEND, m->escape_spaces ? mark : " ", err))
        return false;
    if (m->escape_spaces) {
        step = add_step(n, NORMALIZER_REPLACE, mark, err);
        if (!step)
            return false;
        step->byte = ' ';
    }
    if (m->remove_spaces && m->escape_spaces) { /* a "▁" of the text's own at its end goes like a space */
        step = add_step(n, NORMALIZER_REPLACE, "", err);
        if (!step || !(step->pattern = pattern_new(last_marks, sizeof last_marks - 1, false, err)))
            return false;
    }
    return true;
}

/* An unknown token is " \u2047 ". */
static void add_decoder(struct decoder *d, const struct model *m)
{
    static const char mark[] = "\xe2\x96\x81";

    if (m->dummy_prefix || m->remove_spaces) {
        d->steps[d->count] = (struct decoder_step){ .kind = DECODER_MARGIN, .first = m->remove_spaces };
        memcpy(d->steps[d->count++].text, mark, sizeof mark);
    }
    d->steps[d->count] = (struct decoder_step){ .kind = DECODER_REPLACE, .content = " " };
    memcpy(d->steps[d->count++].text, mark, sizeof mark);
    d->steps[d->count++] = (struct decoder_step){ .kind = DECODER_BYTE_FALLBACK };
    d->steps[d->count] = (struct decoder_step){ .kind = DECODER_REPLACE, .content = " \xe2\x81\x87 " };
    for (size_t i = 0; i < m->count; i++)
        if (m->pieces[i].type == PIECE_UNKNOWN && m->pieces[i].text.size < DECODER_MAX_TEXT)
            memcpy(d->steps[d->count].text, m->pieces[i].text.bytes, m->pieces[i].text.size);
    d->steps[++d->count] = (struct decoder_step){ .kind = DECODER_FUSE };
    d->count++;
}

/* Unigram weighs these against all others, by more than they could have. */
static void add_user_defined(struct unigram *u, const struct model *m)
{
    float best = FLT_MIN; /* as the library begins: greater than any usual score */

    for (size_t i = 0; i < m->count; i++)
        if (m->pieces[i].type == PIECE_NORMAL && m->pieces[i].score > best)
            best = m->pieces[i].score;
    for (uint32_t i = 0; i < m->count; i++)
        if (m->pieces[i].type == PIECE_USER_DEFINED) {
            u->scores[i] = (double)((float)m->pieces[i].text.size * best) + 1.0;
            added_tokens_add(&u->trie, m->pieces[i].text.bytes, m->pieces[i].text.size, i);
        }
}

static bool add_pieces(struct tokenizer_builder *b, const struct model *m, struct error *err)
{
    static const uint8_t flags[] = { [PIECE_NORMAL] = TOKEN_OF_MODEL,
                                     [PIECE_UNKNOWN] = TOKEN_ADDED | TOKEN_SPECIAL,
                                     [PIECE_CONTROL] = TOKEN_ADDED | TOKEN_SPECIAL,
                                     [PIECE_USER_DEFINED] = TOKEN_ADDED | TOKEN_NORMALIZED,
                                     [PIECE_UNUSED] = 0,
                                     [PIECE_BYTE] = 0 };

    b->raw_added = true;
    for (size_t i = 0; i < m->count; i++) {
        int type = m->pieces[i].type;
        bool weighed = type == PIECE_USER_DEFINED && m->kind == KIND_UNIGRAM;

        if (!builder_add(b, i, m->pieces[i].text, weighed ? 0 : flags[type], err))
            return false;
    }
    return true;
}

static bool fill(struct tokenizer *t, struct tokenizer_builder *b, const struct model *m, struct error *err)
{
    float *scores = calloc(m->count, sizeof *scores);
    double *wide = calloc(m->count, sizeof *wide);
    bool ok = (scores && wide) || error_set(err, ERROR_MEMORY, NULL, "no memory for %zu scores", m->count);

    ok = ok && add_normalizer(&t->normalizer, m, err) && builder_start(b, m->count, err) && add_pieces(b, m, err) &&
         builder_finish(b, t, err);
    t->bpe.unknown = BPE_NONE;
    for (uint32_t i = 0; ok && i < m->count; i++) {
        scores[i] = m->pieces[i].score;
        wide[i] = scores[i];
        if (m->pieces[i].type == PIECE_UNKNOWN)
            t->bpe.unknown = i;
        if (m->pieces[i].type == PIECE_BYTE)
            builder_set_fallback(t, m->pieces[i].text, i);
    }
    t->bpe.fuse_unknown = true;
    t->bpe.byte_fallback = m->byte_fallback;
    if (ok)
        add_decoder(&t->decoder, m);
    if (ok && m->kind == KIND_BPE) {
        ok = builder_merge_by_scores(b, t, scores, err);
        builder_set_cut(b, t);
    } else if (ok) {
        builder_set_unigram(b, t, wide, t->bpe.unknown, m->byte_fallback);
        add_user_defined(&t->unigram, m);
        t->unigram.single = true;
        wide = NULL;
    }
    free(scores);
    free(wide);
    return ok;
}

struct tokenizer *tokenizer_read_sentencepiece(const void *bytes, size_t size, struct error *err)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    struct tokenizer_builder b = { 0 };
    struct model m = { 0 };
    bool ok = t || error_set(err, ERROR_MEMORY, NULL, "no memory for a tokenizer");

    ok = ok && read_model(&m, bytes, size, err) && fill(t, &b, &m, err);
    builder_free(&b);
    free(m.pieces);
    if (!ok) {
        tokenizer_free(t);
        return NULL;
    }
    return t;
}
