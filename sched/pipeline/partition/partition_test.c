/* Both programmes must equal brute force on small chains, and their cuts must have the cost that they say. */
#include "sched/pipeline/partition/partition.h"

#include "lib/base/status.h"
#include "tests/support/draw.h"
#include "tests/support/scale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_LAYERS = 6, MOST_RANKS = 5, CHAINS = 1000 };

typedef struct {
    double layer_s[MOST_LAYERS], cut_s[MOST_LAYERS], tail_s[MOST_LAYERS], hidden_s[MOST_LAYERS];
    bool uncut[MOST_LAYERS];
    uint64_t fixed[MOST_LAYERS], values[MOST_LAYERS], kept[MOST_LAYERS], boundary[MOST_LAYERS], limit[MOST_LAYERS];
    uint32_t held[MOST_LAYERS];
} arrays;

static slc_chain draw_chain(uint64_t *seed, arrays *a)
{
    const uint32_t layers = 1 + (uint32_t)draw(seed, MOST_LAYERS);
    for (uint32_t l = 0; l < layers; l++) {
        a->layer_s[l] = (double)(1 + draw(seed, 20));
        a->cut_s[l] = (double)draw(seed, 4);
        a->tail_s[l] = (double)draw(seed, 6);
        a->hidden_s[l] = (double)draw(seed, 6);
        a->uncut[l] = !draw(seed, 8);
        a->fixed[l] = draw(seed, 20);
        a->values[l] = draw(seed, 20);
        a->kept[l] = draw(seed, 20);
        a->boundary[l] = draw(seed, 40);
        a->held[l] = 1 + (uint32_t)draw(seed, 4);
    }
    return (slc_chain){layers, a->layer_s, a->uncut, a->fixed, a->values, a->kept};
}

/* ---- Schedules that flush ---- */

static bool next_cuts(uint32_t *first_layer, uint32_t stages, uint32_t layers)
{
    uint32_t s = stages;
    while (s-- > 1)
        if (first_layer[s] < layers - (stages - s)) {
            first_layer[s]++;
            for (uint32_t t = s + 1; t < stages; t++) first_layer[t] = first_layer[t - 1] + 1;
            return true;
        }
    return false;
}

static double cost_of(const slc_flushed_partition *in, const uint32_t *first_layer, uint64_t *most_bytes)
{
    const slc_chain *c = &in->chain;
    double sum_s = 0, most_s = 0, tail_s = 0;
    bool fits = true;
    *most_bytes = 0;
    for (uint32_t s = 0; s < in->stages; s++) {
        const uint32_t end = s + 1 < in->stages ? first_layer[s + 1] : c->layers;
        double takes_s = 0, own_tail_s = 0;
        uint64_t bytes = 0;
        for (uint32_t l = first_layer[s]; l < end; l++) {
            takes_s += c->layer_s[l];
            own_tail_s += in->tail_s[l];
            bytes += c->fixed_bytes[l] + c->value_bytes[l] + in->held[s] * c->kept_bytes[l];
        }
        if (first_layer[s]) takes_s += in->cut_s[first_layer[s] - 1];
        if (end < c->layers) takes_s += in->cut_s[end - 1];
        if (first_layer[s] && c->uncut[first_layer[s] - 1]) *most_bytes = UINT64_MAX;
        if (bytes > *most_bytes) *most_bytes = bytes;
        fits &= !in->limit_bytes || bytes <= in->limit_bytes[s];
        sum_s += takes_s;
        most_s = fmax(most_s, takes_s);
        tail_s = fmax(tail_s, own_tail_s - in->hidden_s[s]);
    }
    if (!fits || *most_bytes == UINT64_MAX) return INFINITY;
    return sum_s + (in->micro_batches - 1.0) * most_s + tail_s;
}

static void expect_flushed(const slc_flushed_partition *in)
{
    uint32_t cuts[MOST_LAYERS], found[MOST_LAYERS];
    uint64_t bytes, least_bytes = UINT64_MAX, found_bytes;
    double least_s = INFINITY, found_s;
    for (uint32_t s = 0; s < in->stages; s++) cuts[s] = s;
    do {
        least_s = fmin(least_s, cost_of(in, cuts, &bytes));
        if (bytes < least_bytes) least_bytes = bytes;
    } while (next_cuts(cuts, in->stages, in->chain.layers));
    assert_int_equal(slc_partition_flushed(in, found, &found_s), SLUICE_OK);
    assert_true(found_s == least_s);
    if (isfinite(least_s)) assert_true(cost_of(in, found, &bytes) == least_s);
    assert_int_equal(slc_partition_least_bytes(in, found, &found_bytes), SLUICE_OK);
    assert_true(found_bytes == least_bytes);
    if (least_bytes == UINT64_MAX) return;
    cost_of(in, found, &bytes);
    assert_true(bytes == least_bytes);
}

static void cuts_of_flushed_schedules_equal_brute_force(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(test_brief() ? CHAINS / 10 : CHAINS);
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t seed = 31000 + round;
        arrays a;
        slc_flushed_partition in = {.chain = draw_chain(&seed, &a),
                                    .micro_batches = 1 + (uint32_t)draw(&seed, 9),
                                    .cut_s = a.cut_s,
                                    .tail_s = a.tail_s,
                                    .hidden_s = a.hidden_s,
                                    .held = a.held};
        in.stages = 1 + (uint32_t)draw(&seed, in.chain.layers < MOST_RANKS ? in.chain.layers : MOST_RANKS);
        for (uint32_t s = 0; s < in.stages; s++) a.limit[s] = 20 + draw(&seed, 200);
        if (draw(&seed, 2)) in.limit_bytes = a.limit;
        expect_flushed(&in);
    }
}

/* ---- Schedules that do not ---- */

/* A list of stages on one host, front to back, under trial. */
typedef struct {
    const slc_steady_partition *in;
    uint32_t first, end, ranks; /* the layers that are cut, and a host's ranks */
    uint64_t behind;            /* ranks behind them, for all hosts */
    uint32_t hosts;             /* that do the same */
    uint32_t ends[MOST_LAYERS], replicas[MOST_LAYERS], count;
    double least_s;
} trial;

static double replicated(const slc_steady_partition *in, const slc_partition_level *level, double time_s,
                         uint32_t first, uint32_t end, uint32_t r)
{
    double bytes = 0;
    for (uint32_t l = first; l < end; l++) bytes += (double)in->chain.value_bytes[l];
    const double updates = in->micro_batches ? in->micro_batches : 1;
    return (time_s + 4 * (r - 1.0) * bytes / (r * level->bytes_per_s) / updates) / r;
}

static double period_of_trial(const trial *t)
{
    const slc_steady_partition *in = t->in;
    double period_s = 0;
    uint32_t used = 0;
    for (uint32_t s = 0, first = t->first; s < t->count; first = t->ends[s++]) {
        const uint32_t r = t->replicas[s];
        double time_s = 0;
        uint64_t fixed = 0, values = 0, kept = 0;
        for (uint32_t l = first; l < t->ends[s]; l++) {
            time_s += in->chain.layer_s[l];
            fixed += in->chain.fixed_bytes[l];
            values += in->chain.value_bytes[l];
            kept += in->chain.kept_bytes[l];
        }
        const uint64_t from_here = (uint64_t)(t->ranks - used) * t->hosts + t->behind, own = (uint64_t)r * t->hosts;
        const uint64_t held = (from_here + own - 1) / own;
        if (in->limit_bytes && fixed + (in->versions ? in->versions : held) * values + held * kept > in->limit_bytes)
            return INFINITY;
        period_s = fmax(period_s, replicated(in, &in->levels[0], time_s, first, t->ends[s], r));
        if (s && in->chain.uncut[first - 1]) return INFINITY;
        if (s) period_s = fmax(period_s, 2 * (double)in->boundary_bytes[first - 1] / in->levels[0].bytes_per_s / r);
        used += r;
    }
    return period_s;
}

static void try_stages(trial *t, uint32_t first, uint32_t left)
{
    if (first == t->end && !left) t->least_s = fmin(t->least_s, period_of_trial(t));
    if (first == t->end || !left) return;
    for (uint32_t end = first + 1; end <= t->end; end++)
        for (uint32_t r = 1; r <= left; r++) {
            t->ends[t->count] = end;
            t->replicas[t->count++] = r;
            try_stages(t, end, left - r);
            t->count--;
        }
}

static double least_on_host(const slc_steady_partition *in, uint32_t first, uint32_t end, uint64_t behind,
                            uint32_t hosts)
{
    trial t = {.in = in,
               .first = first,
               .end = end,
               .ranks = in->levels[0].ranks,
               .behind = behind,
               .hosts = hosts,
               .least_s = INFINITY};
    try_stages(&t, first, t.ranks);
    return t.least_s;
}

static double least_on_hosts(const slc_steady_partition *in, uint32_t first, uint32_t left)
{
    const uint32_t layers = in->chain.layers;
    if (first == layers) return left ? INFINITY : 0;
    double least_s = INFINITY;
    for (uint32_t end = first + 1; end <= layers; end++)
        for (uint32_t h = 1; h <= left; h++) {
            const double inner_s = least_on_host(in, first, end, (uint64_t)(left - h) * in->levels[0].ranks, h);
            double period_s =
                in->levels[1].ranks > 1 ? replicated(in, &in->levels[1], inner_s, first, end, h) : inner_s;
            if (first && in->chain.uncut[first - 1]) period_s = INFINITY;
            if (first)
                period_s = fmax(period_s, 2 * (double)in->boundary_bytes[first - 1] / in->levels[1].bytes_per_s / h);
            least_s = fmin(least_s, fmax(period_s, least_on_hosts(in, end, left - h)));
        }
    return least_s;
}

static void expect_steady(const slc_steady_partition *in)
{
    slc_steady_stage stages[MOST_RANKS];
    uint32_t count, ranks = 0, layer = 0;
    double period_s;
    const uint32_t hosts = in->levels[1].ranks > 1 ? in->levels[1].ranks : 1;
    const double least_s = hosts > 1 ? least_on_hosts(in, 0, hosts) : least_on_host(in, 0, in->chain.layers, 0, 1);
    assert_int_equal(slc_partition_steady(in, stages, &count, &period_s), SLUICE_OK);
    if (!isfinite(least_s)) {
        assert_true(!isfinite(period_s) && !count);
        return;
    }
    assert_true(fabs(period_s - least_s) <= 1e-12 * least_s);
    for (uint32_t s = 0; s < count; s++) {
        assert_int_equal(stages[s].first_layer, layer);
        layer = stages[s].end_layer;
        ranks += stages[s].replicas * stages[s].hosts;
    }
    assert_int_equal(layer, in->chain.layers);
    assert_int_equal(ranks, hosts * in->levels[0].ranks);
    if (hosts > 1) return;
    trial t = {.in = in, .end = layer, .ranks = ranks, .hosts = 1, .count = count};
    for (uint32_t s = 0; s < count; s++) {
        t.ends[s] = stages[s].end_layer;
        t.replicas[s] = stages[s].replicas;
    }
    assert_true(fabs(period_of_trial(&t) - least_s) <= 1e-12 * least_s);
}

static void cuts_of_steady_schedules_equal_brute_force(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1},
                                         {2, 2}, {1, 2}, {1, 4}, {1, 5}, {1, 3}};
    const uint32_t rounds = test_rounds(test_brief() ? CHAINS / 10 : CHAINS);
    uint32_t without = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t seed = 64000 + round;
        arrays a;
        const uint32_t *shape = shapes[round % 10];
        slc_steady_partition in = {
            .chain = draw_chain(&seed, &a),
            .boundary_bytes = a.boundary,
            .versions = (uint32_t)draw(&seed, 3),
            .micro_batches = (uint32_t)(round % 3 ? 0 : round % 7),
            .levels = {{shape[0], 1 + (double)draw(&seed, 20)}, {shape[1], 1 + (double)draw(&seed, 5)}}};
        if (draw(&seed, 2)) in.limit_bytes = 40 + draw(&seed, 400);
        expect_steady(&in);
        slc_steady_stage stages[MOST_RANKS];
        uint32_t count;
        double period_s;
        assert_int_equal(slc_partition_steady(&in, stages, &count, &period_s), SLUICE_OK);
        without += !count;
    }
    assert_true(without < rounds / 2);
}

/* ---- Large ones ---- */

/* 200 layers of one length on 64 ranks: the answer is known. */
static void long_chains_are_cut_evenly(void **state)
{
    (void)state;
    enum { LAYERS = 200, RANKS = 50 };
    double layer_s[LAYERS];
    uint64_t none[LAYERS] = {0};
    uint32_t first_layer[RANKS];
    double cost_s;
    for (uint32_t l = 0; l < LAYERS; l++) layer_s[l] = 2;
    slc_flushed_partition in = {.chain = {.layers = LAYERS, .layer_s = layer_s}, .stages = RANKS, .micro_batches = 100};
    assert_int_equal(slc_partition_flushed(&in, first_layer, &cost_s), SLUICE_OK);
    assert_true(cost_s == 2.0 * LAYERS + 99 * 2.0 * LAYERS / RANKS);
    for (uint32_t s = 0; s < RANKS; s++) assert_int_equal(first_layer[s], s * LAYERS / RANKS);
    slc_steady_stage stages[64];
    uint32_t count;
    slc_steady_partition steady = {
        .chain = {.layers = LAYERS, .layer_s = layer_s, .fixed_bytes = none, .value_bytes = none, .kept_bytes = none},
        .boundary_bytes = none,
        .levels = {{64, 1e9}}};
    assert_int_equal(slc_partition_steady(&steady, stages, &count, &cost_s), SLUICE_OK);
    assert_true(fabs(cost_s - 2.0 * LAYERS / 64) < 1e-9);
}

static void more_stages_than_layers_are_refused(void **state)
{
    (void)state;
    const double layer_s[2] = {1, 1};
    uint32_t first_layer[3];
    double cost_s;
    const slc_flushed_partition in = {.chain = {.layers = 2, .layer_s = layer_s}, .stages = 3, .micro_batches = 1};
    assert_int_equal(slc_partition_flushed(&in, first_layer, &cost_s), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "3 stages of 2 layers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_of_flushed_schedules_equal_brute_force),
        cmocka_unit_test(cuts_of_steady_schedules_equal_brute_force),
        cmocka_unit_test(long_chains_are_cut_evenly),
        cmocka_unit_test(more_stages_than_layers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
