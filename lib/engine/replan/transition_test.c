/* Moves in place against a plain copy: random layouts, from roomy to without a spare byte. */
#include "lib/engine/replan/transition.h"

#include "tests/support/scale.h"

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

static void check_moves(const unsigned char *before, const unsigned char *after, const slc_move *moves, size_t count)
{
    for (size_t i = 0; i < count; i++) assert_memory_equal(after + moves[i].to, before + moves[i].from, moves[i].bytes);
}

static void random_layouts(void **state)
{
    (void)state;
    enum { MOST = 120 };
    const int trials = (int)test_rounds(2000);
    chance c = {7};
    for (int trial = 0; trial < trials; trial++) {
        size_t count = pick(&c, trial % 10 ? 12 : MOST);
        slc_move moves[MOST], used[MOST];
        uint64_t bytes = 0;
        for (size_t i = 0; i < count; i++) {
            moves[i].bytes = 1 + pick(&c, pick(&c, 5) ? 200 : 40000);
            bytes += moves[i].bytes;
        }
        uint64_t spare = pick(&c, 4) ? pick(&c, bytes + 1) : pick(&c, 2) * 3 * bytes, room = bytes + spare;
        lay_out(&c, moves, count, spare, false);
        lay_out(&c, moves, count, spare, true);
        unsigned char *before = malloc(room + 1), *after = malloc(room + 1);
        for (uint64_t i = 0; i < room; i++) before[i] = (unsigned char)pick(&c, 256);
        memcpy(after, before, room);
        memcpy(used, moves, sizeof moves);
        slc_moves_run(after, room, used, count);
        check_moves(before, after, moves, count);
        free(before);
        free(after);
    }
}

/* A buffer that stays where it is must not cost a pass, and everything reversed is the longest way. */
static void still_and_reversed(void **state)
{
    (void)state;
    enum { COUNT = 64, BYTES = 96 };
    unsigned char memory[COUNT * BYTES], before[COUNT * BYTES];
    for (size_t i = 0; i < sizeof memory; i++) before[i] = memory[i] = (unsigned char)(i * 31 + i / 256);
    slc_move still[COUNT], reversed[COUNT], used[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        still[i] = (slc_move){i * BYTES, i * BYTES, BYTES};
        reversed[i] = (slc_move){i * BYTES, (COUNT - 1 - i) * BYTES, BYTES};
    }
    slc_moves_run(memory, sizeof memory, still, COUNT);
    assert_memory_equal(memory, before, sizeof memory);
    memcpy(used, reversed, sizeof used);
    slc_moves_run(memory, sizeof memory, used, COUNT);
    check_moves(before, memory, reversed, COUNT);
    slc_moves_run(memory, 0, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_layouts),
        cmocka_unit_test(still_and_reversed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
