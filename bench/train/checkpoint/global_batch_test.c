/* The words about the global batch: its size, and options that keep it. */
#include "bench/train/checkpoint/global_batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define IT "the global batch (ranks x batch x micro-batches) "

static void expect(slc_global_batch before, slc_global_batch now, const char *words)
{
    char got[256];
    slc_global_batch_words(&before, &now, got, sizeof got);
    assert_string_equal(got, words);
}

static void test_words(void **state)
{
    (void)state;
    expect((slc_global_batch){2, 4, 1}, (slc_global_batch){4, 2, 1}, IT "stays 8, so only roundings differ");
    expect((slc_global_batch){4, 4, 1}, (slc_global_batch){2, 4, 1},
           IT "was 16 and is 8; --batch 4 --micro-batches 2 keeps it");
    expect((slc_global_batch){2, 4, 1}, (slc_global_batch){4, 4, 1},
           IT "was 8 and is 16; --batch 2 --micro-batches 1 keeps it");
    expect((slc_global_batch){2, 6, 1}, (slc_global_batch){3, 6, 1},
           IT "was 12 and is 18; --batch 4 --micro-batches 1 keeps it");
    expect((slc_global_batch){2, 4, 1}, (slc_global_batch){3, 4, 1}, IT "was 8 and is 12, and 3 ranks cannot keep it");
}

/* Each proposal has the global batch of before, and no larger batch of a rank. */
static void test_every_small_case(void **state)
{
    int proposed = 0;
    (void)state;
    for (uint64_t i = 0; i < 6 * 6 * 6 * 6; i++) {
        const slc_global_batch before = {1 + i % 6, 1 + i / 6 % 6, 1 + i / 36 % 6},
                               now = {1 + i / 216, before.batch, before.micro_batches};
        unsigned long long batch, micro_batches;
        char words[256];
        slc_global_batch_words(&before, &now, words, sizeof words);
        const char *options = strstr(words, "--batch");
        const uint64_t size = before.ranks * before.batch * before.micro_batches;
        assert_int_equal(options != NULL, before.ranks != now.ranks && size % now.ranks == 0);
        if (!options) continue;
        assert_int_equal(sscanf(options, "--batch %llu --micro-batches %llu", &batch, &micro_batches), 2);
        assert_int_equal(now.ranks * batch * micro_batches, size);
        assert_true(batch <= before.batch);
        proposed++;
    }
    assert_true(proposed > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_every_small_case)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
