/* Reading and writing parameters and optimizer states between steps, whatever their layout and type.
 * tests/calls/every_call_test.c covers this file. */
#include "lib/base/element.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/hash/sha256.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/check/check.h"
#include "lib/engine/model/param_arrays.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/drain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Checks that a call on elements [first, first + count) is allowed now. `length` is the length of the array. */
static sluice_status check_range(const sluice_param *param, uint64_t length, uint64_t first, uint64_t count,
                                 const void *memory, const char *call)
{
    if (!param) return slc_error(SLUICE_ERR_ARGUMENT, "%s: no parameter given", call);
    sluice_runtime *rt = param->rt;
    sluice_status status = slc_runtime_require_of(rt, true, call, param->name);
    if (status) return status;
    if (rt->mode != SLC_IDLE)
        return slc_error(SLUICE_ERR_ORDER, "%s of \"%s\": must be called between steps", call, param->name);
    if (first > length || count > length - first || (count && !memory))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s of \"%s\": %llu elements from number %llu on%s; it has %llu", call,
                         param->name, (unsigned long long)count, (unsigned long long)first,
                         memory ? "" : ", but no memory given", (unsigned long long)length);
    return slc_runtime_drain(rt);
}

static sluice_status no_such_state(const sluice_param *param, const char *name)
{
    const sluice_optimizer *optimizer = &param->rt->optimizer;
    const char *own[SLC_ONEBIT_STATES_MAX];
    char names[256] = "";
    for (uint32_t s = 0; s < optimizer->state_count; s++)
        slc_append_name(names, sizeof names, optimizer->state_name[s]);
    const uint32_t count = slc_onebit_state_names(param, own);
    for (uint32_t i = 0; i < count; i++) slc_append_name(names, sizeof names, own[i]);
    return slc_error(SLUICE_ERR_ARGUMENT, "optimizer %s has no state \"%s\" of \"%s\" in the plan that runs; it has %s",
                     optimizer->name, name ? name : "", param->name, *names ? names : "none");
}

/* Finds the number of a state as an array of the parameter (model/param_arrays.h). */
static sluice_status find_state(const sluice_param *param, const char *name, uint32_t *which)
{
    const sluice_runtime *rt = param->rt;
    if (param->frozen) return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" is frozen: it has no state", param->name);
    for (uint32_t s = 0; s < rt->optimizer.state_count; s++)
        if (name && !strcmp(rt->optimizer.state_name[s], name)) {
            *which = 1 + s;
            return SLUICE_OK;
        }
    return no_such_state(param, name);
}

/* ---- The public calls ---- */

static uint64_t length_of(const sluice_param *param)
{
    return param ? param->count : 0;
}

uint64_t sluice_param_state_count(const sluice_param *param, const char *state)
{
    uint64_t count = 0;
    if (!param || !state || param->frozen || !param->rt->committed) return 0;
    const sluice_optimizer *optimizer = &param->rt->optimizer;
    for (uint32_t s = 0; s < optimizer->state_count; s++)
        if (!strcmp(optimizer->state_name[s], state)) count = param->count;
    if (!count && !slc_onebit_state(param, state, NULL, &count)) return 0;
    return count;
}

/* Returns the length of a state: for an array that each rank has for itself the array's, which may be 0; for any other
 * state the parameter's. */
static uint64_t state_length(const sluice_param *param, const char *state)
{
    uint64_t own;
    bool has_state = param && state && !param->frozen && param->rt->committed;
    return has_state && slc_onebit_state(param, state, NULL, &own) ? own : length_of(param);
}

sluice_status sluice_param_write(sluice_param *param, uint64_t first, uint64_t count, const float *src)
{
    sluice_status status = check_range(param, length_of(param), first, count, src, "param_write");
    if (!status) status = slc_phase_require_equal(param->rt, "param_write");
    if (status) return status;
    if (param->rt->check) slc_check_written(param, NULL, first, count, src);
    status = slc_param_put(param, 0, first, count, src);
    if (!status && count == param->count) param->apart = false;
    return slc_runtime_fail(param->rt, status);
}

sluice_status sluice_param_read(sluice_param *param, uint64_t first, uint64_t count, float *dst)
{
    sluice_status status = check_range(param, length_of(param), first, count, dst, "param_read");
    if (!status) status = slc_check_call(param->rt, "param_read", param, NULL);
    if (!status) status = slc_phase_require_equal(param->rt, "param_read");
    if (!status) status = slc_comm_meet(param->rt->comm, "param_read", param->name);
    if (status) return status;
    return slc_runtime_fail(param->rt, slc_param_get(param, 0, first, count, dst));
}

sluice_status sluice_param_state_write(sluice_param *param, const char *state, uint64_t first, uint64_t count,
                                       const float *src)
{
    uint32_t which = 0;
    float *own;
    uint64_t all;
    sluice_status status = check_range(param, state_length(param, state), first, count, src, "param_state_write");
    if (!status && state && slc_onebit_state(param, state, &own, &all))
        return slc_runtime_fail(param->rt,
                                slc_bounce_write(&param->rt->memory.bounce, src, SLUICE_FP32, own + first, count));
    if (!status) status = slc_phase_require_equal(param->rt, "param_state_write");
    if (!status) status = find_state(param, state, &which);
    if (!status && param->rt->check) slc_check_written(param, state, first, count, src);
    return status ? status : slc_runtime_fail(param->rt, slc_param_put(param, which, first, count, src));
}

sluice_status sluice_param_state_read(sluice_param *param, const char *state, uint64_t first, uint64_t count,
                                      float *dst)
{
    uint32_t which = 0;
    float *own;
    uint64_t all;
    sluice_status status = check_range(param, state_length(param, state), first, count, dst, "param_state_read");
    if (!status && state && slc_onebit_state(param, state, &own, &all))
        return slc_runtime_fail(param->rt,
                                slc_bounce_read(&param->rt->memory.bounce, SLUICE_FP32, own + first, dst, count));
    if (!status) status = slc_phase_require_equal(param->rt, "param_state_read");
    if (!status) status = find_state(param, state, &which);
    if (!status) status = slc_comm_meet(param->rt->comm, "param_state_read", param->name);
    return status ? status : slc_runtime_fail(param->rt, slc_param_get(param, which, first, count, dst));
}

/* Adds a run of elements that this rank owns. */
static sluice_status add_extent(sluice_param *param, uint32_t which, uint64_t first, uint64_t count, double *squares,
                                double *largest)
{
    enum { PIECE = 4096 };
    float piece[PIECE];
    sluice_dtype dtype;
    const void *from = slc_param_owned_at(param, which, first, count, &dtype);
    sluice_status status = SLUICE_OK;
    for (uint64_t at = 0, some; !status && at < count; at += some) {
        some = count - at < PIECE ? count - at : PIECE;
        status = slc_bounce_read(&param->rt->memory.bounce, dtype, slc_element((void *)from, dtype, at), piece, some);
        for (uint64_t i = 0; !status && i < some; i++) {
            const double value = fabs((double)piece[i]);
            *squares += value * value;
            if (!(value <= *largest)) *largest = value;
        }
    }
    return status;
}

sluice_status sluice_param_state_extent(sluice_param *param, const char *state, double *squares, double *largest)
{
    uint32_t which = 0;
    sluice_status status = check_range(param, length_of(param), 0, 0, NULL, "param_state_extent");
    if (!status && (!squares || !largest))
        status = slc_error(SLUICE_ERR_ARGUMENT, "param_state_extent of \"%s\": no place for the result", param->name);
    if (!status) status = find_state(param, state, &which);
    if (status) return status;
    *squares = *largest = 0;
    if (param->unit == SLC_NONE) return SLUICE_OK; /* another stage keeps it */
    for (uint64_t done = 0, first, count; !status && done < param->count; done = first + count) {
        first = done, count = param->count - done;
        if (!slc_param_owned(param, &first, &count)) break;
        status = add_extent(param, which, first, count, squares, largest);
    }
    return slc_runtime_fail(param->rt, status);
}

static const uint64_t MOST_STEPS = UINT64_C(1) << 53; /* bias correction computes with it in double */

static sluice_status same_step(sluice_runtime *rt, uint64_t step)
{
    uint64_t *all = malloc((size_t)rt->size * sizeof *all);
    if (!all) return slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "numbers of %d ranks", rt->size));
    sluice_status status = slc_runtime_fail(rt, sluice_world_all_gather(rt->world, &step, sizeof step, all));
    for (int r = 1; !status && r < rt->size; r++)
        if (all[r] != all[0])
            status = slc_runtime_alike(
                rt,
                slc_error(SLUICE_ERR_MISMATCH,
                          "step_set: the number of updates is %llu on rank 0 and %llu on rank %d; give every rank the "
                          "same",
                          (unsigned long long)all[0], (unsigned long long)all[r], r));
    free(all);
    return status;
}

sluice_status sluice_runtime_step_set(sluice_runtime *rt, uint64_t step)
{
    sluice_status status = slc_runtime_require(rt, true, "step_set");
    if (!status && rt->mode != SLC_IDLE) status = slc_error(SLUICE_ERR_ORDER, "step_set: must be called between steps");
    if (!status && step >= MOST_STEPS)
        status = slc_error(SLUICE_ERR_ARGUMENT, "step_set: %llu is no number of updates; it is below 2^53",
                           (unsigned long long)step);
    if (status) return status;
    status = same_step(rt, step);
    if (!status) status = slc_runtime_drain(rt);
    if (status) return status;
    rt->step = step;
    for (uint32_t p = 0; p < rt->model.param_count; p++) rt->model.params[p]->missed = 0;
    return status ? status : slc_phase_follow(rt);
}

/* Returns true if every rank reads what the owners have, so that one hash says as much as all of them. */
static bool all_are_gathered(const sluice_runtime *rt)
{
    bool gathered = true;
    for (uint32_t p = 0; p < rt->model.param_count; p++) gathered &= slc_param_is_gathered(rt->model.params[p], 0);
    return gathered;
}

/* Compares what replicas of a stage hold themselves, as they have hashed it. */
static sluice_status stage_replicas_agree(sluice_runtime *rt, uint64_t own)
{
    uint64_t *all = malloc((size_t)rt->size * sizeof *all);
    if (!all) return slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "fingerprints of %d ranks", rt->size));
    sluice_status status = sluice_world_all_gather(rt->world, &own, sizeof own, all);
    for (int r = 0; !status && r < rt->size; r++) {
        const int first = r - r % rt->replicas;
        if (all[r] != all[first])
            status = slc_error(SLUICE_ERR_MISMATCH,
                               "rank %d has another replica of the weights than rank %d of the same stage; give both "
                               "the same",
                               r, first);
    }
    free(all);
    return status;
}

/* Under dp and oss each rank has read its own replica. Between two exchanges of a compressed optimizer they differ. */
static sluice_status replicas_agree(sluice_runtime *rt, char hex[65], bool gathered)
{
    if (gathered) return sluice_world_broadcast(rt->world, hex, 65, 0);
    if (rt->compression.replicas_differ) return SLUICE_OK;
    return sluice_world_same(rt->world, "replica of the weights", slc_fnv(SLC_FNV_START, hex, strlen(hex)));
}

enum { HASHED_PIECE = 1 << 18 }; /* elements */

/* Adds to the hash the elements that this replica of a stage holds itself; a read would give those of the first
 * replica. */
static sluice_status hash_replica(const sluice_param *param, float piece[HASHED_PIECE], uint64_t *own)
{
    sluice_status status = SLUICE_OK;
    if (!slc_param_is_replica(param, 0)) return SLUICE_OK;
    for (uint64_t first = 0; !status && first < param->count; first += HASHED_PIECE) {
        const uint64_t count = slc_least(param->count - first, HASHED_PIECE);
        status = slc_param_get_replica(param, 0, first, count, piece);
        *own = slc_fnv(*own, piece, count * sizeof *piece);
    }
    return slc_runtime_fail(param->rt, status);
}

/* Adds a parameter's values to the hash, where there is one. All ranks read; values that lie as they are hashed are not
 * copied first. */
static sluice_status hash_param(sluice_param *param, float piece[HASHED_PIECE], slc_sha256 *hash)
{
    sluice_status status = sluice_param_read(param, 0, 0, piece); /* waits for updates */
    const float *whole = status ? NULL : slc_param_whole(param, 0);
    if (whole && hash) slc_sha256_add(hash, whole, 4 * param->count);
    for (uint64_t first = 0; !whole && !status && first < param->count; first += HASHED_PIECE) {
        const uint64_t count = slc_least(param->count - first, HASHED_PIECE);
        status = sluice_param_read(param, first, count, piece);
        if (!status && hash) slc_sha256_add(hash, piece, 4 * count);
    }
    return status;
}

sluice_status sluice_runtime_weights_sha256(sluice_runtime *rt, char hex[65])
{
    sluice_status ready = slc_runtime_require_mode(rt, SLC_IDLE, "weights_sha256");
    if (!ready && !hex) ready = slc_error(SLUICE_ERR_ARGUMENT, "weights_sha256: no place for the result");
    if (ready) return ready;
    float *piece = malloc(HASHED_PIECE * sizeof *piece);
    if (!piece) return slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "weights_sha256"));
    slc_sha256 hash;
    slc_sha256_init(&hash);
    sluice_status status = SLUICE_OK;
    const bool gathered = all_are_gathered(rt), hashes = !gathered || rt->rank == 0;
    uint64_t own = SLC_FNV_START;
    for (uint32_t p = 0; !status && p < rt->model.param_count; p++) {
        status = hash_param(rt->model.params[p], piece, hashes ? &hash : NULL);
        if (!status) status = hash_replica(rt->model.params[p], piece, &own);
    }
    slc_sha256_finish(&hash, hex);
    free(piece);
    if (!status && slc_is_stage(&rt->stage) && rt->replicas > 1) status = stage_replicas_agree(rt, own);
    if (!status) status = replicas_agree(rt, hex, gathered);
    return status;
}
