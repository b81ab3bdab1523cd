/* Reading and writing parameters and optimizer state between steps, whatever their layout and type. What only one rank
 * holds is gathered block by block through the staging buffer. */
#include "lib/engine/runtime.h"

#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/engine/check/check.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/onebit/phase.h"
#include "lib/kernels/convert/convert.h"
#include "lib/plan/strategy_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An array of one value per element of a unit: whole on every rank, or the owned parts only. Of a whole one whose
 * replicas are apart the owned parts are what counts too. */
typedef struct {
    void *data;
    sluice_dtype dtype;
    bool sharded;
} array;

/* `length`: of the array. */
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

static array values_of(const slc_unit_state *unit)
{
    return (array){unit->shard ? unit->shard : unit->value, unit->dtype, unit->shard != NULL};
}

static array masters_of(const slc_unit_state *unit)
{
    return unit->master ? (array){unit->master, SLUICE_FP32, !slc_updates_whole(unit->strategy)} : values_of(unit);
}

static sluice_status store(sluice_runtime *rt, array target, uint64_t at, const float *src, uint64_t count)
{
    void *dst = slc_element(target.data, target.dtype, at);
    return slc_convert(&rt->compute, SLUICE_FP32, src, target.dtype, dst, count);
}

static sluice_status load(sluice_runtime *rt, array source, uint64_t at, float *dst, uint64_t count)
{
    const void *src = slc_element(source.data, source.dtype, at);
    sluice_status status = slc_convert(&rt->compute, source.dtype, src, SLUICE_FP32, dst, count);
    return status ? status : slc_stream_synchronize(&rt->compute);
}

void slc_append_name(char *names, size_t size, const char *name)
{
    const size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", used ? ", " : "", name);
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

static sluice_status state_of(const sluice_param *param, const char *name, array *out)
{
    const sluice_runtime *rt = param->rt;
    const slc_unit_state *unit = &rt->units[param->unit];
    if (param->frozen) return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" is frozen: it has no state", param->name);
    for (uint32_t s = 0; s < rt->optimizer.state_count; s++)
        if (name && !strcmp(rt->optimizer.state_name[s], name)) {
            *out = (array){unit->state[s], SLUICE_FP32, !slc_updates_whole(unit->strategy)};
            return SLUICE_OK;
        }
    return no_such_state(param, name);
}

static sluice_status write_array(sluice_param *param, array target, uint64_t first, uint64_t count, const float *src)
{
    sluice_runtime *rt = param->rt;
    if (!target.sharded) return store(rt, target, param->first + first, src, count);
    const slc_unit *unit = &rt->job.units[param->unit];
    sluice_param piece = {.first = param->first + first, .count = count};
    for (uint64_t b = piece.first / unit->block_elements; b < slc_unit_blocks(unit); b++) {
        slc_part part = slc_unit_part(unit, (uint32_t)rt->size, b, (uint32_t)rt->rank);
        if (part.first >= piece.first + count) break;
        slc_part range = slc_part_of_param(&part, &piece);
        if (!range.count) continue;
        sluice_status status = store(rt, target, range.shard_first, src + (range.first - piece.first), range.count);
        if (status) return status;
    }
    return slc_stream_synchronize(&rt->compute);
}

static sluice_status gather_block(sluice_runtime *rt, const slc_unit *unit, array source, uint64_t block)
{
    uint64_t start = block * unit->block_elements;
    uint64_t length = unit->elements - start < unit->block_elements ? unit->elements - start : unit->block_elements;
    slc_op op = {.kind = SLC_ALL_GATHER,
                 .dtype = slc_comm_dtype(source.dtype),
                 .elements = length,
                 .block_elements = length,
                 .block_count = 1,
                 .src = slc_element(source.data, source.dtype, source.sharded ? start / (uint64_t)rt->size : start),
                 .src_layout = source.sharded ? SLC_SHARD : SLC_WHOLE,
                 .dst = rt->staging,
                 .what = "reading a parameter"};
    sluice_status status = slc_comm_submit(rt->comm, &op, 1, NULL);
    if (status) return status;
    return slc_comm_wait(rt->comm, ++rt->next_operation);
}

sluice_status slc_staging_claim(sluice_runtime *rt, bool claim)
{
    uint32_t buffer = slc_plan_buffer(rt->plan, SLC_BUFFER_STAGING, SLC_NONE, 0);
    slc_claim staging = {.buffer = buffer, .end_byte = rt->plan->buffers[buffer].bytes};
    if (claim) return slc_engine_claim(rt, &staging);
    return slc_arena_release(rt->arena, rt->plan->buffers[buffer].offset, staging.end_byte);
}

static sluice_status read_owners(sluice_param *param, array source, uint64_t first, uint64_t count, float *dst)
{
    sluice_runtime *rt = param->rt;
    const slc_unit *unit = &rt->job.units[param->unit];
    uint64_t at = param->first + first, end = at + count;
    sluice_status status = slc_staging_claim(rt, true);
    if (status) return status;
    while (!status && at < end) {
        uint64_t block = at / unit->block_elements, start = block * unit->block_elements;
        uint64_t block_end = start + unit->block_elements < end ? start + unit->block_elements : end;
        status = gather_block(rt, unit, source, block);
        if (!status) status = load(rt, (array){rt->staging, source.dtype, false}, at - start, dst, block_end - at);
        dst += block_end - at;
        at = block_end;
    }
    sluice_status released = slc_staging_claim(rt, false);
    return status ? status : released;
}

static sluice_status read_array(sluice_param *param, array source, uint64_t first, uint64_t count, float *dst)
{
    if (!count) return SLUICE_OK;
    if (source.sharded || param->apart) return read_owners(param, source, first, count, dst);
    return load(param->rt, source, param->first + first, dst, count);
}

static sluice_status write_values(sluice_param *param, uint64_t first, uint64_t count, const float *src)
{
    const slc_unit_state *unit = &param->rt->units[param->unit];
    sluice_status status = write_array(param, masters_of(unit), first, count, src);
    if (!status && unit->master) status = write_array(param, values_of(unit), first, count, src);
    return status;
}

/* ---- Arrays by number ---- */

static array array_of(const sluice_param *param, uint32_t which)
{
    const slc_unit_state *unit = &param->rt->units[param->unit];
    return which ? (array){unit->state[which - 1], SLUICE_FP32, !slc_updates_whole(unit->strategy)} : masters_of(unit);
}

/* A master may be sharded while every rank holds its values whole. */
static bool is_whole(const sluice_param *param, uint32_t which)
{
    return !array_of(param, which).sharded || (!which && !param->rt->units[param->unit].shard);
}

/* The first run of elements [first, first + count) of a parameter in this rank's own parts; count 0: none. */
static slc_part first_owned(const sluice_param *param, uint64_t first, uint64_t count)
{
    const sluice_runtime *rt = param->rt;
    const slc_unit *unit = &rt->job.units[param->unit];
    sluice_param piece = {.first = param->first + first, .count = count};
    slc_part range = {0};
    for (uint64_t b = piece.first / unit->block_elements; !range.count && b < slc_unit_blocks(unit); b++) {
        slc_part part = slc_unit_part(unit, (uint32_t)rt->size, b, (uint32_t)rt->rank);
        if (part.first >= piece.first + count) break;
        range = slc_part_of_param(&part, &piece);
    }
    return range;
}

bool slc_param_owned(const sluice_param *param, uint64_t *first, uint64_t *count)
{
    slc_part range = first_owned(param, *first, *count);
    *first = range.first - param->first;
    *count = range.count;
    return range.count > 0;
}

bool slc_param_kept(const sluice_param *param, uint32_t which, uint64_t *first, uint64_t *count)
{
    return is_whole(param, which) ? *count > 0 : slc_param_owned(param, first, count);
}

sluice_status slc_param_get_owned(const sluice_param *param, uint32_t which, uint64_t first, uint64_t count, float *dst)
{
    slc_part range = first_owned(param, first, count);
    array source = array_of(param, which);
    return load(param->rt, source, source.sharded ? range.shard_first : range.first, dst, count);
}

sluice_status slc_param_add_owned(const sluice_param *param, uint32_t which, int64_t *bins)
{
    array source = array_of(param, which);
    uint64_t done = 0;
    for (slc_part range; (range = first_owned(param, done, param->count - done)).count;) {
        done = range.first - param->first + range.count;
        const void *from = slc_element(source.data, source.dtype, source.sharded ? range.shard_first : range.first);
        sluice_status status = slc_norm_add(&param->rt->compute, source.dtype, range.count, from, bins);
        if (status) return status;
        if (done == param->count) break;
    }
    return slc_stream_synchronize(&param->rt->compute);
}

sluice_status slc_param_put(sluice_param *param, uint32_t which, uint64_t first, uint64_t count, const float *src)
{
    if (!which) return write_values(param, first, count, src);
    return write_array(param, array_of(param, which), first, count, src);
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

/* Of a rank's own arrays, of which a parameter may have none, their length; else the parameter's. */
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
    status = write_values(param, first, count, src);
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
    array masters = masters_of(&param->rt->units[param->unit]);
    return slc_runtime_fail(param->rt, read_array(param, masters, first, count, dst));
}

sluice_status sluice_param_state_write(sluice_param *param, const char *state, uint64_t first, uint64_t count,
                                       const float *src)
{
    array target;
    float *own;
    uint64_t all;
    sluice_status status = check_range(param, state_length(param, state), first, count, src, "param_state_write");
    if (!status && state && slc_onebit_state(param, state, &own, &all)) {
        status = slc_copy(&param->rt->compute, own + first, src, count * sizeof *src);
        if (!status) status = slc_stream_synchronize(&param->rt->compute);
        return slc_runtime_fail(param->rt, status);
    }
    if (!status) status = slc_phase_require_equal(param->rt, "param_state_write");
    if (!status) status = state_of(param, state, &target);
    if (!status && param->rt->check) slc_check_written(param, state, first, count, src);
    return status ? status : slc_runtime_fail(param->rt, write_array(param, target, first, count, src));
}

sluice_status sluice_param_state_read(sluice_param *param, const char *state, uint64_t first, uint64_t count,
                                      float *dst)
{
    array source;
    float *own;
    uint64_t all;
    sluice_status status = check_range(param, state_length(param, state), first, count, dst, "param_state_read");
    if (!status && state && slc_onebit_state(param, state, &own, &all)) {
        status = slc_copy(&param->rt->compute, dst, own + first, count * sizeof *dst);
        if (!status) status = slc_stream_synchronize(&param->rt->compute);
        return slc_runtime_fail(param->rt, status);
    }
    if (!status) status = slc_phase_require_equal(param->rt, "param_state_read");
    if (!status) status = state_of(param, state, &source);
    if (!status) status = slc_comm_meet(param->rt->comm, "param_state_read", param->name);
    return status ? status : slc_runtime_fail(param->rt, read_array(param, source, first, count, dst));
}

uint64_t sluice_runtime_step(const sluice_runtime *rt)
{
    return rt->step;
}

sluice_status sluice_runtime_step_set(sluice_runtime *rt, uint64_t step)
{
    sluice_status status = slc_runtime_require(rt, true, "step_set");
    if (!status && rt->mode != SLC_IDLE) status = slc_error(SLUICE_ERR_ORDER, "step_set: must be called between steps");
    if (status) return status;
    status = slc_runtime_drain(rt);
    rt->step = step;
    return status ? status : slc_phase_follow(rt);
}

sluice_status sluice_runtime_weights_sha256(sluice_runtime *rt, char hex[65])
{
    enum { PIECE = 1 << 18 };
    float *piece = malloc(PIECE * sizeof *piece);
    if (!piece) return slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "weights_sha256"));
    slc_sha256 hash;
    slc_sha256_init(&hash);
    sluice_status status = SLUICE_OK;
    for (uint32_t p = 0; !status && p < rt->param_count; p++)
        for (uint64_t first = 0; !status && first < rt->params[p]->count; first += PIECE) {
            uint64_t left = rt->params[p]->count - first, count = left < PIECE ? left : PIECE;
            status = sluice_param_read(rt->params[p], first, count, piece);
            slc_sha256_add(&hash, piece, 4 * count);
        }
    slc_sha256_finish(&hash, hex);
    free(piece);
    return status;
}
