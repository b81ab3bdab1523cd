/* Reductions must equal the plain float loop bit for bit, for any type, instruction set, split, alignment and
 * aliasing. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/reduce/reduce.h"

enum { MOST = 7, LONGEST = 70000, SLACK = 16 }; /* LONGEST is cut between threads */

typedef struct {
    uint64_t count;
    uint32_t sources, destinations, threads;
    int alias; /* index of the source that is the first destination; -1: none */
    uint32_t offset;
    float scale;
    bool accumulate, stream;
    sluice_dtype from, to;
} reduction;

/* Draws numbers and rounds them to the type; the caller frees them. */
static void *numbers(sluice_dtype dtype, uint64_t count, float most, uint64_t seed)
{
    float *x = test_uniform_floats(count, -most, most, seed);
    if (dtype == SLUICE_FP32) return x;
    uint16_t *narrow = test_bytes(count * sizeof *narrow);
    for (uint64_t i = 0; i < count; i++) narrow[i] = sluice_bf16_from_float(x[i]);
    test_release(x);
    return narrow;
}

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = test_bytes(bytes);
    memcpy(copy, from, bytes);
    return copy;
}

static void check(const reduction *r)
{
    char *sources[MOST], *destinations[MOST], *expected[MOST];
    const void *in[MOST];
    void *got[MOST], *want[MOST];
    size_t in_bytes = sluice_dtype_bytes(r->from), out_bytes = sluice_dtype_bytes(r->to), all = r->count + SLACK;
    for (uint32_t s = 0; s < r->sources; s++) {
        sources[s] = numbers(r->from, all, 2.0f, 100 + s);
        in[s] = sources[s] + r->offset * in_bytes;
    }
    for (uint32_t d = 0; d < r->destinations; d++) {
        destinations[d] = numbers(r->to, all, 1.0f, 200 + d);
        expected[d] = copy_of(destinations[d], all * out_bytes);
        got[d] = destinations[d] + r->offset * out_bytes;
        want[d] = expected[d] + r->offset * out_bytes;
    }
    if (r->alias >= 0) {
        memcpy(expected[0], sources[r->alias], all * out_bytes);
        got[0] = sources[r->alias] + r->offset * out_bytes;
    }
    slc_reduce_args args = {.count = r->count,
                            .from = r->from,
                            .to = r->to,
                            .sources = in,
                            .source_count = r->sources,
                            .destination_count = r->destinations,
                            .destinations = want,
                            .scale = r->scale,
                            .accumulate = r->accumulate,
                            .stream_stores = r->stream};
    slc_reduce_ref(&args);

    sluice_stream stream = test_stream(r->threads);
    args.destinations = got;
    assert_int_equal(slc_reduce(&stream, &args), SLUICE_OK);
    for (uint32_t d = 0; d < r->destinations; d++) /* memory around the range must be untouched too */
        assert_memory_equal((char *)got[d] - r->offset * out_bytes, expected[d], all * out_bytes);
    for (uint32_t s = 0; s < r->sources; s++) test_release(sources[s]);
    for (uint32_t d = 0; d < r->destinations; d++) {
        test_release(destinations[d]);
        test_release(expected[d]);
    }
    slc_stream_destroy(&stream);
}

/* Every variant of types, accumulation, aliasing, alignment and number of destinations must equal the plain loop. */
static void equal_to_plain_loop(void **state)
{
    (void)state;
    const uint64_t counts[] = {0, 1, 15, 16, 17, 64, 197, 1000, LONGEST};
    TEST_EACH_WAY(way)
    for (uint32_t sources = 1; sources <= MOST; sources++)
        for (size_t c = 0; c < TEST_COUNT_OF(counts) - (sources % 3 != 2); c++) /* longest only for 2 and 5 */
            for (uint32_t variant = 0; variant < 128; variant++) {
                if (test_brief() && (counts[c] > 200 ? variant % 11 : (variant + sources + c) % 5)) continue;
                reduction r = {.count = counts[c],
                               .sources = sources,
                               .threads = 1 + (variant & 1),
                               .stream = variant & 2,
                               .accumulate = variant & 4,
                               .destinations = variant & 8 ? 3 : 1,
                               .alias = variant & 16 ? (int)(sources - 1) : -1,
                               .offset = variant & 1 ? 3 : 0,
                               .scale = variant & 2 ? 1.0f : 0.3f,
                               .from = variant & 32 ? SLUICE_BF16 : SLUICE_FP32,
                               .to = variant & 64 ? SLUICE_BF16 : SLUICE_FP32};
                if (r.accumulate) r.destinations = 1;
                if (r.from != r.to) r.alias = -1;
                if (test_on_gpu() && (r.count == LONGEST || variant % 3)) continue; /* an emulated one is slow */
                check(&r);
            }
}

/* fp32 sums of bf16 must be as good as float64 until the last rounding: within 2^-8 of the result, or the error of six
 * additions. */
static void close_to_float64(void **state)
{
    (void)state;
    enum { COUNT = 1003 };
    uint16_t *sources[MOST], *narrow = test_bytes(COUNT * sizeof *narrow);
    const void *in[MOST];
    float *wide = test_floats(COUNT);
    for (uint32_t s = 0; s < MOST; s++) in[s] = sources[s] = numbers(SLUICE_BF16, COUNT, 2.0f, 300 + s);
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        void *to_wide = wide, *to_narrow = narrow;
        slc_reduce_args args = {.count = COUNT,
                                .from = SLUICE_BF16,
                                .to = SLUICE_FP32,
                                .sources = in,
                                .source_count = MOST,
                                .destination_count = 1,
                                .destinations = &to_wide,
                                .scale = 0.25f};
        slc_reduce(&stream, &args);
        args.to = SLUICE_BF16, args.destinations = &to_narrow;
        slc_reduce(&stream, &args);
        for (int i = 0; i < COUNT; i++) {
            double sum = 0, size = 0;
            for (uint32_t s = 0; s < MOST; s++) {
                double x = (double)sluice_bf16_to_float(sources[s][i]);
                sum += 0.25 * x;
                size += fabs(0.25 * x);
            }
            assert_true(fabs((double)wide[i] - sum) <= MOST * 0x1p-24 * size);
            double rounded = (double)sluice_bf16_to_float(narrow[i]);
            assert_true(fabs(rounded - sum) <= 0x1p-8 * (fabs(sum) + MOST * 0x1p-24 * size) + MOST * 0x1p-24 * size);
        }
        slc_stream_destroy(&stream);
    }
    for (uint32_t s = 0; s < MOST; s++) test_release(sources[s]);
    test_release(narrow), test_release(wide);
}

static void destinations_of_unequal_alignment(void **state)
{
    (void)state;
    enum { COUNT = 333 };
    float *a = test_uniform_floats(COUNT + SLACK, -1, 1, 1), *b = test_uniform_floats(COUNT + SLACK, -1, 1, 2);
    float *x = test_floats(COUNT + SLACK), *y = test_floats(COUNT + SLACK);
    const void *sources[] = {a, b};
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        void *destinations[] = {x + 1, y + 6};
        const slc_reduce_args args = {.count = COUNT,
                                      .sources = sources,
                                      .source_count = 2,
                                      .destination_count = 2,
                                      .destinations = destinations,
                                      .scale = 0.5f,
                                      .stream_stores = true};
        assert_int_equal(slc_reduce(&stream, &args), SLUICE_OK);
        for (int i = 0; i < COUNT; i++) {
            float want = 0.5f * (a[i] + b[i]);
            assert_memory_equal(&x[1 + i], &want, sizeof want);
            assert_memory_equal(&y[6 + i], &want, sizeof want);
        }
        slc_stream_destroy(&stream);
    }
    test_release(a), test_release(b), test_release(x), test_release(y);
}

static void small_vectors(void **state)
{
    (void)state;
    const int64_t integers[2][3] = {{1, INT64_C(1) << 40, -5}, {7, 9, INT64_C(1) << 50}};
    const double doubles[3][3] = {{1e300, 0.1, 3}, {-1e300, 0.2, 4}, {1, 0.3, 5}};
    const int64_t want[] = {8, (INT64_C(1) << 40) + 9, (INT64_C(1) << 50) - 5};
    const double sums[] = {1, 0.1 + 0.2 + 0.3, 12};
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(2);
        int64_t(*i)[3] = test_bytes(sizeof integers);
        double(*d)[3] = test_bytes(sizeof doubles), *out = test_bytes(sizeof sums);
        memcpy(i, integers, sizeof integers);
        memcpy(d, doubles, sizeof doubles);
        assert_int_equal(slc_reduce_int64(&stream, 3, (const int64_t *[]){i[0], i[1]}, 2, (int64_t *[]){i[0], i[1]}, 2),
                         SLUICE_OK);
        assert_memory_equal(i[0], want, sizeof want);
        assert_memory_equal(i[1], want, sizeof want);
        assert_int_equal(slc_reduce_float64(&stream, 3, (const double *[]){d[0], d[1], d[2]}, 3, (double *[]){out}, 1),
                         SLUICE_OK);
        assert_memory_equal(out, sums, sizeof sums);
        test_release(i), test_release(d), test_release(out);
        slc_stream_destroy(&stream);
    }
}

static void wrong_arguments(void **state)
{
    (void)state;
    float x = 0, y = 0;
    const void *source = &x;
    void *to[] = {&y, &x};
    sluice_stream stream = test_stream(1);
    slc_reduce_args args = {.count = 1, .sources = &source, .destination_count = 1, .destinations = to, .scale = 1};
    assert_int_equal(slc_reduce(&stream, &args), SLUICE_ERR_ARGUMENT);
    args.source_count = 1, args.destination_count = 2, args.accumulate = true;
    assert_int_equal(slc_reduce(&stream, &args), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_plain_loop),
        cmocka_unit_test(close_to_float64),
        cmocka_unit_test(destinations_of_unequal_alignment),
        cmocka_unit_test(small_vectors),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
