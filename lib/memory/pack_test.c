/* The packer against an oracle: on small cases, every order placed lowest first; on random cases, the independent check
 * and the bound. The check itself must find a planted fault. */
#include "lib/memory/lower_bound.h"
#include "lib/memory/pack.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 6, MAX_PARTS = 10 };

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((test_seed(random_state) >> 33) % limit);
}

typedef struct {
    slc_pack_buffer *buffers;
    slc_pack_part *parts;
    size_t count;
} problem;

static problem make_problem(size_t count)
{
    problem p = {calloc(count, sizeof *p.buffers), calloc(count * MAX_PARTS, sizeof *p.parts), count};
    assert_non_null(p.buffers);
    assert_non_null(p.parts);
    for (size_t i = 0; i < count; i++) p.buffers[i].parts = p.parts + i * MAX_PARTS;
    return p;
}

static void free_problem(problem *p)
{
    free(p->buffers);
    free(p->parts);
}

static sluice_status pack(slc_pack_buffer *buffers, size_t count, uint64_t *peak)
{
    return slc_pack_within(buffers, count, 0, 0, peak, NULL);
}

/* ---- The check: sorts all rectangles by address and looks at every pair that shares an address ---- */

typedef struct {
    uint64_t from, to; /* addresses [from, to) */
    uint32_t start, end;
    size_t owner;
} rectangle;

static int by_address(const void *a, const void *b)
{
    const rectangle *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static sluice_status collect(const slc_pack_buffer *buffers, size_t count, rectangle *out, size_t *out_count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const slc_pack_buffer *buffer = &buffers[i];
        if (buffer->offset % SLC_PACK_ALIGNMENT)
            return slc_error(SLUICE_ERR_FORMAT, "packing: buffer %zu at %" PRIu64 ": not a multiple of %d", i,
                             buffer->offset, SLC_PACK_ALIGNMENT);
        for (uint32_t k = 0; k < buffer->part_count; k++) {
            const slc_pack_part *part = &buffer->parts[k];
            if (part->end_byte > buffer->bytes)
                return slc_error(SLUICE_ERR_FORMAT, "packing: buffer %zu: part %u ends at byte %" PRIu64 " of %" PRIu64,
                                 i, k, part->end_byte, buffer->bytes);
            if (part->first_byte >= part->end_byte || part->start >= part->end) continue;
            out[used++] = (rectangle){buffer->offset + part->first_byte, buffer->offset + part->end_byte, part->start,
                                      part->end, i};
        }
    }
    *out_count = used;
    return SLUICE_OK;
}

static sluice_status check_packing(const slc_pack_buffer *buffers, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) total += buffers[i].part_count;
    rectangle *all = malloc((total + 1) * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "checking a packing of %zu buffers", count);

    sluice_status status = collect(buffers, count, all, &total);
    if (status) goto free_all;
    qsort(all, total, sizeof *all, by_address);
    for (size_t i = 0; i < total; i++) {
        for (size_t k = i + 1; k < total && all[k].from < all[i].to; k++) {
            const rectangle *a = &all[i], *b = &all[k];
            if (a->owner == b->owner || a->end <= b->start || b->end <= a->start) continue;
            status = slc_error(SLUICE_ERR_FORMAT,
                               "packing: buffers %zu and %zu overlap at address %" PRIu64 " from time %u on", a->owner,
                               b->owner, b->from, a->start > b->start ? a->start : b->start);
            goto free_all;
        }
    }

free_all:
    free(all);
    return status;
}

/* ---- Drawing ---- */

/* Makes a gradient (its blocks end one after another), gathered values (their blocks begin one after another), or a
 * buffer that lives as one. */
static void make_buffer(problem *p, size_t index, uint32_t times, uint32_t blocks, uint64_t block)
{
    slc_pack_buffer *buffer = &p->buffers[index];
    slc_pack_part *parts = p->parts + index * MAX_PARTS;
    uint32_t start = random_below(times), length = 1 + random_below(times - start), kind = random_below(3);
    buffer->bytes = blocks * block;
    buffer->part_count = kind == 2 ? 1 : blocks;
    for (uint32_t k = 0; k < blocks; k++) parts[k] = (slc_pack_part){k * block, (k + 1) * block, start, start + length};
    for (uint32_t k = 0; k < blocks && kind < 2; k++) {
        uint32_t shift = (uint32_t)((uint64_t)(length - 1) * k / blocks);
        if (kind == 0)
            parts[k].end -= shift;
        else
            parts[k].start += shift;
    }
    if (kind == 2) parts[0].end_byte = buffer->bytes;
}

/* Finds the lowest offset at which a buffer clashes with none before it in the order, for each in turn. Returns the
 * peak. */
static uint64_t first_fit(slc_pack_buffer *buffers, const uint32_t *order, size_t count)
{
    uint64_t peak = 0;
    for (size_t k = 0; k < count; k++) {
        slc_pack_buffer *buffer = &buffers[order[k]];
        buffer->offset = 0;
        for (size_t j = 0; j < k; j++)
            if (slc_pack_clash(buffer, &buffers[order[j]])) {
                buffer->offset += SLC_PACK_ALIGNMENT;
                j = (size_t)-1; /* looks at all earlier buffers again */
            }
        if (buffer->offset + buffer->bytes > peak) peak = buffer->offset + buffer->bytes;
    }
    return peak;
}

static void best_of_all_orders(slc_pack_buffer *buffers, uint32_t *order, size_t fixed, size_t count, uint64_t *best)
{
    if (fixed == count) {
        uint64_t peak = first_fit(buffers, order, count);
        if (peak < *best) *best = peak;
        return;
    }
    for (size_t i = fixed; i < count; i++) {
        uint32_t chosen = order[i];
        order[i] = order[fixed];
        order[fixed] = chosen;
        best_of_all_orders(buffers, order, fixed + 1, count, best);
        order[fixed] = order[i];
        order[i] = chosen;
    }
}

static void small_cases_come_near_the_best_order(void **state)
{
    (void)state;
    double ours = 0, oracle = 0;
    uint32_t cases = test_rounds(150);
    for (uint64_t seed = 0; seed < cases; seed++) {
        random_state = seed;
        problem p = make_problem(2 + random_below(SMALL - 1));
        for (size_t i = 0; i < p.count; i++) make_buffer(&p, i, 8, 1 + random_below(3), 64 * (1 + random_below(5)));
        uint64_t peak;
        assert_int_equal(pack(p.buffers, p.count, &peak), SLUICE_OK);
        assert_int_equal(check_packing(p.buffers, p.count), SLUICE_OK);
        assert_true(peak >= slc_pack_lower_bound(p.buffers, p.count));
        uint32_t order[SMALL] = {0, 1, 2, 3, 4, 5};
        uint64_t best = UINT64_MAX;
        best_of_all_orders(p.buffers, order, 0, p.count, &best);
        assert_true(best >= slc_pack_lower_bound(p.buffers, p.count));
        assert_true((double)peak <= 1.34 * (double)best);
        ours += (double)peak;
        oracle += (double)best;
        free_problem(&p);
    }
    print_message("%u small cases: %.4f of the best order's bytes\n", cases, ours / oracle);
    assert_true(ours <= 1.02 * oracle);
}

static void random_cases_are_valid_and_repeat(void **state)
{
    (void)state;
    double ratio = 0;
    uint32_t cases = test_rounds(60);
    for (uint64_t seed = 0; seed < cases; seed++) {
        random_state = 1000 + seed;
        problem p = make_problem(1 + random_below(120));
        for (size_t i = 0; i < p.count; i++)
            make_buffer(&p, i, 60, 1 + random_below(MAX_PARTS), 1 + random_below(100000));
        uint64_t peak, again, end = 0;
        assert_int_equal(pack(p.buffers, p.count, &peak), SLUICE_OK);
        assert_int_equal(check_packing(p.buffers, p.count), SLUICE_OK);
        uint64_t bound = slc_pack_lower_bound(p.buffers, p.count);
        assert_true(peak >= bound);
        ratio += (double)peak / (double)bound;
        uint64_t offsets[120];
        for (size_t i = 0; i < p.count; i++) {
            offsets[i] = p.buffers[i].offset;
            if (offsets[i] + p.buffers[i].bytes > end) end = offsets[i] + p.buffers[i].bytes;
        }
        assert_int_equal(peak, end);
        assert_int_equal(pack(p.buffers, p.count, &again), SLUICE_OK);
        assert_int_equal(again, peak);
        for (size_t i = 0; i < p.count; i++) assert_int_equal(p.buffers[i].offset, offsets[i]);
        free_problem(&p);
    }
    print_message("%u random cases: peak / bound %.4f on average\n", cases, ratio / cases);
}

/* The order of times counts alone, however far apart they are. */
static void times_may_be_of_any_size(void **state)
{
    (void)state;
    enum { BUFFERS = 30, TIMES = 40 };
    problem p = make_problem(BUFFERS), far = make_problem(BUFFERS);
    uint64_t peak, peak_far;
    random_state = 5;
    for (size_t i = 0; i < BUFFERS; i++) {
        make_buffer(&p, i, TIMES, 1 + random_below(MAX_PARTS - 1), 4096);
        far.buffers[i].bytes = p.buffers[i].bytes;
        far.buffers[i].part_count = p.buffers[i].part_count;
        for (uint32_t k = 0; k < p.buffers[i].part_count; k++) {
            slc_pack_part *part = &far.parts[i * MAX_PARTS + k];
            *part = p.parts[i * MAX_PARTS + k];
            part->start *= UINT32_MAX / TIMES;
            part->end = part->end == TIMES ? UINT32_MAX : part->end * (UINT32_MAX / TIMES);
        }
    }
    assert_int_equal(slc_pack_within(p.buffers, BUFFERS, 0, 20, &peak, NULL), SLUICE_OK);
    assert_int_equal(slc_pack_within(far.buffers, BUFFERS, 0, 20, &peak_far, NULL), SLUICE_OK);
    assert_int_equal(peak_far, peak);
    free_problem(&far);
    free_problem(&p);
}

static void a_staircase_lends_its_corner(void **state)
{
    (void)state;
    /* The gradient's upper block is released at time 2, when the second buffer comes: both must fit in 128 bytes. */
    const slc_pack_part stairs[] = {{0, 64, 0, 4}, {64, 128, 0, 2}};
    const slc_pack_part late[] = {{0, 64, 2, 4}};
    slc_pack_buffer buffers[] = {{.bytes = 128, .parts = stairs, .part_count = 2},
                                 {.bytes = 64, .parts = late, .part_count = 1}};
    uint64_t peak;
    assert_int_equal(pack(buffers, 2, &peak), SLUICE_OK);
    assert_int_equal(peak, 128);
    assert_int_equal(slc_pack_lower_bound(buffers, 2), 128);
    assert_int_equal(check_packing(buffers, 2), SLUICE_OK);
}

/* Cuts bytes x times into `count` buffers that live as one, again and again through a drawn one of them. They fill the
 * arena without a gap, so the least peak is known. */
static void cut_up(problem *p, uint64_t bytes, uint32_t times)
{
    slc_pack_part *pieces = p->parts; /* every MAX_PARTS-th is a buffer's, with addresses for its bytes until the end */
    pieces[0] = (slc_pack_part){0, bytes, 0, times};
    for (size_t count = 1; count < p->count;) {
        slc_pack_part *cut = &pieces[random_below((uint32_t)count) * MAX_PARTS], *rest = &pieces[count * MAX_PARTS];
        uint64_t height = (cut->end_byte - cut->first_byte) / SLC_PACK_ALIGNMENT;
        *rest = *cut;
        if (random_below(2) && height > 1)
            cut->end_byte = rest->first_byte =
                cut->first_byte + SLC_PACK_ALIGNMENT * (1 + random_below((uint32_t)height - 1));
        else if (cut->end - cut->start > 1)
            cut->end = rest->start = cut->start + 1 + random_below(cut->end - cut->start - 1);
        else
            continue;
        count++;
    }
    for (size_t i = 0; i < p->count; i++) {
        slc_pack_part *piece = &pieces[i * MAX_PARTS];
        p->buffers[i].bytes = piece->end_byte -= piece->first_byte;
        piece->first_byte = 0;
        p->buffers[i].part_count = 1;
    }
}

static void what_fills_an_arena_is_put_together_again(void **state)
{
    (void)state;
    const uint64_t bytes = 1000 * SLC_PACK_ALIGNMENT;
    uint32_t cases = test_rounds(100), whole = 0;
    double ratio = 0;
    for (uint64_t seed = 0; seed < cases; seed++) {
        random_state = 9000 + seed;
        problem p = make_problem(30);
        cut_up(&p, bytes, 40);
        uint64_t peak;
        assert_int_equal(slc_pack_lower_bound(p.buffers, p.count), bytes);
        assert_int_equal(slc_pack_within(p.buffers, p.count, bytes, 1000, &peak, NULL), SLUICE_OK);
        assert_int_equal(check_packing(p.buffers, p.count), SLUICE_OK);
        assert_true(peak >= bytes);
        whole += peak == bytes;
        ratio += (double)peak / (double)bytes;
        free_problem(&p);
    }
    print_message("%u arenas cut up: %u put together again, peak / bound %.4f on average\n", cases, whole,
                  ratio / cases);
    assert_true(ratio / cases < 1.05);
    assert_true(2 * whole >= cases);
}

static void empty_things_take_no_room(void **state)
{
    (void)state;
    uint64_t peak = 7;
    assert_int_equal(pack(NULL, 0, &peak), SLUICE_OK);
    assert_int_equal(peak, 0);
    const slc_pack_part none[] = {{0, 64, 3, 3}, {5, 5, 0, 9}};
    slc_pack_buffer buffers[] = {{.bytes = 64, .parts = none, .part_count = 2}, {.bytes = 1000}};
    assert_int_equal(pack(buffers, 2, &peak), SLUICE_OK);
    assert_int_equal(peak, 0);
    assert_int_equal(slc_pack_lower_bound(buffers, 2), 0);
}

static void wrong_parts_are_refused(void **state)
{
    (void)state;
    const slc_pack_part wrong[][1] = {{{0, 65, 0, 1}}, {{60, 10, 0, 1}}, {{0, 64, 2, 1}}};
    uint64_t peak;
    for (int i = 0; i < 3; i++) {
        slc_pack_buffer buffers[] = {{.bytes = 64, .parts = wrong[i], .part_count = 1}};
        assert_int_equal(pack(buffers, 1, &peak), SLUICE_ERR_ARGUMENT);
    }
    slc_pack_buffer huge[] = {{.bytes = UINT64_MAX}, {.bytes = 64}};
    assert_int_equal(pack(huge, 2, &peak), SLUICE_ERR_ARGUMENT);
    assert_int_equal(pack(huge, UINT32_MAX, &peak), SLUICE_ERR_ARGUMENT); /* none of which is looked at */
}

static void the_check_finds_planted_faults(void **state)
{
    (void)state;
    int found = 0, planted = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_state = 5000 + seed;
        problem p = make_problem(20);
        for (size_t i = 0; i < p.count; i++) make_buffer(&p, i, 10, 1 + random_below(4), 64 * (1 + random_below(20)));
        uint64_t peak;
        assert_int_equal(pack(p.buffers, p.count, &peak), SLUICE_OK);
        slc_pack_buffer *moved = &p.buffers[random_below(20)];
        moved->offset = 64 * random_below((uint32_t)(peak / 64));
        bool wrong = false;
        for (size_t i = 0; i < p.count; i++) wrong |= &p.buffers[i] != moved && slc_pack_clash(moved, &p.buffers[i]);
        sluice_status status = check_packing(p.buffers, p.count);
        assert_int_equal(status, wrong ? SLUICE_ERR_FORMAT : SLUICE_OK);
        planted += wrong;
        found += status == SLUICE_ERR_FORMAT;
        moved->offset = 1;
        assert_int_equal(check_packing(p.buffers, p.count), SLUICE_ERR_FORMAT);
        free_problem(&p);
    }
    assert_int_equal(found, planted);
    assert_true(planted > 100);
}

static uint64_t end_of(const slc_pack_buffer *buffer)
{
    uint64_t last = 0;
    for (uint32_t k = 0; k < buffer->part_count; k++)
        if (buffer->parts[k].end_byte > last) last = buffer->parts[k].end_byte;
    return buffer->offset + last;
}

static bool meets(const problem *p, size_t index, size_t absent)
{
    bool clash = false;
    for (size_t i = 0; i < p->count; i++)
        clash |= i != index && i != absent && slc_pack_clash(&p->buffers[index], &p->buffers[i]);
    return clash;
}

/* Returns true if there is an offset at which the buffer ends at most at the limit, and meets none that is there. */
static bool any_place(const problem *p, size_t index, size_t absent, uint64_t limit)
{
    slc_pack_buffer *mine = &p->buffers[index];
    const uint64_t before = mine->offset;
    bool any = false;
    for (mine->offset = 0; !any && end_of(mine) <= limit; mine->offset += SLC_PACK_ALIGNMENT)
        any = !meets(p, index, absent);
    mine->offset = before;
    return any;
}

/* A buffer goes to a gap between others if there is one, else on top; those that are absent are not in its way. */
static void one_buffer_finds_a_gap_if_there_is_one(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(200);
    uint32_t found = 0;
    for (uint64_t seed = 0; seed < rounds; seed++) {
        random_state = 9000 + seed;
        problem p = make_problem(16);
        bool absent[16] = {false};
        uint64_t peak, looked_at = 0;
        for (size_t i = 0; i < p.count; i++) make_buffer(&p, i, 10, 1 + random_below(4), 64 * (1 + random_below(20)));
        assert_int_equal(pack(p.buffers, p.count, &peak), SLUICE_OK);
        const size_t index = random_below(16), other = random_below(16);
        make_buffer(&p, index, 10, 1 + random_below(4), 64 * (1 + random_below(20)));
        absent[other] = other != index;
        const bool any = any_place(&p, index, other, peak);
        assert_int_equal(slc_pack_one(p.buffers, p.count, absent, index, &looked_at), SLUICE_OK);
        assert_true(looked_at > 0);
        assert_true(!meets(&p, index, other) && p.buffers[index].offset % SLC_PACK_ALIGNMENT == 0);
        assert_int_equal(end_of(&p.buffers[index]) <= peak, any);
        found += any;
        free_problem(&p);
    }
    assert_true(found > 0 && found < rounds);
}

/* Makes the buffers of one step of a model with `layers` layers: static state, activations from forward to backward,
 * gradients and gathered values as staircases. */
static void make_step(problem *p, uint32_t layers)
{
    uint32_t slots = 2 * layers * MAX_PARTS;
    for (size_t i = 0; i < p->count; i++) {
        slc_pack_buffer *buffer = &p->buffers[i];
        slc_pack_part *parts = p->parts + i * MAX_PARTS;
        uint32_t layer = (uint32_t)(i / 6) % layers, kind = (uint32_t)i % 6;
        uint32_t f = layer * MAX_PARTS, b = (2 * layers - 1 - layer) * MAX_PARTS;
        uint64_t block = 1 << 20;
        buffer->bytes = kind < 2 ? block / 2 + 4096 * layer : MAX_PARTS * block;
        buffer->part_count = kind == 3 || kind == 4 || kind == 5 ? MAX_PARTS : 1;
        parts[0] = (slc_pack_part){0, buffer->bytes, kind < 2 ? 0 : f, kind < 2 ? slots : b + MAX_PARTS};
        for (uint32_t k = 0; k < MAX_PARTS && kind >= 3; k++) {
            uint32_t slot = kind == 3 ? f : b, early = slot > MAX_PARTS ? slot - MAX_PARTS : 0;
            parts[k] = kind == 5 ? (slc_pack_part){k * block, (k + 1) * block, b, b + MAX_PARTS + k}
                                 : (slc_pack_part){k * block, (k + 1) * block, early + k, slot + MAX_PARTS};
        }
    }
}

static void a_step_packs_close_to_its_bound(void **state)
{
    (void)state;
    const size_t counts[] = {300, test_rounds(5000)};
    const uint32_t layers[] = {50, 400};
    for (int i = 0; i < 2; i++) {
        problem p = make_problem(counts[i]);
        make_step(&p, layers[i]);
        uint64_t peak, begin = slc_clock_ns();
        assert_int_equal(pack(p.buffers, p.count, &peak), SLUICE_OK);
        double seconds = slc_seconds(slc_clock_ns() - begin);
        assert_int_equal(check_packing(p.buffers, p.count), SLUICE_OK);
        uint64_t bound = slc_pack_lower_bound(p.buffers, p.count);
        print_message("%zu buffers, %d parts: %.1f ms, peak / bound %.4f\n", counts[i], MAX_PARTS, seconds * 1e3,
                      (double)peak / (double)bound);
        assert_true(peak >= bound);
        assert_true((double)peak <= 1.1 * (double)bound);
        free_problem(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_staircase_lends_its_corner),
        cmocka_unit_test(times_may_be_of_any_size),
        cmocka_unit_test(empty_things_take_no_room),
        cmocka_unit_test(wrong_parts_are_refused),
        cmocka_unit_test(small_cases_come_near_the_best_order),
        cmocka_unit_test(random_cases_are_valid_and_repeat),
        cmocka_unit_test(the_check_finds_planted_faults),
        cmocka_unit_test(one_buffer_finds_a_gap_if_there_is_one),
        cmocka_unit_test(a_step_packs_close_to_its_bound),
        cmocka_unit_test(what_fills_an_arena_is_put_together_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
