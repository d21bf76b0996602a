/* functions.c - the elementary functions of native/numerics against their exact values.
 *
 *     functions [--full] [--json] [--threads N] [NAME...]
 *
 * Each function runs through the kernels of this machine (RONDO_ISA chooses), over every binary32 argument with --full, else over 4096
 * neighbours out of every 2^20. Told: the largest error in ulp of the exact result and where; the share rounded correctly; monotonicity
 * breaks (neighbouring arguments whose results move against the function); specials (NaN, infinity, zero) that differ; nanoseconds an
 * element in the first-level cache; a digest of all results, the same for every instruction set.
 *
 * The exact value is first taken in binary64 with an error bound. MPFR decides where that bound leaves it open: whether an error is a
 * new largest one, to which neighbour a tie rounds, which way two results should move. Exit 1: a function is off by more than its limit.
 */
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/functions_exact.h"
#include "native/kernel/class.h"
#include "native/numerics/f32.h"

enum { BLOCK = 4096, CHUNK = 1 << 20, CHUNKS = 4096, DIGEST = 16 };

/* What is found out of one function. */
struct finding {
    double error; /* ulp */
    float argument;
    uint64_t compared, rounded, breaks, specials, decided, unsound;
};

struct job {
    const struct reference *of;
    bool full;
    _Atomic uint32_t next;
    uint8_t digest[CHUNKS][DIGEST];
    pthread_mutex_t lock;
    struct finding found;
};

/* The value that is compared against: in binary64, exactly only where asked. */
struct value {
    const struct reference *of;
    float x, y;
    double near;
    mpfr_t exact, work;
    bool known;
};

static mpfr_t *value_exact(struct value *v)
{
    if (!v->known) {
        mpfr_set_flt(v->exact, v->x, MPFR_RNDN);
        v->of->exact(v->exact, (double)v->y);
        v->known = true;
    }
    return &v->exact;
}

static void value_set(struct value *v, float x, float y, double near)
{
    v->x = x;
    v->y = y;
    v->near = near;
    v->known = false;
}

static void value_init(struct value *v, const struct reference *of)
{
    v->of = of;
    mpfr_init2(v->exact, EXACT_BITS);
    mpfr_init2(v->work, EXACT_BITS);
}

static void value_clear(struct value *v)
{
    mpfr_clear(v->exact);
    mpfr_clear(v->work);
}

/* 1/ulp of a result near a >= 0, by its exponent; subnormals have the ulp of the least normal number. */
static inline double per_ulp(double a)
{
    uint64_t bits;

    a = a < 0x1p-126 ? 0x1p-126 : a > 0x1p127 ? 0x1p127 : a;
    memcpy(&bits, &a, sizeof bits);
    bits = (uint64_t)(1023 + 23 + 1023) * ((uint64_t)1 << 52) - (bits & 0x7ff0000000000000u);
    memcpy(&a, &bits, sizeof a);
    return a;
}

/* |got - exact| in ulp, with all digits. */
static double exact_error(struct value *v, float got, double scale)
{
    mpfr_sub_d(v->work, *value_exact(v), (double)got, MPFR_RNDN);
    mpfr_mul_d(v->work, v->work, scale, MPFR_RNDN);
    return fabs(mpfr_get_d(v->work, MPFR_RNDN));
}

/* The binary32 nearest to the exact value. */
static float nearest(struct value *v, struct finding *found)
{
    double slack = fabs(v->near) * v->of->bound;
    float low = (float)(v->near - slack), high = (float)(v->near + slack);

    if (low == high)
        return low;
    found->decided++;
    return mpfr_get_flt(*value_exact(v), MPFR_RNDN);
}

/* One argument that binary64 left open. */
static void compare(struct value *v, float got, struct finding *found)
{
    double x = fabs((double)v->x), a = fabs(v->near), scale = per_ulp(v->of->of_argument && x > a ? x : a), error;
    float want;

    if (v->near != v->near || isinf(v->near) || got != got) {
        found->specials += v->near != v->near ? got == got : (double)got != v->near;
        return;
    }
    want = nearest(v, found);
    found->rounded += got == want;
    if (isinf(got)) {
        found->specials += got != want;
        return;
    }
    if (fabs((double)got - v->near) * scale + a * v->of->bound * scale > found->error) {
        found->decided++;
        error = exact_error(v, got, scale);
        if (error > found->error) {
            found->error = error;
            found->argument = v->x;
        }
    }
}

/* Two neighbours of which binary64 does not say that their results move with the function: do they move against it? */
static bool breaks(struct value *a, struct value *b, float got_a, float got_b)
{
    int direction = mpfr_cmp(*value_exact(b), *value_exact(a));

    return got_b > got_a ? direction < 0 : direction > 0;
}

/* The binary64 value must lie within its bound of the exact one, or both far out of the range of binary32. */
static bool sound(struct value *v)
{
    double a = fabs(v->near), exact = fabs(mpfr_get_d(*value_exact(v), MPFR_RNDN));

    if (v->near != v->near || (a > 0x1p200 && exact > 0x1p200) || (a < 0x1p-200 && exact < 0x1p-200))
        return true;
    mpfr_sub_d(v->work, *value_exact(v), v->near, MPFR_RNDN);
    return fabs(mpfr_get_d(v->work, MPFR_RNDN)) <= a * v->of->bound;
}

static void run(const struct reference *of, size_t n, const float *x, const float *y, float *out)
{
    struct space space = { 1, { n } };
    struct view in[2] = { { x, { 1 } }, { y, { 1 } } };

    elementwise_run(NULL, of->op, KERNEL_F32, &space, in, out);
}

static void hash_block(crypto_generichash_state *hash, const float *out, size_t n)
{
    uint32_t bits[BLOCK];

    for (size_t i = 0; i < n; i++)
        bits[i] = out[i] != out[i] ? 0x7fc00000u : f32_bits(out[i]);
    crypto_generichash_update(hash, (const uint8_t *)bits, n * sizeof *bits);
}

/* A block, with the last argument of the block before in element 0. */
struct block {
    float x[BLOCK + 1], y[BLOCK + 1], got[BLOCK + 1];
    double near[BLOCK + 1];
    int64_t open[BLOCK + 1]; /* 1: the result, 2: the move from the element before is for MPFR to judge */
};

/* What binary64 can say: counts what is clear, marks what is not. One pass without branches, for vectors. */
static void sift(const struct reference *of, struct block *b, struct finding *found)
{
    const double bound = of->bound, best = found->error, from = (double)of->from, to = (double)of->to;
    const double by_argument = of->of_argument ? 1 : 0;
    const float *restrict px = b->x, *restrict py = b->y, *restrict pgot = b->got;
    const double *restrict pnear = b->near;
    int64_t *restrict open = b->open, compared = 0, rounded = 0;

    for (size_t i = 1; i <= BLOCK; i++) {
        double d = pnear[i], before = pnear[i - 1], got = (double)pgot[i], got_before = (double)pgot[i - 1], x = (double)px[i];
        double a = fabs(d), unit = fabs(x) * by_argument, scale = per_ulp(unit > a ? unit : a), slack = a * bound;
        double low = (double)(float)(d - slack), high = (double)(float)(d + slack);
        double move = d - before, slack_move = (a + fabs(before)) * bound;
        bool inside = (x >= from) & (x <= to), finite = a < 0x1.fffffep127;
        bool clear = (low == high) & ((fabs(got - d) + slack) * scale <= best) & finite;
        bool beyond = (a > 0x1.ffffff01p127) & (got == d * (double)INFINITY); /* overflows, as it should */
        bool none = (d != d) & (got != got);
        bool moves =
            (py[i] == py[i - 1]) & (((got > got_before) & !(move > slack_move)) | ((got < got_before) & !(move < -slack_move)));

        compared += inside & !none ? 1 : 0;
        rounded += inside & ((clear & (got == low)) | beyond) ? 1 : 0;
        open[i] = (inside & !clear & !beyond & !none ? 1 : 0) + (inside & moves ? 2 : 0);
    }
    found->compared += (uint64_t)compared;
    found->rounded += (uint64_t)rounded;
}

/* An exponent of either sign, 2^-5 to 2^5, the same for the same argument. */
static float some_exponent(uint32_t bits)
{
    uint32_t mixed = bits * 2654435769u;

    mixed = (mixed ^ mixed >> 15) * 2246822519u;
    return f32_from_bits((mixed & 0x807fffffu) | (122 + (mixed >> 23) % 10) << 23);
}

/* 2^20 neighbouring bit patterns, or 4096 of them. */
static void run_chunk(struct job *job, uint32_t chunk, struct block *b, struct value pair[2], struct finding *found)
{
    const struct reference *of = job->of;
    uint32_t base = chunk * CHUNK, size = CHUNK;
    crypto_generichash_state hash;

    if (!job->full) {
        base += (chunk * 2654435769u >> 20 << 8 & (CHUNK - 1)) / BLOCK * BLOCK;
        size = BLOCK;
    }
    b->x[0] = b->y[0] = b->got[0] = NAN;
    b->near[0] = (double)NAN;
    crypto_generichash_init(&hash, NULL, 0, DIGEST);
    for (uint32_t start = 0; start < size; start += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            b->x[i + 1] = f32_from_bits(base + start + i);
            b->y[i + 1] = of->second == of->second ? of->second : some_exponent(base + start + i);
        }
        run(of, BLOCK, b->x + 1, b->y + 1, b->got + 1);
        hash_block(&hash, b->got + 1, BLOCK);
        of->near(BLOCK, b->x + 1, b->y + 1, b->near + 1);
        sift(of, b, found);
        for (uint32_t i = 1; i <= BLOCK; i++) {
            if (!b->open[i] && (i != 1234 || start % (CHUNK / 4) != 0))
                continue;
            value_set(&pair[0], b->x[i - 1], b->y[i - 1], b->near[i - 1]);
            value_set(&pair[1], b->x[i], b->y[i], b->near[i]);
            if (b->open[i] & 1)
                compare(&pair[1], b->got[i], found);
            if (b->open[i] & 2)
                found->breaks += breaks(&pair[0], &pair[1], b->got[i - 1], b->got[i]);
            if (i == 1234 && b->x[i] >= of->from && b->x[i] <= of->to)
                found->unsound += !sound(&pair[1]);
        }
        b->x[0] = b->x[BLOCK];
        b->y[0] = b->y[BLOCK];
        b->got[0] = b->got[BLOCK];
        b->near[0] = b->near[BLOCK];
    }
    crypto_generichash_final(&hash, job->digest[chunk], DIGEST);
}

static void *work(void *argument)
{
    struct job *job = argument;
    struct value pair[2];
    struct finding found = { .error = 0.4 }; /* every function has worse ones; spares the search its start */

    struct block *block = malloc(sizeof *block);

    value_init(&pair[0], job->of);
    value_init(&pair[1], job->of);
    for (uint32_t chunk; (chunk = atomic_fetch_add(&job->next, 1)) < CHUNKS && block;)
        run_chunk(job, chunk * 1597u % CHUNKS, block, pair, &found); /* large errors are met early */
    value_clear(&pair[0]);
    value_clear(&pair[1]);
    free(block);
    pthread_mutex_lock(&job->lock);
    if (found.error > job->found.error) {
        job->found.error = found.error;
        job->found.argument = found.argument;
    }
    job->found.compared += found.compared;
    job->found.rounded += found.rounded;
    job->found.breaks += found.breaks;
    job->found.specials += found.specials;
    job->found.decided += found.decided;
    job->found.unsound += found.unsound;
    pthread_mutex_unlock(&job->lock);
    mpfr_free_cache();
    return NULL;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nanoseconds an element on arguments of (-8, 8), or (0, 8) where the domain is: the best of nine rounds. */
static double speed(const struct reference *of)
{
    enum { N = 2048, TIMES = 200 };
    float x[N], y[N], out[N];
    double best = INFINITY;

    for (int i = 0; i < N; i++) {
        x[i] = (float)((i * 1103 % N) - N / 2) * (8.0f / (N / 2)) + 0.001f;
        x[i] = of->op == ELEMENTWISE_LOG || of->op == ELEMENTWISE_RSQRT || of->op == ELEMENTWISE_LOG1P || of->near == near_pow
                   ? fabsf(x[i])
                   : x[i];
        y[i] = of->second == of->second ? of->second : some_exponent((uint32_t)i);
    }
    for (int round = 0; round < 9; round++) {
        double start = now(), spent;

        for (int i = 0; i < TIMES; i++)
            run(of, N, x, y, out);
        spent = (now() - start) * 1e9 / (N * TIMES);
        best = spent < best ? spent : best;
    }
    return best;
}

static bool told(const struct job *job, bool json)
{
    const struct finding *found = &job->found;
    const struct reference *of = job->of;
    bool ok = found->error <= (double)of->limit && found->unsound == 0;
    double rounded = (double)found->rounded / (double)(found->compared ? found->compared : 1), ns = speed(of);
    char digest[2 * DIGEST + 1];
    uint8_t whole[DIGEST];

    crypto_generichash(whole, DIGEST, (const uint8_t *)job->digest, sizeof job->digest, NULL, 0);
    sodium_bin2hex(digest, sizeof digest, whole, DIGEST);
    printf(
        json
            ? "{\"name\":\"functions.%s\",\"ours\":%.3f,\"unit\":\"ns/element\",\"ulp\":%.5f,\"limit\":%g,\"argument\":\"%a\","
              "\"rounded\":%.6f,\"breaks\":%llu,\"specials\":%llu,\"arguments\":%llu,\"decided\":%llu,\"digest\":\"%s\","
              "\"isa\":\"%s\",\"ok\":%s}\n"
            : "%-13s %7.3f ns %9.5f ulp (limit %g) at %-16a rounded %.4f  breaks %llu  specials %llu  of %llu, MPFR for %llu  %s "
              "%s%s\n",
        of->name, ns, found->error, (double)of->limit, (double)found->argument, rounded, (unsigned long long)found->breaks,
        (unsigned long long)found->specials, (unsigned long long)found->compared, (unsigned long long)found->decided, digest,
        kernel_isa_name(kernel_isa()),
        json ? (ok ? "true" : "false")
        : ok ? ""
             : "  BEYOND ITS LIMIT");
    fflush(stdout);
    if (found->unsound)
        fprintf(stderr, "functions: the binary64 value of %s is off by more than its bound, %llu times: nothing can be said\n",
                of->name, (unsigned long long)found->unsound);
    return ok;
}

static bool measure(const struct reference *of, bool full, bool json, unsigned threads)
{
    struct job *job = calloc(1, sizeof *job);
    pthread_t thread[64];
    bool ok;

    if (!job)
        return false;
    job->of = of;
    job->full = full;
    pthread_mutex_init(&job->lock, NULL);
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, work, job);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    ok = told(job, json);
    pthread_mutex_destroy(&job->lock);
    free(job);
    return ok;
}

static bool named(const char *name, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    bool full = false, json = false, ok = true;
    unsigned threads = 2;
    struct error err = { 0 };
    char text[1024];
    int at = 1;

    for (; at < argc && argv[at][0] == '-'; at++)
        if (strcmp(argv[at], "--full") == 0)
            full = true;
        else if (strcmp(argv[at], "--json") == 0)
            json = true;
        else if (strcmp(argv[at], "--threads") == 0 && at + 1 < argc && atoi(argv[at + 1]) > 0 && atoi(argv[at + 1]) <= 64)
            threads = (unsigned)atoi(argv[++at]);
        else {
            fprintf(stderr, "usage: functions [--full] [--json] [--threads 1..64] [NAME...]\n");
            return 2;
        }
    if (sodium_init() < 0 || !kernel_start(&err)) {
        fprintf(stderr, "%s\n", error_text(&err, text, sizeof text));
        return 3;
    }
    for (size_t i = 0; i < REFERENCES; i++)
        if (named(references[i].name, argc - at, argv + at))
            ok = measure(&references[i], full, json, threads) && ok;
    return ok ? 0 : 1;
}
