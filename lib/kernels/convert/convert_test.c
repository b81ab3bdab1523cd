/* Conversion must follow the scalar rule to the bit on every instruction set: for all upper halves with lower halves
 * around ties, and for every tail. */
#include "lib/kernels/convert/convert.h"
#include "tests/support/kernels/arrays.h"

static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1234};

/* Returns every upper half with each of `lower`. */
static float *all_numbers(uint64_t *count)
{
    *count = 0x10000 * TEST_COUNT_OF(lower);
    float *x = test_floats(*count);
    for (uint64_t i = 0; i < *count; i++) {
        uint32_t bits = (uint32_t)(i / TEST_COUNT_OF(lower)) << 16 | lower[i % TEST_COUNT_OF(lower)];
        memcpy(x + i, &bits, sizeof bits);
    }
    return x;
}

static void rounds_as_the_scalar_rule(void **state)
{
    (void)state;
    uint64_t count;
    float *x = all_numbers(&count);
    TEST_EACH_WAY(way)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        sluice_stream stream = test_stream(threads);
        uint16_t *y = (uint16_t *)test_floats(count);
        assert_int_equal(slc_convert(&stream, SLUICE_FP32, x, SLUICE_BF16, y, count), SLUICE_OK);
        for (uint64_t i = 0; i < count; i++)
            if (y[i] != sluice_bf16_from_float(x[i]))
                fail_msg("%a became %x, not %x, on %s", (double)x[i], y[i], sluice_bf16_from_float(x[i]),
                         test_way_name());
        test_release(y);
        slc_stream_destroy(&stream);
    }
    test_release(x);
}

static void widens_exactly(void **state)
{
    (void)state;
    const uint64_t count = 0x10000;
    uint16_t *x = test_bytes(count * sizeof *x), *back = test_bytes(count * sizeof *back);
    for (uint64_t i = 0; i < count; i++) x[i] = (uint16_t)i;
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(2);
        uint32_t *y = (uint32_t *)test_floats(count);
        assert_int_equal(slc_convert(&stream, SLUICE_BF16, x, SLUICE_FP32, y, count), SLUICE_OK);
        for (uint64_t i = 0; i < count; i++) assert_int_equal(y[i], (uint32_t)i << 16);
        assert_int_equal(slc_convert(&stream, SLUICE_FP32, y, SLUICE_BF16, back, count), SLUICE_OK);
        for (uint64_t i = 0; i < count; i++) {
            bool signalling = (i & 0x7fff) > 0x7f80 && !(i & 0x40);
            assert_int_equal(back[i], signalling ? i | 0x40 : i);
        }
        test_release(y);
        slc_stream_destroy(&stream);
    }
    test_release(x), test_release(back);
}

/* The memory that a conversion reads ends with the last element, so that the address sanitizer sees a read beyond it.
 * The memory that it writes has one element more. */
static void tails_and_copies(void **state)
{
    (void)state;
    float *x = test_floats(64), *y = test_floats(65);
    uint16_t *half = test_bytes(65 * sizeof *half);
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    TEST_EACH_WAY(way)
    for (uint64_t count = 0; count <= 64; count++) {
        sluice_stream stream = test_stream(1);
        float *wide = test_copy(count, x);
        uint16_t *narrow = test_bytes(count * sizeof *narrow);
        for (int i = 0; i < 65; i++) y[i] = -1, half[i] = 0xdead;
        assert_int_equal(slc_convert(&stream, SLUICE_FP32, wide, SLUICE_BF16, half, count), SLUICE_OK);
        memcpy(narrow, half, count * sizeof *narrow);
        assert_int_equal(slc_convert(&stream, SLUICE_BF16, narrow, SLUICE_FP32, y, count), SLUICE_OK);
        assert_memory_equal(x, y, count * sizeof *x);
        assert_true(y[count] == -1 && half[count] == 0xdead);
        assert_int_equal(slc_convert(&stream, SLUICE_FP32, x, SLUICE_FP32, y, count), SLUICE_OK);
        assert_int_equal(slc_convert(&stream, SLUICE_BF16, half, SLUICE_BF16, half, count), SLUICE_OK);
        assert_memory_equal(x, y, count * sizeof *x);
        test_release(wide), test_release(narrow);
        slc_stream_destroy(&stream);
    }
    test_release(x), test_release(y), test_release(half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_as_the_scalar_rule),
        cmocka_unit_test(widens_exactly),
        cmocka_unit_test(tails_and_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
