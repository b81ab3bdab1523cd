/* The vectors of every width give what a plain loop over words gives. Each flipped bit is found, as the header says is
 * certain, and so are rows that have changed places; values that are not finite are found at every place. */
#include "lib/weights/fingerprint.h"

#include "lib/base/numbers/random.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4 * SLC_FINGERPRINT_BLOCK };

static uint64_t drawn(uint64_t which, uint64_t bound)
{
    return slc_random_below(test_seed(41), 0, which, bound);
}

/* Any bits that are finite values. */
static void draw_values(float *values, size_t count, uint64_t stream)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)slc_random_below(test_seed(42), stream, i, UINT64_C(1) << 32) & ~(1u << 23);
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* The header's text, word by word. */
static uint64_t by_plain_loop(const float *values, size_t count)
{
    uint64_t lane[16] = {0}, hash = count;
    for (size_t first = 0; first < count; first += 1024) {
        uint64_t sum[16] = {0}, word[512] = {0};
        memcpy(word, values + first, (count - first < 1024 ? count - first : 1024) * sizeof *values);
        for (int i = 0; i < 512; i++) sum[i % 16] = rotate(sum[i % 16], 29) + word[i];
        for (int i = 0; i < 16; i++) lane[i] = (rotate(lane[i], 23) ^ sum[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    for (int i = 0; i < 16; i++) {
        hash = (hash ^ lane[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static uint64_t fingerprint_of(const float *values, size_t count)
{
    slc_fingerprint fingerprint = {0};
    assert_true(slc_fingerprint_add(&fingerprint, values, count));
    return slc_fingerprint_end(&fingerprint);
}

static void every_width_as_the_plain_loop(void **state)
{
    (void)state;
    float values[MOST + 1];
    for (uint64_t round = 0; round < 200; round++) {
        const size_t count = round < 8 ? round : (size_t)drawn(round, MOST + 1);
        const size_t cut = (size_t)drawn(1000 + round, count / SLC_FINGERPRINT_BLOCK + 1) * SLC_FINGERPRINT_BLOCK;
        float *at = values + drawn(2000 + round, 2); /* aligned to 4 bytes at least */
        draw_values(at, count, round);
        for (int way = 0; way < SLC_FINGERPRINT_WAYS; way++) {
            slc_fingerprint_adder *add = slc_fingerprint_way(way);
            slc_fingerprint fingerprint = {0};
            if (!add) continue;
            assert_true(add(&fingerprint, at, cut));
            assert_true(add(&fingerprint, at + cut, count - cut));
            assert_true(add(NULL, at, count));
            assert_true(slc_fingerprint_end(&fingerprint) == by_plain_loop(at, count));
        }
        assert_true(fingerprint_of(at, count) == by_plain_loop(at, count));
    }
    assert_null(slc_fingerprint_way(SLC_FINGERPRINT_WAYS));
}

static void flip(float *values, size_t bit)
{
    uint32_t bits;
    memcpy(&bits, &values[bit / 32], sizeof bits);
    bits ^= 1u << bit % 32;
    memcpy(&values[bit / 32], &bits, sizeof bits);
}

/* Every bit of some lengths, in values that are all zero, all the same and drawn. A flip may make a value NaN. */
static void each_flipped_bit_is_found(void **state)
{
    (void)state;
    static float values[3 * SLC_FINGERPRINT_BLOCK];
    static const size_t counts[] = {1, 2, 33, SLC_FINGERPRINT_BLOCK, 2 * SLC_FINGERPRINT_BLOCK + 77};
    for (int kind = 0; kind < 3; kind++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            for (size_t i = 0; i < counts[c]; i++) values[i] = kind ? -1.25f : 0.0f;
            if (kind == 2) draw_values(values, counts[c], c);
            const uint64_t whole = fingerprint_of(values, counts[c]);
            for (size_t bit = 0; bit < 32 * counts[c]; bit++) {
                slc_fingerprint flipped = {0};
                flip(values, bit);
                slc_fingerprint_add(&flipped, values, counts[c]);
                assert_true(slc_fingerprint_end(&flipped) != whole);
                flip(values, bit);
            }
            assert_true(fingerprint_of(values, counts[c]) == whole);
        }
}

/* Two flips cancel in no sum that is only a sum: same place of two words, one up and one down, any distance. */
static void drawn_pairs_of_flips_are_found(void **state)
{
    (void)state;
    static float values[MOST];
    draw_values(values, MOST, 7);
    const uint64_t whole = fingerprint_of(values, MOST);
    for (uint64_t round = 0; round < (uint64_t)test_rounds(3000); round++) {
        const size_t word = (size_t)drawn(10000 + round, MOST / 2), bit = (size_t)drawn(20000 + round, 64);
        const size_t other = (word + 1 + (size_t)drawn(30000 + round, MOST / 2 - 1)) % (MOST / 2);
        slc_fingerprint flipped = {0};
        flip(values, 64 * word + bit);
        flip(values, 64 * other + bit);
        slc_fingerprint_add(&flipped, values, MOST);
        assert_true(slc_fingerprint_end(&flipped) != whole);
        flip(values, 64 * word + bit);
        flip(values, 64 * other + bit);
    }
}

static void swap(float *a, float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

/* Rows of 2, 4, 8 ... values, each beside every other. If a row is a whole number of steps, the lanes stay. */
static void rows_that_change_places_are_found(void **state)
{
    (void)state;
    static float values[MOST];
    draw_values(values, MOST, 9);
    const uint64_t whole = fingerprint_of(values, MOST);
    for (size_t row = 2; row < MOST; row *= 2)
        for (size_t distance = row, pairs = 0; distance <= MOST - row && pairs < 128; distance += row, pairs++) {
            const size_t first = (size_t)drawn(40000 + distance, (MOST - row - distance) / row + 1) * row;
            swap(values + first, values + first + distance, row);
            assert_true(fingerprint_of(values, MOST) != whole);
            swap(values + first, values + first + distance, row);
        }
    assert_true(fingerprint_of(values, MOST) == whole);
}

static void lengths_and_order_count(void **state)
{
    (void)state;
    static const float zeros[MOST];
    for (size_t count = 0; count < MOST; count += 511)
        assert_true(fingerprint_of(zeros, count) != fingerprint_of(zeros, count + 1));
    assert_true(slc_fingerprint_join(slc_fingerprint_join(1, 2), 3) !=
                slc_fingerprint_join(slc_fingerprint_join(1, 3), 2));
}

static void what_is_not_finite_is_found(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static float values[2 * SLC_FINGERPRINT_BLOCK + 5];
    const size_t count = sizeof values / sizeof *values;
    draw_values(values, count, 11);
    for (int way = 0; way < SLC_FINGERPRINT_WAYS; way++) {
        slc_fingerprint_adder *add = slc_fingerprint_way(way);
        for (size_t i = 0; add && i < count; i++) {
            slc_fingerprint fingerprint = {0};
            const float kept = values[i];
            values[i] = bad[i % 3];
            assert_false(add(&fingerprint, values, count));
            assert_false(add(NULL, values, count));
            values[i] = kept;
        }
    }
    for (size_t i = 0; i < count; i++) values[i] = i % 2 ? 0x1.fffffep127f : -0x1.fffffep127f;
    assert_true(slc_fingerprint_add(NULL, values, count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_width_as_the_plain_loop),  cmocka_unit_test(each_flipped_bit_is_found),
        cmocka_unit_test(drawn_pairs_of_flips_are_found), cmocka_unit_test(rows_that_change_places_are_found),
        cmocka_unit_test(lengths_and_order_count),        cmocka_unit_test(what_is_not_finite_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
