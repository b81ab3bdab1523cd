/* SLUICE_ENGINE_CHECK across ranks: every rank says what it calls, with which options, and what it has written.
 * tests/calls/engine_check_test.c covers this file. */
#include "lib/engine/check/check.h"

#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/engine/runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank's description of its call. */
typedef struct {
    char call[160];
    uint64_t step; /* updates applied */
    double learning_rate, gradient_scale;
    uint64_t exchange, micro_batches;
    uint64_t group_rates; /* hash over all; 0: none */
    uint64_t left_out;    /* layers: hash over their numbers; 0: none */
    uint64_t drawn;       /* layers: hash over the probabilities of all; 0: none */
    uint64_t written;     /* hash over all parameters */
} saying;

void slc_check_written(sluice_param *param, const char *state, uint64_t first, uint64_t count, const float *src)
{
    slc_written *written = &param->rt->check->written[param->number];
    const uint64_t range[2] = {first, count};
    uint64_t hash = written->writes++ ? written->hash : SLC_FNV_START;
    if (state) hash = slc_fnv(hash, state, strlen(state) + 1);
    hash = slc_fnv(hash, range, sizeof range);
    written->hash = slc_fnv(hash, src, count * sizeof *src);
}

static sluice_status differs(const char *call, const char *what, int rank, double first, double other)
{
    return slc_error(SLUICE_ERR_MISMATCH, "%s: %s is %.17g on rank 0 and %.17g on rank %d; give every rank the same",
                     call, what, first, other, rank);
}

static bool same(double a, double b)
{
    return !memcmp(&a, &b, sizeof a);
}

/* Compares what rank r says with what rank 0 says. */
static sluice_status compare_saying(const saying *zero, const saying *other, int r)
{
    if (strcmp(zero->call, other->call))
        return slc_error(SLUICE_ERR_MISMATCH,
                         "rank 0 calls %s where rank %d calls %s: every rank makes the same calls in the same order",
                         zero->call, r, other->call);
    if (zero->step != other->step)
        return differs(zero->call, "the number of updates (sluice_runtime_step)", r, (double)zero->step,
                       (double)other->step);
    if (!same(zero->learning_rate, other->learning_rate))
        return differs(zero->call, "learning_rate", r, zero->learning_rate, other->learning_rate);
    if (!same(zero->gradient_scale, other->gradient_scale))
        return differs(zero->call, "gradient_scale", r, zero->gradient_scale, other->gradient_scale);
    if (zero->exchange != other->exchange)
        return differs(zero->call, "exchange", r, (double)zero->exchange, (double)other->exchange);
    if (zero->micro_batches != other->micro_batches)
        return differs(zero->call, "micro_batches", r, (double)zero->micro_batches, (double)other->micro_batches);
    if (zero->group_rates != other->group_rates)
        return slc_error(SLUICE_ERR_MISMATCH,
                         "%s: group_rates are others on rank 0 and on rank %d; give every rank the same", zero->call,
                         r);
    if (zero->left_out != other->left_out)
        return slc_error(SLUICE_ERR_MISMATCH,
                         "%s: layers_left_out are others on rank 0 and on rank %d; give every rank the same",
                         zero->call, r);
    if (zero->drawn != other->drawn)
        return slc_error(
            SLUICE_ERR_MISMATCH,
            "%s: layers_drawn, or layer_probabilities, are others on rank 0 and on rank %d; give every rank "
            "the same",
            zero->call, r);
    return SLUICE_OK;
}

static sluice_status compare_written(const sluice_runtime *rt, const slc_written *all)
{
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        for (int r = 1; r < rt->size; r++) {
            const slc_written *zero = &all[p], *other = &all[(size_t)r * rt->model.param_count + p];
            if (zero->hash == other->hash && zero->writes == other->writes) continue;
            if (zero->writes != other->writes)
                return slc_error(SLUICE_ERR_MISMATCH,
                                 "parameter \"%s\": rank 0 has written it %" PRIu64 " times, rank %d %" PRIu64
                                 " times; call sluice_param_write on every rank, with the same data",
                                 rt->model.params[p]->name, zero->writes, r, other->writes);
            return slc_error(SLUICE_ERR_MISMATCH,
                             "parameter \"%s\": rank %d has written other data than rank 0; write the same on every "
                             "rank (the same seed, or sluice_world_broadcast from rank 0)",
                             rt->model.params[p]->name, r);
        }
    return SLUICE_OK;
}

/* Called only if some rank has written other data: finds the parameter and the rank. */
static sluice_status find_written(sluice_runtime *rt)
{
    const size_t bytes = rt->model.param_count * sizeof *rt->check->written;
    slc_written *all = malloc(bytes * (size_t)rt->size);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "SLUICE_ENGINE_CHECK: what %d ranks have written", rt->size);
    sluice_status status = sluice_world_all_gather(rt->world, rt->check->written, bytes, all);
    if (!status) status = compare_written(rt, all);
    free(all);
    return status;
}

static sluice_status compare_all(sluice_runtime *rt, const saying *all)
{
    bool other_writes = false;
    for (int r = 1; r < rt->size; r++) {
        sluice_status status = compare_saying(&all[0], &all[r], r);
        if (status) return status;
        other_writes |= all[r].written != all[0].written;
    }
    return other_writes ? find_written(rt) : SLUICE_OK;
}

static bool leaves_out(const sluice_step_options *options, uint32_t layer)
{
    bool found = false;
    for (uint64_t i = 0; options->layers_left_out && i < options->layer_left_out_count; i++)
        found |= options->layers_left_out[i]->index == layer;
    return found;
}

/* Hashes the layers that are left out in the model's order, because ranks may name the same layers in different orders.
 */
static uint64_t hash_left_out(const sluice_runtime *rt, const sluice_step_options *options)
{
    uint64_t hash = 0;
    for (uint32_t l = 0; l < rt->model.layer_count; l++)
        if (leaves_out(options, l)) hash = slc_fnv(hash ? hash : SLC_FNV_START, &l, sizeof l);
    return hash;
}

/* A layer that is not named is always kept. */
static double probability_of(const sluice_step_options *options, uint32_t layer)
{
    double probability = 1;
    for (uint64_t i = 0; i < options->layer_drawn_count; i++)
        if (options->layers_drawn[i]->index == layer && options->layer_probabilities[i] < 1)
            probability = options->layer_probabilities[i];
    return probability;
}

static uint64_t hash_drawn(const sluice_runtime *rt, const sluice_step_options *options)
{
    if (!options->layers_drawn || !options->layer_drawn_count) return 0;
    uint64_t hash = SLC_FNV_START;
    for (uint32_t l = 0; l < rt->model.layer_count; l++) {
        const double probability = probability_of(options, l);
        hash = slc_fnv(hash, &probability, sizeof probability);
    }
    return hash;
}

sluice_status slc_check_call(sluice_runtime *rt, const char *call, const sluice_param *param,
                             const sluice_step_options *options)
{
    if (!rt->check) return SLUICE_OK;
    saying mine;
    memset(&mine, 0, sizeof mine);
    snprintf(mine.call, sizeof mine.call, param ? "%s of \"%s\"" : "%s", call, param ? param->name : "");
    mine.step = rt->step;
    if (options) {
        mine.learning_rate = options->learning_rate;
        mine.gradient_scale = options->gradient_scale;
        mine.exchange = options->exchange;
        mine.micro_batches = options->micro_batches;
        if (options->group_rates)
            mine.group_rates =
                slc_fnv(SLC_FNV_START, options->group_rates, rt->model.group_count * sizeof *options->group_rates);
        mine.left_out = hash_left_out(rt, options);
        mine.drawn = hash_drawn(rt, options);
    }
    mine.written = slc_fnv(SLC_FNV_START, rt->check->written, rt->model.param_count * sizeof *rt->check->written);
    saying *all = malloc((size_t)rt->size * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "SLUICE_ENGINE_CHECK: what %d ranks call", rt->size);
    sluice_status status = sluice_world_all_gather(rt->world, &mine, sizeof mine, all);
    if (!status) status = compare_all(rt, all);
    free(all);
    return slc_runtime_fail(rt, status);
}
