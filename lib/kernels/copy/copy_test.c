/* A copy past the cache must equal memcpy, for any instruction set, length, alignment and split, and touch nothing
 * else. The bytes are random, so that as floats many of them are no numbers, which must come through as they are. */
#include "lib/kernels/copy/copy.h"
#include "tests/support/kernels/arrays.h"

enum { LONGEST = 600000, SLACK = 256 }; /* LONGEST is cut between threads */

static void fill(unsigned char *at, uint64_t bytes, uint64_t seed)
{
    for (uint64_t i = 0; i < bytes; i++) at[i] = (unsigned char)((seed = seed * 6364136223846793005u + 1) >> 56);
}

static void equal_to_memcpy(void **state)
{
    (void)state;
    const uint64_t lengths[] = {0, 1, 63, 64, 65, 127, 128, 1000, 4096, LONGEST};
    const uint64_t starts[] = {0, 1, 4, 60, 63, 64};
    unsigned char *src = test_bytes(LONGEST + SLACK), *dst = test_bytes(LONGEST + SLACK);
    unsigned char *want = test_bytes(LONGEST + SLACK);
    fill(src, LONGEST + SLACK, 1);
    TEST_EACH_WAY(way)
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sluice_stream stream = test_stream(threads);
        for (size_t l = 0; l < TEST_COUNT_OF(lengths); l++)
            for (size_t i = 0; i < TEST_COUNT_OF(starts) * TEST_COUNT_OF(starts); i++) {
                const uint64_t to = starts[i / TEST_COUNT_OF(starts)], from = starts[i % TEST_COUNT_OF(starts)];
                fill(dst, lengths[l] + SLACK, 2);
                memcpy(want, dst, lengths[l] + SLACK);
                memcpy(want + to, src + from, lengths[l]);
                assert_int_equal(slc_copy_past_cache(&stream, dst + to, src + from, lengths[l]), SLUICE_OK);
                assert_int_equal(slc_stream_synchronize(&stream), SLUICE_OK);
                assert_memory_equal(dst, want, lengths[l] + SLACK);
            }
        slc_stream_destroy(&stream);
    }
    test_release(src), test_release(dst), test_release(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_to_memcpy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
