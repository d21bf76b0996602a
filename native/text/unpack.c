#include "native/text/unpack.h"

#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { PIECE = 1 << 16, WINDOW_LOG = 27 }; /* a Zstandard window of 128 MiB at most: what the library takes by itself */

enum unpack_form unpack_form_of(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    if (size >= 2 && at[0] == 0x1f && at[1] == 0x8b)
        return UNPACK_GZIP;
    if (size >= 4 && at[1] == 0xb5 && at[2] == 0x2f && at[3] == 0xfd && at[0] == 0x28)
        return UNPACK_ZSTD;
    if (size >= 4 && (at[0] & 0xf0) == 0x50 && at[1] == 0x2a && at[2] == 0x4d && at[3] == 0x18) /* a skippable frame */
        return UNPACK_ZSTD;
    return UNPACK_PLAIN;
}

/* What may come out of `size` bytes. */
static size_t most_of(size_t size, size_t limit)
{
    size_t most = size > (SIZE_MAX - UNPACK_FREE) / UNPACK_RATIO ? SIZE_MAX : size * UNPACK_RATIO + UNPACK_FREE;

    return most < limit ? most : limit;
}

static bool keep(struct buffer *out, size_t *left, const uint8_t *piece, size_t size, struct error *err)
{
    if (size > *left)
        return error_set(err, ERROR_LIMIT, "unpack it by hand and split it", "unpacked it is larger than is read");
    *left -= size;
    buffer_add(out, piece, size);
    return true;
}

static bool damaged(struct error *err, const char *form, const char *why)
{
    return error_set(err, ERROR_SYNTAX, "fetch or compress it again", "damaged %s: %s", form, why ? why : "no reason given");
}

static bool cut(struct error *err, const char *form)
{
    return error_set(err, ERROR_TRUNCATED, "fetch or compress it again", "the %s ends before it is complete", form);
}

/* ---- gzip ---- */

/* One member; what it leaves of the input is the next. */
static bool inflate_member(z_stream *z, size_t *rest, size_t *left, struct buffer *out, struct error *err)
{
    uint8_t piece[PIECE];
    int result = Z_OK;

    while (result != Z_STREAM_END) {
        if (z->avail_in == 0 && *rest > 0) {
            z->avail_in = *rest > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)*rest;
            *rest -= z->avail_in;
        }
        z->next_out = piece;
        z->avail_out = PIECE;
        result = inflate(z, Z_NO_FLUSH);
        if (result == Z_BUF_ERROR)
            return cut(err, "gzip file");
        if (result == Z_MEM_ERROR)
            return error_set(err, ERROR_MEMORY, NULL, "no memory to unpack gzip");
        if (result != Z_OK && result != Z_STREAM_END)
            return damaged(err, "gzip", z->msg);
        if (!keep(out, left, piece, PIECE - z->avail_out, err))
            return false;
    }
    return true;
}

static bool unpack_gzip(const uint8_t *bytes, size_t size, size_t left, struct buffer *out, struct error *err)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)bytes };
    size_t rest = size;
    bool ok = true;

    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return error_set(err, ERROR_MEMORY, NULL, "no memory to unpack gzip");
    while (ok && rest + z.avail_in > 0) {
        ok = inflate_member(&z, &rest, &left, out, err);
        inflateReset(&z);
    }
    inflateEnd(&z);
    return ok;
}

/* ---- Zstandard ---- */

static bool unpack_zstd(const uint8_t *bytes, size_t size, size_t left, struct buffer *out, struct error *err)
{
    ZSTD_DCtx *z = ZSTD_createDCtx();
    ZSTD_inBuffer in = { bytes, size, 0 };
    uint8_t piece[PIECE];
    size_t result = 0, produced = 1;
    bool ok = true;

    if (!z)
        return error_set(err, ERROR_MEMORY, NULL, "no memory to unpack zstd");
    ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, WINDOW_LOG);
    /* A frame that is complete leaves nothing behind; one that is not may still hold bytes back when the input is read. */
    while (ok && (in.pos < size || (result > 0 && produced > 0))) {
        ZSTD_outBuffer piece_out = { piece, PIECE, 0 };

        result = ZSTD_decompressStream(z, &piece_out, &in);
        produced = piece_out.pos;
        ok = !ZSTD_isError(result) || damaged(err, "zstd", ZSTD_getErrorName(result));
        ok = ok && keep(out, &left, piece, produced, err);
    }
    ZSTD_freeDCtx(z);
    return ok && (result == 0 || cut(err, "zstd file"));
}

bool unpack(const void *bytes, size_t size, size_t limit, struct buffer *out, struct error *err)
{
    size_t most = most_of(size, limit);

    switch (unpack_form_of(bytes, size)) {
    case UNPACK_GZIP:
        return unpack_gzip(bytes, size, most, out, err);
    case UNPACK_ZSTD:
        return unpack_zstd(bytes, size, most, out, err);
    default:
        return error_set(err, ERROR_UNSUPPORTED, NULL, "neither gzip nor zstd");
    }
}
