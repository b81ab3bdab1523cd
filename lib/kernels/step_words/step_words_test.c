/* The words of a step must hold what a plain look at each element finds, to the bit, for any cut into calls; and the
 * conclusions must be those that a host draws from the same bins. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/step_words/step_words.h"

typedef int64_t bins_of_norm[SLC_NORM_BINS];

static slc_step_words *new_words(sluice_stream *stream)
{
    slc_step_words *words = test_bytes(sizeof *words);
    memset(words, 0x5a, sizeof *words);
    assert_int_equal(slc_step_words_begin(stream, words, 0, NULL), SLUICE_OK);
    return words;
}

/* Returns floats of every exponent, denormals among them, and `bad` that are not finite, in drawn places. */
static float *wild_floats(uint64_t count, uint32_t bad, uint64_t *seed)
{
    static const float not_finite[] = {NAN, -NAN, INFINITY, -INFINITY};
    float *x = test_floats(count);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)test_random(seed);
        if (test_random(seed) % 4 == 0) bits &= 0x807fffffu; /* a denormal, or 0 */
        memcpy(&x[i], &bits, sizeof bits);
        if (!isfinite(x[i])) x[i] = 0;
    }
    for (uint32_t b = 0; count && b < bad; b++) x[test_random(seed) % count] = not_finite[test_random(seed) % 4];
    return x;
}

static void begins_with_nothing_inspected(void **state)
{
    (void)state;
    const uint32_t counts[] = {0, 1, 2, 7, 700};
    TEST_EACH_WAY(way)
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++) {
        const uint32_t count = counts[c];
        sluice_stream stream = test_stream(1);
        slc_step_words *words = test_bytes(sizeof *words);
        bins_of_norm *norms = test_bytes((count + 1) * sizeof *norms);
        memset(words, 0x5a, sizeof *words);
        memset(norms, 0x5a, (count + 1) * sizeof *norms);
        assert_int_equal(slc_step_words_begin(&stream, words, count, norms), SLUICE_OK);
        assert_true(words->told.gradient_factor == 1);
        assert_int_equal(words->told.skip, 0);
        assert_int_equal(words->non_finite, 0);
        assert_true(words->first_bad == UINT32_MAX);
        for (int i = 0; i < SLC_NORM_BINS; i++) assert_int_equal(words->bins[i], 0);
        for (uint32_t n = 0; n <= count; n++)
            for (int i = 0; i < SLC_NORM_BINS; i++) assert_int_equal(norms[n][i], n < count ? 0 : 0x5a5a5a5a5a5a5a5a);
        test_release(words), test_release(norms);
        slc_stream_destroy(&stream);
    }
}

static void inspect(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, slc_inspection norm,
                    uint32_t parameter, slc_step_words *words)
{
    const slc_step_words_range range = {.count = count, .x = x, .parameter = parameter};
    const slc_step_words_inspect_args args = {
        .words = words, .dtype = dtype, .norm = norm, .range_count = 1, .ranges = &range};
    assert_int_equal(slc_step_words_inspect(stream, &args), SLUICE_OK);
}

/* The words must say what the reference's say. The number of times that an element that is not finite counts is left
 * open. */
static void check_words(const slc_step_words *got, const slc_step_words *want)
{
    for (int i = 0; i < SLC_NORM_BINS; i++)
        if (got->bins[i] != want->bins[i])
            fail_msg("bin %d on %s: %lld, not %lld", i, test_way_name(), (long long)got->bins[i],
                     (long long)want->bins[i]);
    assert_true(got->first_bad == want->first_bad);
    assert_int_equal(got->non_finite > 0, want->non_finite > 0);
    assert_true(got->told.gradient_factor == 1 && got->told.skip == 0);
}

/* One array is one parameter, given in pieces of drawn length, which all but the last are whole grains; `shift` moves
 * its beginning away from where loads of 16 bytes may begin. */
static void inspect_in_pieces(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x,
                              slc_inspection norm, uint32_t parameter, slc_step_words *words, uint64_t *seed)
{
    for (uint64_t at = 0, n; at < count; at += n) {
        n = 16 * (1 + test_random(seed) % (count / 16 + 1));
        if (n > count - at) n = count - at;
        const char *from = (const char *)x + at * sluice_dtype_bytes(dtype);
        inspect(stream, dtype, n, from, norm, parameter, words);
    }
}

/* Puts the bins of this rank's own gradients in the place of the others. */
static void exchange_bins(slc_step_words *words)
{
    bins_of_norm bins;
    memcpy(bins, words->bins, sizeof bins);
    memcpy(words->bins, words->own_bins, sizeof bins);
    memcpy(words->own_bins, bins, sizeof bins);
}

static void finds_what_a_plain_look_finds(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 15, 16, 17, 31, 197, 4096, 4097, 16 * 257 + 5, 39001};
    uint64_t seed = 5;
    TEST_EACH_DTYPE(dtype)
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++)
        for (uint32_t variant = 0; variant < 8; variant++) {
            const bool norm = variant & 1;
            const uint64_t count = counts[c], shift = variant & 2 ? 1 + test_random(&seed) % 7 : 0;
            const uint32_t parameter = (uint32_t)test_random(&seed), bad = variant & 4 ? 1 + variant : 0;
            float *drawn = wild_floats(shift + count, bad, &seed);
            void *x = test_typed(dtype, shift + count, drawn);
            float *wide = test_floats_of(dtype, shift + count, x);
            slc_step_words want = {.first_bad = UINT32_MAX};
            slc_step_words_inspect_ref(count, wide + shift, norm, parameter, &want);
            const uint64_t cut = test_random(&seed);
            TEST_EACH_WAY_OF(way, count)
            for (uint32_t threads = 1; threads <= 2; threads++) {
                sluice_stream stream = test_stream(threads);
                slc_step_words *words = new_words(&stream);
                const char *from = (const char *)x + shift * sluice_dtype_bytes(dtype);
                uint64_t cuts = cut;
                if (threads == 1)
                    inspect(&stream, dtype, count, from, norm, parameter, words);
                else
                    inspect_in_pieces(&stream, dtype, count, from, norm ? SLC_INSPECT_OWN_NORM : SLC_INSPECT_FINITE,
                                      parameter, words, &cuts);
                if (threads == 2) exchange_bins(words);
                check_words(words, &want);
                exchange_bins(words);
                for (int i = 0; i < SLC_NORM_BINS; i++) assert_int_equal(words->bins[i], 0);
                test_release(words);
                slc_stream_destroy(&stream);
            }
            test_release(drawn), test_release(x), test_release(wide);
        }
}

static void nothing_to_look_at(void **state)
{
    (void)state;
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        slc_step_words *words = new_words(&stream);
        const slc_step_words want = {.first_bad = UINT32_MAX};
        const slc_step_words_inspect_args none = {.words = words};
        for (int norm = 0; norm < 2; norm++) inspect(&stream, SLUICE_FP32, 0, NULL, norm, 3, words);
        assert_int_equal(slc_step_words_inspect(&stream, &none), SLUICE_OK);
        check_words(words, &want);
        test_release(words);
        slc_stream_destroy(&stream);
    }
}

/* Many parameters in a drawn order, some of them bad: the least number is told, whoever comes first. They are given one
 * by one, or all at once, which on a GPU is more than one launch takes. */
static void many_parameters(void **state)
{
    (void)state;
    enum { PARAMETERS = SLC_STEP_WORDS_RANGES + 20, MOST = 300 };
    uint64_t seed = 11;
    for (int round = 0; round < 6; round++) {
        slc_step_words_range ranges[PARAMETERS];
        float *x[PARAMETERS];
        for (uint32_t p = 0; p < PARAMETERS; p++) {
            const uint64_t count = p == 5 ? 16 * 3 * 1031 : test_random(&seed) % MOST;
            x[p] = wild_floats(count, round && test_random(&seed) % 10 == 0, &seed);
            ranges[p] = (slc_step_words_range){.count = count, .x = x[p], .parameter = 7 * p};
        }
        slc_step_words want = {.first_bad = UINT32_MAX};
        for (uint32_t p = 0; p < PARAMETERS; p++)
            slc_step_words_inspect_ref(ranges[p].count, x[p], round != 5, 7 * p, &want);
        for (uint32_t p = PARAMETERS; p-- > 1;) {
            uint32_t other = (uint32_t)(test_random(&seed) % (p + 1));
            slc_step_words_range kept = ranges[p];
            ranges[p] = ranges[other], ranges[other] = kept;
        }
        TEST_EACH_WAY(way)
        for (uint32_t together = 1; together <= PARAMETERS; together += PARAMETERS - 1) {
            sluice_stream stream = test_stream(1);
            slc_step_words *words = new_words(&stream);
            for (uint32_t i = 0; i < PARAMETERS; i += together) {
                const slc_step_words_inspect_args args = {
                    .words = words, .norm = round != 5, .range_count = together, .ranges = ranges + i};
                assert_int_equal(slc_step_words_inspect(&stream, &args), SLUICE_OK);
            }
            check_words(words, &want);
            test_release(words);
            slc_stream_destroy(&stream);
        }
        for (uint32_t p = 0; p < PARAMETERS; p++) test_release(x[p]);
    }
}

/* ---- tell ---- */

static void others_may_tell_of_parameters(void **state)
{
    (void)state;
    const struct {
        uint32_t first_bad, numbers[3], want;
        uint64_t non_finite, want_non_finite;
    } cases[] = {{UINT32_MAX, {UINT32_MAX, UINT32_MAX, UINT32_MAX}, UINT32_MAX, 0, 0},
                 {UINT32_MAX, {UINT32_MAX, 8, 5}, 5, 0, 1},
                 {4, {UINT32_MAX, 8, 5}, 4, 3, 3},
                 {4, {UINT32_MAX, UINT32_MAX, UINT32_MAX}, 4, 0, 1}};
    TEST_EACH_WAY(way)
    for (size_t c = 0; c < TEST_COUNT_OF(cases); c++) {
        sluice_stream stream = test_stream(1);
        slc_step_words *words = new_words(&stream);
        uint32_t *numbers = test_bytes(sizeof cases[c].numbers);
        memcpy(numbers, cases[c].numbers, sizeof cases[c].numbers);
        words->first_bad = cases[c].first_bad, words->non_finite = cases[c].non_finite;
        assert_int_equal(slc_step_words_tell(&stream, words, 3, numbers), SLUICE_OK);
        assert_true(words->first_bad == cases[c].want && words->non_finite == cases[c].want_non_finite);
        for (int i = 0; i < 3; i++) assert_true(numbers[i] == UINT32_MAX);
        test_release(words), test_release(numbers);
        slc_stream_destroy(&stream);
    }
}

/* ---- agree ---- */

/* Fills bins with the squares of drawn floats of a drawn scale, from denormal to huge, or leaves them at 0. */
static void draw_bins(int64_t *bins, uint64_t *seed)
{
    enum { COUNT = 100 };
    float x[COUNT];
    memset(bins, 0, sizeof(bins_of_norm));
    const int scale = (int)(test_random(seed) % 278) - 149;
    if (test_random(seed) % 20 == 0) return;
    for (int i = 0; i < COUNT; i++) x[i] = ldexpf(test_uniform(seed, -1, 1), scale);
    const uint64_t times = 1 + test_random(seed) % 50;
    slc_norm_add_ref(1 + test_random(seed) % COUNT, x, bins);
    for (int i = 0; i < SLC_NORM_BINS; i++) bins[i] *= (int64_t)times;
}

static void check_norm(double got, const int64_t *bins)
{
    const double host = slc_norm_result(bins);
    const long double plain = slc_step_words_norm_ref(bins);
    if (memcmp(&got, &host, sizeof got)) fail_msg("norm on %s: %.17g, not %.17g", test_way_name(), got, host);
    if (!(fabsl((long double)got - plain) <= 1e-15L * plain) && !(isinf(got) && isinf(plain)))
        fail_msg("norm on %s: %.17g, not %.17Lg", test_way_name(), got, plain);
}

static void check_conclusion(sluice_stream *stream, slc_step_words *words, double clip, bool skips, double scale)
{
    const slc_step_words before = *words;
    const double own_scale = 1.0 / 3, brought = scale == 0 ? 1 : scale;
    double want = brought, own = own_scale;
    if (clip > 0 && !before.non_finite) {
        want = brought * fmin(1, clip / (slc_norm_result(before.bins) * fabs(brought) + 1e-6));
        own = own_scale * fmin(1, clip / (slc_norm_result(before.own_bins) * own_scale + 1e-6));
    }
    words->told = words->own = (sluice_step_words){5, 7}; /* to be replaced */
    const slc_step_words_agree_args args = {
        .words = words, .clip = clip, .own_scale = own_scale, .skip_non_finite = skips, .scale = scale};
    assert_int_equal(slc_step_words_agree(stream, &args), SLUICE_OK);
    assert_memory_equal(&words->told.gradient_factor, &want, sizeof want);
    assert_memory_equal(&words->own.gradient_factor, &own, sizeof own);
    assert_int_equal(words->told.skip, skips && before.non_finite);
    assert_int_equal(words->own.skip, skips && before.non_finite);
    assert_memory_equal(words->bins, before.bins, sizeof before.bins);
    assert_true(words->non_finite == before.non_finite && words->first_bad == before.first_bad);
}

static void factor_is_the_hosts(void **state)
{
    (void)state;
    const double clips[] = {0, 1, 0.1, 3.7, 1e-30, 1e30}, scales[] = {0, 1.0 / 6, -3};
    TEST_EACH_WAY(way)
    {
        uint64_t seed = 3;
        sluice_stream stream = test_stream(1);
        slc_step_words *words = new_words(&stream);
        for (int round = 0; round < 100; round++) {
            draw_bins(words->bins, &seed);
            draw_bins(words->own_bins, &seed);
            if (round == 7) words->bins[SLC_NORM_BINS - 1] = 2;
            words->non_finite = round == 7 || round % 5 == 0 ? 1 + (uint64_t)round : 0;
            for (size_t c = 0; c < TEST_COUNT_OF(clips); c++)
                for (int skips = 0; skips < 2; skips++)
                    check_conclusion(&stream, words, clips[c], skips, scales[round % 3]);
        }
        test_release(words);
        slc_stream_destroy(&stream);
    }
}

/* The numbers of every parameter: norms, then maxima. */
static void norms_are_the_hosts(void **state)
{
    (void)state;
    const uint32_t shapes[][3] = {{1, 2, 0}, {33, 1, 0}, {300, 2, 1}, {5, 0, 3}, {148, 2, 0}};
    uint64_t seed = 9;
    for (size_t s = 0; s < TEST_COUNT_OF(shapes); s++) {
        const uint32_t norms_each = shapes[s][1], maxima_each = shapes[s][2], each = norms_each + maxima_each;
        const uint32_t count = shapes[s][0] * each;
        bins_of_norm *bins = test_bytes(count * sizeof *bins);
        double *largest = test_doubles(count);
        for (uint32_t i = 0; i < count; i++) {
            draw_bins(bins[i], &seed);
            if (s == 1 && i == 17) bins[i][SLC_NORM_BINS - 1] = 1;
            largest[i] = (double)test_uniform(&seed, 0, 100);
            if (i % each >= norms_each) memcpy(&bins[i][0], &largest[i], sizeof largest[i]);
        }
        TEST_EACH_WAY(way)
        {
            sluice_stream stream = test_stream(1);
            slc_step_words *words = new_words(&stream);
            double *norms = test_bytes((count + 1) * sizeof *norms);
            norms[count] = -5;
            const slc_step_words_agree_args args = {.words = words,
                                                    .skip_non_finite = true,
                                                    .norm_count = count,
                                                    .norms_each = norms_each,
                                                    .maxima_each = maxima_each,
                                                    .norm_bins = bins,
                                                    .norms = norms};
            assert_int_equal(slc_step_words_agree(&stream, &args), SLUICE_OK);
            for (uint32_t i = 0; i < count; i++)
                if (i % each < norms_each)
                    check_norm(norms[i], bins[i]);
                else
                    assert_true(norms[i] == largest[i]);
            assert_true(norms[count] == -5);
            assert_true(words->told.gradient_factor == 1 && !words->told.skip);
            test_release(words), test_release(norms);
            slc_stream_destroy(&stream);
        }
        test_release(bins), test_release(largest);
    }
}

/* ---- pack and unpack ---- */

enum { RANKS_MOST = 4, HEAD = 64 };

/* The findings of one rank. */
typedef struct {
    slc_step_words *words;
    bins_of_norm *norms;
    int64_t *sums;
} found;

static found draw_found(const slc_step_words_sums_args *shape, uint32_t rank, uint64_t *seed)
{
    found f = {.words = test_bytes(sizeof *f.words),
               .norms = test_bytes((shape->norm_count + 1) * sizeof *f.norms),
               .sums = test_bytes(shape->count * sizeof *f.sums)};
    *f.words = (slc_step_words){.told = {3, 1}, .first_bad = 100 + rank, .non_finite = test_random(seed) % 3};
    draw_bins(f.words->bins, seed);
    memset(f.norms, 0, (shape->norm_count + 1) * sizeof *f.norms);
    memset(f.sums, 0x5a, shape->count * sizeof *f.sums);
    for (uint32_t i = 0; i < shape->norm_count; i++) {
        const double largest = (double)test_uniform(seed, 0, 100);
        if (i % (shape->norms_each + shape->maxima_each) < shape->norms_each)
            draw_bins(f.norms[i], seed);
        else
            memcpy(&f.norms[i][0], &largest, sizeof largest);
    }
    return f;
}

/* The number that all ranks have found together: a norm of all their squares, or the largest of the maxima. */
static double found_by_all(const found *ranks, uint32_t count, uint32_t i, bool is_norm)
{
    bins_of_norm sum = {0};
    double most = 0, one;
    for (uint32_t r = 0; r < count; r++) {
        for (int b = 0; is_norm && b < SLC_NORM_BINS; b++) sum[b] += ranks[r].norms[i][b];
        memcpy(&one, &ranks[r].norms[i][0], sizeof one);
        if (!is_norm) most = fmax(most, one);
    }
    return is_norm ? slc_norm_result(sum) : most;
}

/* Packs what each rank has found, adds up, and unpacks on one of them: it must then conclude as one rank would that had
 * found all of it. */
static void check_sums(slc_step_words_sums_args a, uint64_t *seed)
{
    sluice_stream stream = test_stream(1);
    found ranks[RANKS_MOST];
    bins_of_norm bins = {0};
    uint64_t bad = 0;
    double *want = test_doubles(a.norm_count + 1);
    for (uint32_t r = 0; r < a.ranks; r++) {
        ranks[r] = draw_found(&a, r, seed);
        bad += ranks[r].words->non_finite;
        for (int b = 0; b < SLC_NORM_BINS; b++) bins[b] += ranks[r].words->bins[b];
        a.words = ranks[r].words, a.norm_bins = ranks[r].norms, a.sums = ranks[r].sums, a.rank = r;
        assert_int_equal(slc_step_words_pack(&stream, &a), SLUICE_OK);
    }
    for (uint32_t i = 0; i < a.norm_count; i++)
        want[i] = found_by_all(ranks, a.ranks, i, i % (a.norms_each + a.maxima_each) < a.norms_each);
    for (uint32_t r = 0; r + 1 < a.ranks; r++) /* the last rank gets the sums */
        for (uint64_t i = 0; i < a.count; i++) a.sums[i] += ranks[r].sums[i];
    for (uint64_t i = HEAD + slc_step_words_sums(a.norm_count, a.norms_each, a.maxima_each, a.ranks); i < a.count; i++)
        assert_int_equal(a.sums[i], 0);
    assert_int_equal(slc_step_words_unpack(&stream, &a), SLUICE_OK);
    assert_memory_equal(a.words->bins, bins, sizeof bins);
    assert_true(a.words->non_finite == bad && a.words->first_bad == 100 + a.ranks - 1);
    double *norms = test_bytes((a.norm_count + 1) * sizeof *norms);
    const slc_step_words_agree_args agree = {.words = a.words,
                                             .norm_count = a.norm_count,
                                             .norms_each = a.norms_each,
                                             .maxima_each = a.maxima_each,
                                             .norm_bins = a.norm_bins,
                                             .norms = norms};
    assert_int_equal(slc_step_words_agree(&stream, &agree), SLUICE_OK);
    assert_memory_equal(norms, want, a.norm_count * sizeof *norms);
    for (uint32_t r = 0; r < a.ranks; r++)
        test_release(ranks[r].words), test_release(ranks[r].norms), test_release(ranks[r].sums);
    test_release(norms), test_release(want);
    slc_stream_destroy(&stream);
}

static void ranks_join_what_they_found(void **state)
{
    (void)state;
    const uint32_t shapes[][3] = {{0, 0, 0}, {1, 2, 0}, {33, 1, 0}, {60, 2, 1}, {5, 0, 3}};
    uint64_t seed = 21;
    TEST_EACH_WAY(way)
    for (size_t s = 0; s < TEST_COUNT_OF(shapes); s++)
        for (uint32_t ranks = 1; ranks <= RANKS_MOST; ranks++) {
            slc_step_words_sums_args a = {.norm_count = shapes[s][0] * (shapes[s][1] + shapes[s][2]),
                                          .norms_each = shapes[s][1],
                                          .maxima_each = shapes[s][2],
                                          .ranks = ranks,
                                          .head = HEAD};
            const uint64_t words = slc_step_words_sums(a.norm_count, a.norms_each, a.maxima_each, ranks);
            assert_int_equal(words, shapes[s][0] * (shapes[s][1] * SLC_NORM_WORDS + shapes[s][2] * ranks));
            a.count = (HEAD + words + 16 * ranks - 1) / (16 * ranks) * (16 * ranks);
            check_sums(a, &seed);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_with_nothing_inspected),
        cmocka_unit_test(finds_what_a_plain_look_finds),
        cmocka_unit_test(nothing_to_look_at),
        cmocka_unit_test(many_parameters),
        cmocka_unit_test(others_may_tell_of_parameters),
        cmocka_unit_test(factor_is_the_hosts),
        cmocka_unit_test(norms_are_the_hosts),
        cmocka_unit_test(ranks_join_what_they_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
