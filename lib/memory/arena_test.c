/* The arena against a byte map: random claims and partial releases must be answered as the map says, from several
 * threads too. With the address sanitizer, unclaimed memory must be poisoned. */
#include "tests/support/device/host_device.h"
#include "lib/memory/arena.h"
#include "tests/support/seed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

enum { CELL = 64, CELLS = 128 };

static slc_arena *new_arena(uint64_t bytes, uint64_t reserved)
{
    slc_arena *arena = NULL;
    assert_int_equal(slc_arena_create(device, bytes, reserved, &arena), SLUICE_OK);
    return arena;
}

static void overlap_names_both(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(4096, 0);
    void *a, *b;
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "h.0 values", 64, 128, &a), SLUICE_OK);
    assert_ptr_equal(a, (char *)slc_arena_segment(arena)->base + 64);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_GRADIENTS, "h.1 gradient", 128, 128, &b), SLUICE_ERR_ORDER);
    assert_non_null(strstr(sluice_last_error(), "h.0 values"));
    assert_non_null(strstr(sluice_last_error(), "h.1 gradient"));
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_GRADIENTS, "around", 0, 4096, &b), SLUICE_ERR_ORDER);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_GRADIENTS, "beside", 192, 64, &b), SLUICE_OK);
    slc_arena_destroy(arena);
}

static void a_larger_segment_takes_its_place(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(4096, 10);
    slc_segment larger;
    void *a;
    assert_int_equal(slc_segment_create(device, 4 * 4096, &larger), SLUICE_OK);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 0, 4096, &a), SLUICE_OK);
    assert_int_equal(slc_arena_replace(arena, &larger), SLUICE_ERR_ORDER);
    assert_int_equal(slc_arena_release(arena, 0, 4096), SLUICE_OK);
    char *base = larger.base;
    assert_int_equal(slc_arena_replace(arena, &larger), SLUICE_OK);
    assert_null(larger.base);
    slc_segment_destroy(&larger); /* it has been cleared, so there is nothing to do */
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 4096, 3 * 4096, &a), SLUICE_OK);
    assert_ptr_equal(a, base + 4096);
    memset(a, 1, 3 * 4096);
    assert_int_equal(slc_arena_peak(arena), 4 * 4096 + 10);
    slc_arena_destroy(arena);
}

static void fill_with_sevens(void *memory, uint64_t bytes)
{
    memset(memory, 7, bytes);
}

static void free_memory_is_filled(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(4096, 0);
    void *low, *high;
    assert_int_equal(slc_arena_limit(arena, 2048), SLUICE_OK);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "low", 64, 128, &low), SLUICE_OK);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "high", 1024, 64, &high), SLUICE_OK);
    memset(low, 1, 128);
    memset(high, 1, 64);
    slc_arena_fill_free(arena, fill_with_sevens);
    assert_int_equal(slc_arena_release(arena, 64, 128), SLUICE_OK);
    void *all;
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "first", 0, 1024, &all), SLUICE_OK);
    for (int i = 0; i < 1024; i++) assert_int_equal(((char *)all)[i], i >= 64 && i < 192 ? 1 : 7);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "last", 1088, 960, &all), SLUICE_OK);
    for (int i = 0; i < 960; i++) assert_int_equal(((char *)all)[i], 7);
    assert_int_equal(((char *)high)[63], 1);
    slc_arena_destroy(arena);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(1000, 0);
    void *a;
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 0, 1001, &a), SLUICE_ERR_BUDGET);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 64, UINT64_MAX, &a), SLUICE_ERR_BUDGET);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 0, 0, &a), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_RESERVED, "v", 0, 8, &a), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_arena_release(arena, 0, 64), SLUICE_ERR_ORDER);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 0, 64, &a), SLUICE_OK);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "w", 64, 64, &a), SLUICE_OK);
    assert_int_equal(slc_arena_release(arena, 0, 128), SLUICE_ERR_ORDER); /* the range spans two claims */
    assert_int_equal(slc_arena_release(arena, 8, UINT64_MAX), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_arena_peak(arena), 128);
    slc_arena_destroy(arena);
}

static void a_limit_is_kept_and_can_move(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(1 << 20, 0);
    void *a;
    assert_int_equal(slc_arena_limit(arena, 8192), SLUICE_OK);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 8128, 128, &a), SLUICE_ERR_BUDGET);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 8192, 64, &a), SLUICE_ERR_BUDGET);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 8128, 64, &a), SLUICE_OK);
    memset(a, 7, 64);
    assert_int_equal(slc_arena_limit(arena, 4096), SLUICE_ERR_ORDER);
    assert_non_null(strstr(sluice_last_error(), "v"));
    assert_int_equal(slc_arena_limit(arena, 8191), SLUICE_ERR_ORDER);
    assert_int_equal(slc_arena_limit(arena, 8192), SLUICE_OK); /* a plan may fill it to the last byte */
    assert_int_equal(slc_arena_limit(arena, (1 << 20) + 1), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_arena_limit(arena, 1 << 20), SLUICE_OK);
    assert_int_equal(((unsigned char *)a)[63], 7);
    assert_int_equal(slc_arena_release(arena, 8128, 64), SLUICE_OK);
    assert_int_equal(slc_arena_limit(arena, 4096), SLUICE_OK);
    assert_int_equal(slc_arena_peak(arena), 8192); /* the peak is over all time, a lower limit does not reset it */
    slc_arena_destroy(arena);
}

/* Pages are whole; what the arena was created with need not be. */
static void the_rest_of_a_page_is_no_room(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(5000, 0);
    slc_segment larger;
    assert_int_equal(slc_arena_most(arena), 5000);
    assert_true(slc_arena_segment(arena)->bytes > 5000);
    assert_int_equal(slc_arena_limit(arena, slc_arena_most(arena) + 1), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_arena_limit(arena, slc_arena_most(arena)), SLUICE_OK);
    assert_int_equal(slc_segment_create(slc_arena_segment(arena)->device, 9000, &larger), SLUICE_OK);
    assert_int_equal(slc_arena_replace(arena, &larger), SLUICE_OK);
    assert_true(slc_arena_most(arena) >= 9000);
    assert_int_equal(slc_arena_limit(arena, slc_arena_most(arena)), SLUICE_OK);
    slc_arena_destroy(arena);
}

static void peaks_are_counted(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(4096, 500);
    void *a;
    assert_int_equal(slc_arena_peak(arena), 500);
    assert_int_equal(slc_arena_category_peak(arena, SLC_MEMORY_RESERVED), 500);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_ACTIVATIONS, "a", 1024, 512, &a), SLUICE_OK);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_ACTIVATIONS, "b", 0, 64, &a), SLUICE_OK);
    assert_int_equal(slc_arena_release(arena, 1024, 512), SLUICE_OK);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_ACTIVATIONS, "c", 64, 512, &a), SLUICE_OK);
    assert_int_equal(slc_arena_peak(arena), 1536 + 500);
    assert_int_equal(slc_arena_category_peak(arena, SLC_MEMORY_ACTIVATIONS), 576);
    assert_int_equal(slc_arena_category_peak(arena, SLC_MEMORY_GRADIENTS), 0);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "d", 4096, 64, &a), SLUICE_ERR_BUDGET);
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "d", 4032, 64, &a), SLUICE_OK);
    assert_int_equal(slc_arena_release(arena, 4032, 64), SLUICE_OK);
    slc_arena_destroy(arena);
}

static bool all_owned_by(const int *owner, uint32_t first, uint32_t count, int who)
{
    for (uint32_t i = first; i < first + count; i++)
        if (owner[i] != who) return false;
    return true;
}

static void random_claims_agree_with_a_map(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(CELL * CELLS, 0);
    int owner[CELLS] = {0}, next = 1;
    uint32_t seed = (uint32_t)test_seed(1), highest = 0, granted = 0;
    for (int round = 0; round < 20000; round++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t first = (seed >> 8) % CELLS, count = 1 + (seed >> 20) % (seed >> 31 ? 8 : 3);
        if (count > CELLS - first) count = CELLS - first;
        if (seed >> 31) {
            void *address;
            bool is_free = all_owned_by(owner, first, count, 0);
            sluice_status status =
                slc_arena_claim(arena, SLC_MEMORY_VALUES, "claim", CELL * first, CELL * count, &address);
            assert_int_equal(status, is_free ? SLUICE_OK : SLUICE_ERR_ORDER);
            if (!is_free) continue;
            memset(address, 1, CELL * count);
            for (uint32_t i = first; i < first + count; i++) owner[i] = next;
            if (first + count > highest) highest = first + count;
            next++;
            granted++;
        } else {
            bool held = owner[first] && all_owned_by(owner, first, count, owner[first]);
            sluice_status status = slc_arena_release(arena, CELL * first, CELL * count);
            assert_int_equal(status, held ? SLUICE_OK : SLUICE_ERR_ORDER);
            for (uint32_t i = first; held && i < first + count; i++) owner[i] = 0;
        }
        assert_int_equal(slc_arena_peak(arena), CELL * highest);
    }
    assert_true(granted > 1000);
    slc_arena_destroy(arena);
}

/* More claims than the list first has room for, each of which loses a cell from its middle. Before each cut the list
 * has an even number of claims, so that it is a cut that finds it full: then it moves while a claim becomes two. */
static void a_claim_is_cut_while_the_list_grows(void **state)
{
    (void)state;
    enum { CLAIMS = 700, EACH = 3 * CELL };
    slc_arena *arena = new_arena((CLAIMS + 1) * EACH, 0);
    void *address;
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "last", CLAIMS * EACH, EACH, &address), SLUICE_OK);
    for (uint64_t i = 0; i < CLAIMS; i++) {
        assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", i * EACH, EACH, &address), SLUICE_OK);
        assert_int_equal(slc_arena_release(arena, i * EACH + CELL, CELL), SLUICE_OK);
    }
    for (uint64_t i = 0; i < CLAIMS; i++) {
        assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "w", i * EACH, CELL, &address), SLUICE_ERR_ORDER);
        assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "w", i * EACH + CELL, CELL, &address), SLUICE_OK);
        assert_int_equal(slc_arena_release(arena, i * EACH, CELL), SLUICE_OK);
        assert_int_equal(slc_arena_release(arena, i * EACH + 2 * CELL, CELL), SLUICE_OK);
    }
    slc_arena_destroy(arena);
}

typedef struct {
    slc_arena *arena;
    uint32_t first; /* the worker's first cell */
    int failures;
} worker;

static void *claim_and_release(void *context)
{
    worker *own = context;
    for (int i = 0; i < 2000; i++) {
        void *address;
        uint64_t offset = (uint64_t)CELL * own->first;
        own->failures += slc_arena_claim(own->arena, SLC_MEMORY_REDUCED, "own", offset, 4 * CELL, &address) != 0;
        memset(address, i, 4 * CELL);
        own->failures += slc_arena_release(own->arena, offset + CELL, CELL) != 0;
        own->failures += slc_arena_release(own->arena, offset, CELL) != 0;
        own->failures += slc_arena_release(own->arena, offset + 2 * CELL, 2 * CELL) != 0;
    }
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(CELL * CELLS, 0);
    pthread_t threads[4];
    worker workers[4];
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (worker){arena, 4 * i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, claim_and_release, &workers[i]), 0);
    }
    /* Peaks may be asked for at any time, and never fall. */
    for (uint64_t i = 0, peak = 0; i < 1000; i++) {
        uint64_t now = slc_arena_peak(arena);
        assert_true(now >= peak && now <= 16 * CELL);
        assert_true(slc_arena_category_peak(arena, SLC_MEMORY_REDUCED) <= 16 * CELL);
        peak = now;
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_int_equal(slc_arena_peak(arena), 16 * CELL);
    assert_true(slc_arena_category_peak(arena, SLC_MEMORY_REDUCED) <= 16 * CELL);
    slc_arena_destroy(arena);
}

#if defined(__SANITIZE_ADDRESS__) /* nothing else poisons; the build with that sanitizer is part of `./dev test` */
static void unclaimed_memory_is_poisoned(void **state)
{
    (void)state;
    slc_arena *arena = new_arena(4096, 0);
    char *base = slc_arena_segment(arena)->base;
    void *a;
    assert_true(__asan_address_is_poisoned(base));
    assert_int_equal(slc_arena_claim(arena, SLC_MEMORY_VALUES, "v", 64, 192, &a), SLUICE_OK);
    assert_null(__asan_region_is_poisoned(base + 64, 192));
    assert_true(__asan_address_is_poisoned(base + 63));
    assert_true(__asan_address_is_poisoned(base + 256));
    assert_int_equal(slc_arena_release(arena, 128, 64), SLUICE_OK);
    assert_true(__asan_address_is_poisoned(base + 128));
    assert_false(__asan_address_is_poisoned(base + 192));
    slc_arena_destroy(arena);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_names_both),
        cmocka_unit_test(free_memory_is_filled),
        cmocka_unit_test(a_larger_segment_takes_its_place),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(a_limit_is_kept_and_can_move),
        cmocka_unit_test(the_rest_of_a_page_is_no_room),
        cmocka_unit_test(peaks_are_counted),
        cmocka_unit_test(random_claims_agree_with_a_map),
        cmocka_unit_test(a_claim_is_cut_while_the_list_grows),
        cmocka_unit_test(threads_do_not_disturb_each_other),
#if defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(unclaimed_memory_is_poisoned),
#endif
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
