/* Reductions are equal to the plain float loop bit for bit: any instruction set, split, alignment, aliasing. */
#include "lib/kernels/kernel_test.h"
#include "lib/kernels/reduce/reduce.h"
#include "lib/kernels/reduce/reduce_ref.h"

enum { MOST = 7, LONGEST = 70000, SLACK = 16 }; /* LONGEST is cut between threads */

typedef struct {
    uint64_t count;
    uint32_t sources, destinations, threads;
    int alias; /* index of the source that is the first destination; -1: none */
    uint32_t offset;
    float scale;
    bool accumulate, stream;
} reduction;

static void check(const reduction *r)
{
    float *sources[MOST], *destinations[MOST], *expected[MOST];
    const float *in[MOST];
    float *got[MOST], *want[MOST];
    for (uint32_t s = 0; s < r->sources; s++) {
        sources[s] = test_uniform_floats(r->count + SLACK, -2.0f, 2.0f, 100 + s);
        in[s] = sources[s] + r->offset;
    }
    for (uint32_t d = 0; d < r->destinations; d++) {
        destinations[d] = test_uniform_floats(r->count + SLACK, -1.0f, 1.0f, 200 + d);
        expected[d] = test_copy(r->count + SLACK, destinations[d]);
        got[d] = destinations[d] + r->offset;
        want[d] = expected[d] + r->offset;
    }
    if (r->alias >= 0) {
        memcpy(expected[0], sources[r->alias], (r->count + SLACK) * sizeof(float));
        got[0] = sources[r->alias] + r->offset;
    }
    slc_reduce_ref(r->count, in, r->sources, r->scale, r->accumulate, want, r->destinations);

    slc_stream stream = test_stream(r->threads);
    assert_int_equal(
        slc_reduce(&stream, r->count, in, r->sources, r->scale, r->accumulate, got, r->destinations, r->stream),
        SLUICE_OK);
    for (uint32_t d = 0; d < r->destinations; d++) /* what lies around the range is untouched too */
        assert_memory_equal(got[d] - r->offset, expected[d], (r->count + SLACK) * sizeof(float));
    for (uint32_t s = 0; s < r->sources; s++) free(sources[s]);
    for (uint32_t d = 0; d < r->destinations; d++) {
        free(destinations[d]);
        free(expected[d]);
    }
    slc_stream_destroy(&stream);
}

static void equal_to_plain_loop(void **state)
{
    (void)state;
    const uint64_t counts[] = {0, 1, 15, 16, 17, 64, 197, 1000, LONGEST};
    TEST_EACH_ISA(isa)
    for (uint32_t sources = 1; sources <= MOST; sources++)
        for (size_t c = 0; c < TEST_COUNT_OF(counts) - (sources % 3 != 2); c++) /* the longest: 2 and 5 */
            for (uint32_t variant = 0; variant < 32; variant++) {
                reduction r = {.count = counts[c],
                               .sources = sources,
                               .threads = 1 + (variant & 1),
                               .stream = variant & 2,
                               .accumulate = variant & 4,
                               .destinations = variant & 8 ? 3 : 1,
                               .alias = variant & 16 ? (int)(sources - 1) : -1,
                               .offset = variant & 1 ? 3 : 0,
                               .scale = variant & 2 ? 1.0f : 0.3f};
                if (r.accumulate) r.destinations = 1;
                check(&r);
            }
}

static void destinations_of_unequal_alignment(void **state)
{
    (void)state;
    enum { COUNT = 333 };
    float *a = test_uniform_floats(COUNT + SLACK, -1, 1, 1), *b = test_uniform_floats(COUNT + SLACK, -1, 1, 2);
    float *x = test_floats(COUNT + SLACK), *y = test_floats(COUNT + SLACK);
    const float *sources[] = {a, b};
    slc_stream stream = test_stream(1);
    TEST_EACH_ISA(isa)
    {
        float *destinations[] = {x + 1, y + 6};
        assert_int_equal(slc_reduce(&stream, COUNT, sources, 2, 0.5f, false, destinations, 2, true), SLUICE_OK);
        for (int i = 0; i < COUNT; i++) {
            float want = 0.5f * (a[i] + b[i]);
            assert_memory_equal(&x[1 + i], &want, sizeof want);
            assert_memory_equal(&y[6 + i], &want, sizeof want);
        }
    }
    free(a), free(b), free(x), free(y);
    slc_stream_destroy(&stream);
}

static void small_vectors(void **state)
{
    (void)state;
    int64_t ia[] = {1, INT64_C(1) << 40, -5}, ib[] = {7, 9, INT64_C(1) << 50};
    double da[] = {1e300, 0.1, 3}, db[] = {-1e300, 0.2, 4}, dc[] = {1, 0.3, 5}, out[3];
    const int64_t *integers[] = {ia, ib};
    const double *doubles[] = {da, db, dc};
    slc_stream stream = test_stream(2);
    assert_int_equal(slc_reduce_int64(&stream, 3, integers, 2, (int64_t *[]){ia, ib}, 2), SLUICE_OK);
    const int64_t want[] = {8, (INT64_C(1) << 40) + 9, (INT64_C(1) << 50) - 5};
    assert_memory_equal(ia, want, sizeof want);
    assert_memory_equal(ib, want, sizeof want);
    assert_int_equal(slc_reduce_float64(&stream, 3, doubles, 3, (double *[]){out}, 1), SLUICE_OK);
    const double sums[] = {1, 0.1 + 0.2 + 0.3, 12};
    assert_memory_equal(out, sums, sizeof sums);
    slc_stream_destroy(&stream);
}

static void wrong_arguments(void **state)
{
    (void)state;
    float x = 0, y = 0;
    const float *source = &x;
    slc_stream stream = test_stream(1);
    assert_int_equal(slc_reduce(&stream, 1, &source, 0, 1, false, (float *[]){&y}, 1, false), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_reduce(&stream, 1, &source, 1, 1, true, (float *[]){&y, &x}, 2, false), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_plain_loop),
        cmocka_unit_test(destinations_of_unequal_alignment),
        cmocka_unit_test(small_vectors),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
