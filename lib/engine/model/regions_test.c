/* Regions of slots against brute force: overlaps found pair by pair, live sets operation by operation, and on small
 * cases the best of all orders. */
#include "lib/engine/model/regions.h"

#include "lib/base/numbers/random.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LIVES = 12, OPERATIONS = 9, SMALL = 5, LAYERS = 5 };

static uint64_t drawn;

static uint32_t below(uint32_t limit)
{
    return (uint32_t)slc_random_below(test_seed(20), 0, drawn++, limit);
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static bool meet(const slc_slot_life *a, const slc_slot_life *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static bool overlap(const slc_slot_life *a, const slc_slot_life *b)
{
    return meet(a, b) && a->offset < b->offset + rounded(b->bytes) && b->offset < a->offset + rounded(a->bytes);
}

static void draw(slc_slot_life *lives, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = below(OPERATIONS), last = first + below(OPERATIONS - first);
        lives[i] = (slc_slot_life){1 + below(below(2) ? 100 : 5000), first, below(6) ? last : UINT32_MAX, 7};
    }
}

static uint64_t live_at(const slc_slot_life *lives, uint32_t count, uint32_t operation)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        if (lives[i].first <= operation && operation <= lives[i].last) bytes += rounded(lives[i].bytes);
    return bytes;
}

static void check_region(const slc_slot_life *lives, uint32_t count, uint64_t packed, uint64_t live)
{
    uint64_t sum = 0, end = 0, most = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(lives[i].offset % 64, 0);
        for (uint32_t k = 0; k < i; k++) assert_false(overlap(&lives[i], &lives[k]));
        sum += rounded(lives[i].bytes);
        if (lives[i].offset + rounded(lives[i].bytes) > end) end = lives[i].offset + rounded(lives[i].bytes);
    }
    for (uint32_t op = 0; op < OPERATIONS; op++)
        if (live_at(lives, count, op) > most) most = live_at(lives, count, op);
    assert_int_equal(live, most);
    assert_int_equal(packed, end);
    assert_true(live <= packed && packed <= sum);
}

static void regions_hold(void **state)
{
    (void)state;
    double packed_sum = 0, live_sum = 0;
    for (uint32_t round = 0; round < test_rounds(2000); round++) {
        slc_slot_life lives[LIVES];
        uint32_t count = below(LIVES + 1);
        uint64_t packed, live;
        draw(lives, count);
        assert_int_equal(slc_pack_slot(lives, count, &packed, &live), SLUICE_OK);
        check_region(lives, count, packed, live);
        packed_sum += (double)packed;
        live_sum += (double)live;
    }
    print_message("packed / live: %.4f\n", packed_sum / live_sum);
}

static uint64_t lowest(slc_slot_life *lives, const uint32_t *order, uint32_t count)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        slc_slot_life *life = &lives[order[i]];
        life->offset = 0;
        for (uint32_t k = 0; k < i; k++)
            if (overlap(life, &lives[order[k]])) {
                life->offset += 64;
                k = UINT32_MAX; /* from the start */
            }
        if (life->offset + rounded(life->bytes) > end) end = life->offset + rounded(life->bytes);
    }
    return end;
}

static void try_orders(slc_slot_life *lives, uint32_t *order, uint32_t fixed, uint32_t count, uint64_t *best)
{
    uint64_t end = fixed == count ? lowest(lives, order, count) : UINT64_MAX;
    if (end < *best) *best = end;
    for (uint32_t i = fixed; fixed < SMALL && i < count; i++) {
        uint32_t chosen = order[i];
        order[i] = order[fixed];
        order[fixed] = chosen;
        try_orders(lives, order, fixed + 1, count, best);
        order[fixed] = order[i];
        order[i] = chosen;
    }
}

static void no_order_is_better(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < test_rounds(200); round++) {
        slc_slot_life lives[SMALL];
        uint32_t order[SMALL] = {0, 1, 2, 3, 4}, count = 1 + below(SMALL);
        uint64_t packed, live, best = UINT64_MAX;
        draw(lives, count);
        assert_int_equal(slc_pack_slot(lives, count, &packed, &live), SLUICE_OK);
        try_orders(lives, order, 0, count, &best);
        assert_true(packed <= best);
    }
}

/* ---- All of a job ---- */

typedef struct {
    slc_job job;
    bool recompute[LAYERS];
    slc_activation_life activations[3 * LAYERS];
    slc_workspace_life workspaces[2 * LAYERS];
    uint64_t live[2 * LAYERS], workspace_sum;
} drawn_job;

static void draw_slot(drawn_job *d, uint32_t slot)
{
    slc_slot_life lives[LIVES];
    uint32_t count = below(4);
    uint64_t packed;
    draw(lives, count);
    assert_int_equal(slc_pack_slot(lives, count, &packed, &d->live[slot]), SLUICE_OK);
    for (uint32_t i = 0; i < count; i++) d->workspace_sum += rounded(lives[i].bytes);
    if (count) d->workspaces[d->job.workspace_count++] = (slc_workspace_life){"w", packed, slot};
}

static void draw_job(drawn_job *d)
{
    *d = (drawn_job){.job = {.layer_count = 1 + below(LAYERS)}};
    d->job.activations = d->activations;
    d->job.workspaces = d->workspaces;
    uint32_t slots = slc_job_slots(&d->job);
    for (uint32_t l = 0; l < d->job.layer_count; l++) {
        d->recompute[l] = below(2);
        for (uint32_t n = below(4); n > 0; n--) {
            uint32_t first = below(2) ? l : slc_backward_slot(&d->job, l);
            slc_activation_life *life = &d->activations[d->job.activation_count++];
            *life = (slc_activation_life){"x", 1 + below(9000), first, first + below(slots - first), 0, false};
            if (below(2)) *life = (slc_activation_life){"x", 1 + below(9000), l, slots - 1 - l, l, true};
        }
    }
    for (uint32_t s = 0; s < slots; s++) draw_slot(d, s);
}

static bool is_there(const drawn_job *d, const slc_activation_life *life, uint32_t slot)
{
    bool again = life->recomputable && d->recompute[slc_slot_layer(&d->job, life->first_slot)];
    bool edge = slot == life->first_slot || slot == life->last_slot;
    return again ? edge : life->first_slot <= slot && slot <= life->last_slot;
}

static void sizes_of_a_job_are_in_order(void **state)
{
    (void)state;
    double packed = 0, bound = 0;
    for (uint32_t round = 0; round < test_rounds(300); round++) {
        drawn_job d;
        slc_activation_sizes sizes;
        uint64_t sum, most = 0;
        draw_job(&d);
        sum = d.workspace_sum;
        assert_int_equal(slc_size_activations(&d.job, d.recompute, d.live, d.workspace_sum, &sizes), SLUICE_OK);
        for (uint32_t a = 0; a < d.job.activation_count; a++) sum += rounded(d.activations[a].bytes);
        for (uint32_t s = 0; s < slc_job_slots(&d.job); s++) {
            uint64_t bytes = d.live[s];
            for (uint32_t a = 0; a < d.job.activation_count; a++)
                if (is_there(&d, &d.activations[a], s)) bytes += rounded(d.activations[a].bytes);
            if (bytes > most) most = bytes;
        }
        assert_int_equal(sizes.sum, sum);
        assert_int_equal(sizes.bound, most);
        assert_true(sizes.bound <= sizes.packed && sizes.packed <= sizes.sum);
        packed += (double)sizes.packed;
        bound += (double)sizes.bound;
    }
    print_message("packed / bound: %.4f\n", packed / bound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_hold),
        cmocka_unit_test(no_order_is_better),
        cmocka_unit_test(sizes_of_a_job_are_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
