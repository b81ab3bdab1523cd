/* Moves in place against a plain copy: random layouts, from roomy to without a spare byte. */
#include "lib/engine/replan/transition.h"

#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct {
    uint64_t state;
} chance;

static uint64_t pick(chance *c, uint64_t below)
{
    c->state += 0x9e3779b97f4a7c15u;
    uint64_t z = c->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static void shuffle(chance *c, uint32_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    for (size_t i = count; i > 1; i--) {
        size_t j = pick(c, i);
        uint32_t held = order[i - 1];
        order[i - 1] = order[j];
        order[j] = held;
    }
}

/* Lays chunks out in random order with gaps that together take `spare`. */
static void lay_out(chance *c, slc_move *moves, size_t count, uint64_t spare, bool destinations)
{
    uint32_t *order = malloc((count + 1) * sizeof *order);
    bool keep_order = pick(c, 4) == 0;
    uint64_t at = 0;
    shuffle(c, order, count);
    for (size_t i = 0; i < count; i++) {
        slc_move *move = &moves[keep_order ? i : order[i]];
        uint64_t gap = pick(c, 2) ? pick(c, spare + 1) : 0;
        spare -= gap;
        at += gap;
        *(destinations ? &move->to : &move->from) = at;
        at += move->bytes;
    }
    free(order);
}

/* ---- The memory that is moved, of each kind of device ---- */

enum { MOST = 120, LONGEST = 40000, MEMORY_BYTES = 4 * MOST * LONGEST + 4096 };

typedef struct {
    slc_device *device;
    sluice_stream stream;
    slc_segment memory;
    slc_pinned before, after, room;
} mover;

/* False: this build or machine lacks the device. */
static bool open_mover(const char *device, mover *m)
{
    *m = (mover){0};
    if (!slc_device_describe(device)) return false;
    if (slc_device_open(device, &m->device)) {
        print_message("SKIP: %s: %s\n", device, sluice_last_error());
        return false;
    }
    print_message("device %s\n", slc_device_describe(device));
    assert_int_equal(slc_stream_create(m->device, 1, &m->stream), SLUICE_OK);
    assert_int_equal(slc_segment_create(m->device, MEMORY_BYTES, &m->memory), SLUICE_OK);
    assert_int_equal(slc_pinned_create(m->device, MEMORY_BYTES, &m->before), SLUICE_OK);
    assert_int_equal(slc_pinned_create(m->device, MEMORY_BYTES, &m->after), SLUICE_OK);
    assert_int_equal(slc_pinned_create(m->device, 1 << 18, &m->room), SLUICE_OK);
    return true;
}

static void close_mover(mover *m)
{
    slc_pinned_destroy(&m->before);
    slc_pinned_destroy(&m->after);
    slc_pinned_destroy(&m->room);
    slc_segment_destroy(&m->memory);
    slc_stream_destroy(&m->stream);
    slc_device_close(m->device);
}

/* Moves in memory that begins as `before`, and looks at where everything lies then. Nothing behind it may change. */
static void try_moves(mover *m, uint64_t bytes, const slc_move *moves, size_t count, uint64_t room_bytes)
{
    enum { GUARD = 64 };
    slc_move *used = malloc((count + 1) * sizeof *used);
    unsigned char *before = m->before.base, *after = m->after.base;
    if (count) memcpy(used, moves, count * sizeof *used);
    memset(before + bytes, 0xa5, GUARD);
    assert_int_equal(slc_copy(&m->stream, m->memory.base, before, bytes + GUARD), SLUICE_OK);
    assert_int_equal(slc_moves_run(&m->stream, m->memory.base, bytes, used, count, m->room.base, room_bytes),
                     SLUICE_OK);
    assert_int_equal(slc_copy(&m->stream, after, m->memory.base, bytes + GUARD), SLUICE_OK);
    assert_int_equal(slc_stream_synchronize(&m->stream), SLUICE_OK);
    for (size_t i = 0; i < count; i++) assert_memory_equal(after + moves[i].to, before + moves[i].from, moves[i].bytes);
    assert_memory_equal(after + bytes, before + bytes, GUARD);
    free(used);
}

static void random_layouts(const char *device, uint32_t rounds)
{
    mover m;
    if (!open_mover(device, &m)) return;
    const int trials = (int)test_rounds(rounds);
    chance c = {test_seed(7)};
    for (int trial = 0; trial < trials; trial++) {
        size_t count = pick(&c, trial % 10 ? 12 : MOST);
        slc_move moves[MOST];
        uint64_t bytes = 0;
        for (size_t i = 0; i < count; i++) {
            moves[i].bytes = 1 + pick(&c, pick(&c, 5) ? 200 : LONGEST);
            bytes += moves[i].bytes;
        }
        uint64_t spare = pick(&c, 4) ? pick(&c, bytes + 1) : pick(&c, 2) * 3 * bytes;
        lay_out(&c, moves, count, spare, false);
        lay_out(&c, moves, count, spare, true);
        unsigned char *before = m.before.base;
        for (uint64_t i = 0; i < bytes + spare; i++) before[i] = (unsigned char)pick(&c, 256);
        try_moves(&m, bytes + spare, moves, count, pick(&c, 4) ? m.room.bytes : 100 + pick(&c, 2000));
    }
    close_mover(&m);
}

static void random_layouts_on_the_host(void **state)
{
    (void)state;
    random_layouts("cpu", 2000);
}

static void random_layouts_on_a_gpu(void **state)
{
    (void)state;
    random_layouts("cuda", 200);
}

/* A buffer that stays where it is must not cost a pass, and everything reversed is the longest way. */
static void still_and_reversed(const char *device)
{
    enum { COUNT = 64, BYTES = 96 };
    mover m;
    if (!open_mover(device, &m)) return;
    unsigned char *before = m.before.base;
    for (size_t i = 0; i < (size_t)COUNT * BYTES; i++) before[i] = (unsigned char)(i * 31 + i / 256);
    slc_move still[COUNT], reversed[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        still[i] = (slc_move){i * BYTES, i * BYTES, BYTES};
        reversed[i] = (slc_move){i * BYTES, (COUNT - 1 - i) * BYTES, BYTES};
    }
    try_moves(&m, (uint64_t)COUNT * BYTES, still, COUNT, 100);
    try_moves(&m, (uint64_t)COUNT * BYTES, reversed, COUNT, 100);
    try_moves(&m, (uint64_t)COUNT * BYTES, reversed, COUNT, m.room.bytes);
    try_moves(&m, 0, NULL, 0, 100);
    close_mover(&m);
}

static void still_and_reversed_on_each_device(void **state)
{
    (void)state;
    still_and_reversed("cpu");
    still_and_reversed("cuda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_layouts_on_the_host),
        cmocka_unit_test(random_layouts_on_a_gpu),
        cmocka_unit_test(still_and_reversed_on_each_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
