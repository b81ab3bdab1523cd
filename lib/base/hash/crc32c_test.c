/* The vectors of RFC 3720 must hold, and both ways must agree with a computation of one bit at a time. */
#include "lib/base/hash/crc32c.h"

#include "lib/base/numbers/random.h"
#include "tests/support/seed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

static uint32_t bit_by_bit(const unsigned char *data, size_t bytes)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes * 8; i++) {
        uint32_t bit = (crc ^ data[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void both(uint32_t wanted, const void *data, size_t bytes)
{
    assert_int_equal(slc_crc32c(0, data, bytes), wanted);
    assert_int_equal(slc_crc32c_portable(0, data, bytes), wanted);
}

static void known_vectors(void **state)
{
    (void)state;
    unsigned char bytes[32];
    both(0xe3069283, "123456789", 9);
    both(0, "", 0);
    memset(bytes, 0, sizeof bytes);
    both(0x8a9136aa, bytes, sizeof bytes);
    memset(bytes, 0xff, sizeof bytes);
    both(0x62a8ab43, bytes, sizeof bytes);
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
    both(0x46dd794e, bytes, sizeof bytes);
}

static void any_length_start_and_cut(void **state)
{
    (void)state;
    unsigned char bytes[300];
    for (uint32_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)slc_random_below(test_seed(3), 0, i, 256);
    for (size_t first = 0; first < 9; first++)
        for (size_t count = 0; count + first <= sizeof bytes; count += 7) {
            uint32_t wanted = bit_by_bit(bytes + first, count);
            both(wanted, bytes + first, count);
            uint32_t begun = slc_crc32c(0, bytes + first, count / 3);
            assert_int_equal(slc_crc32c(begun, bytes + first + count / 3, count - count / 3), wanted);
        }
}

/* Long data go in parts that take turns. */
static void long_data(void **state)
{
    (void)state;
    static unsigned char bytes[20000];
    for (uint32_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)slc_random_below(test_seed(3), 1, i, 256);
    for (size_t count = 3000; count + 3 <= sizeof bytes; count += 1021) {
        uint32_t begun = slc_crc32c(0, bytes, 3);
        assert_int_equal(slc_crc32c(begun, bytes + 3, count), bit_by_bit(bytes, 3 + count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_vectors), cmocka_unit_test(any_length_start_and_cut),
                                       cmocka_unit_test(long_data)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
