/* A onebit unit as the optimizer sees it, and its operations in each mode of a step.
 * tests/onebit/onebit_engine_test.c covers this file. */
#include "lib/engine/onebit/onebit.h"

#include "lib/base/status.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/model/unit.h"
#include "lib/engine/runtime.h"
#include "lib/kernels/step_words/looking.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

/* ---- Commit ---- */

static sluice_status make_group(const sluice_runtime *rt, const slc_unit_state *unit, bool fuses,
                                slc_compress_group *group)
{
    uint64_t all = 0;
    slc_compress_shape *shapes = calloc(unit->param_count, sizeof *shapes);
    if (!shapes) return slc_error(SLUICE_ERR_MEMORY, "an exchange of %u parameters", unit->param_count);
    for (uint32_t p = 0; p < unit->param_count; p++) {
        shapes[p] = (slc_compress_shape){.count = unit->params[p]->count, .ranks = (uint32_t)rt->replicas};
        all += unit->params[p]->count;
    }
    if (fuses) shapes[0].count = slc_flat_elements(all, (uint32_t)rt->replicas);
    sluice_status status = slc_compress_group_init(group, fuses ? 1 : unit->param_count, shapes);
    free(shapes);
    return status;
}

/* Makes arrays for so many tensors. False: there is no memory. */
static bool make_tensors(slc_onebit_tensors *t, uint32_t count)
{
    t->workers = calloc(count, sizeof *t->workers);
    t->servers = calloc(count, sizeof *t->servers);
    bool complete = t->workers && t->servers;
    for (int i = 0; i < SLC_LOCAL_MAX; i++) complete &= (t->parts[i] = calloc(count, sizeof **t->parts)) != NULL;
    return complete;
}

static void destroy_tensors(slc_onebit_tensors *t)
{
    slc_compress_group_fini(&t->group);
    free(t->workers);
    free(t->servers);
    for (int i = 0; i < SLC_LOCAL_MAX; i++) free(t->parts[i]);
}

sluice_status slc_onebit_create(sluice_runtime *rt, uint32_t u, bool fuses)
{
    slc_unit_state *unit = &rt->units[u];
    slc_onebit *onebit = unit->onebit = calloc(1, sizeof *onebit);
    if (!onebit) return slc_error(SLUICE_ERR_MEMORY, "unit \"%s\"", rt->job.units[u].name);
    sluice_status status = make_group(rt, unit, fuses, &onebit->all.group);
    if (status) return status;
    const slc_compress_group *group = &onebit->all.group;
    onebit->tensors = calloc(unit->param_count, sizeof *onebit->tensors);
    bool complete = onebit->tensors && make_tensors(&onebit->all, unit->param_count);
    for (int i = 0; complete && rt->job.units[u].fused && i < 2; i++)
        complete = make_tensors(&onebit->kept[i], unit->param_count);
    if (!complete) return slc_error(SLUICE_ERR_MEMORY, "unit \"%s\"", rt->job.units[u].name);
    /* The room for results is that of the world, whose stages may reach their replicas in different ways. */
    rt->job.units[u].exchange = (slc_exchange_sizes){.worker = slc_compress_group_worker_bytes(group),
                                                     .server = slc_compress_group_server_bytes(group),
                                                     .packets = group->stride * (uint64_t)rt->replicas,
                                                     .results = slc_comm_exchange_bytes(rt->comm, group),
                                                     .wire = group->packet_bytes * (uint64_t)rt->replicas};
    return SLUICE_OK;
}

void slc_onebit_destroy(slc_onebit *onebit)
{
    if (!onebit) return;
    destroy_tensors(&onebit->all);
    for (int i = 0; i < 2; i++) destroy_tensors(&onebit->kept[i]);
    free(onebit->tensors);
    free(onebit);
}

/* ---- A plan's buffers ---- */

void slc_onebit_locate(sluice_runtime *rt, uint32_t u)
{
    slc_unit_state *unit = &rt->units[u];
    slc_onebit *onebit = unit->onebit;
    slc_onebit_tensors *all = &onebit->all;
    slc_compress_group_residues(&all->group, slc_engine_buffer(rt, SLC_BUFFER_WORKER_ERROR, u, 0),
                                slc_engine_buffer(rt, SLC_BUFFER_SERVER_ERROR, u, 0), all->workers, all->servers);
    onebit->packets = slc_engine_buffer(rt, SLC_BUFFER_PACKETS, u, 0);
    onebit->results = slc_engine_buffer(rt, SLC_BUFFER_RESULTS, u, 0);
    for (uint32_t i = 0; i < SLC_LOCAL_MAX; i++) {
        float *local = onebit->local[i] = slc_engine_buffer(rt, SLC_BUFFER_LOCAL, u, i);
        uint64_t flat = 0;
        for (uint32_t p = 0; local && p < unit->param_count; p++) {
            all->parts[i][p] = local + (rt->compression.fuses ? flat : unit->params[p]->first);
            flat += unit->params[p]->count;
        }
    }
}

sluice_status slc_onebit_reset_errors(sluice_runtime *rt)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t u = 0; !status && u < rt->job.unit_count; u++) {
        if (!slc_exchanges(rt->units[u].strategy)) continue;
        const slc_exchange_sizes *sizes = &rt->job.units[u].exchange;
        status = slc_fill_zero(&rt->compute, slc_engine_buffer(rt, SLC_BUFFER_WORKER_ERROR, u, 0), sizes->worker);
        if (!status)
            status = slc_fill_zero(&rt->compute, slc_engine_buffer(rt, SLC_BUFFER_SERVER_ERROR, u, 0), sizes->server);
    }
    return status ? status : slc_stream_synchronize(&rt->compute);
}

/* ---- Tensors that a step keeps ---- */

/* Fills `kept` with the tensors of the unit that the step keeps. */
static sluice_status keep_tensors(const slc_unit_state *unit, const slc_step_state *step, slc_onebit_tensors *kept)
{
    const slc_onebit_tensors *all = &unit->onebit->all;
    uint32_t count = 0;
    slc_compress_shape *shapes = calloc(unit->param_count, sizeof *shapes);
    if (!shapes) return slc_error(SLUICE_ERR_MEMORY, "an exchange of %u parameters", unit->param_count);
    for (uint32_t p = 0; p < unit->param_count; p++) {
        if (slc_left_out_param(step, unit->params[p])) continue;
        shapes[count] = all->group.shapes[p];
        kept->workers[count] = all->workers[p];
        kept->servers[count] = all->servers[p];
        for (int i = 0; i < SLC_LOCAL_MAX; i++) kept->parts[i][count] = all->parts[i][p];
        count++;
    }
    const bool some = count && count < unit->param_count;
    sluice_status status = some ? slc_compress_group_init(&kept->group, count, shapes) : SLUICE_OK;
    free(shapes);
    return status;
}

static int number_of(const sluice_runtime *rt, const slc_step_state *step)
{
    return step == &rt->steps[1];
}

sluice_status slc_onebit_keep(sluice_runtime *rt, const slc_step_state *step)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t u = 0; rt->compression.on && !status && u < rt->job.unit_count; u++) {
        const slc_unit_state *unit = &rt->units[u];
        if (!unit->onebit || !rt->job.units[u].fused) continue;
        slc_onebit_tensors *kept = &unit->onebit->kept[number_of(rt, step)];
        slc_compress_group_fini(&kept->group);
        if (step->leaves_out && slc_exchanges(unit->strategy)) status = keep_tensors(unit, step, kept);
    }
    return status;
}

static const slc_onebit_tensors *kept_tensors(const sluice_runtime *rt, uint32_t u, const slc_step_state *step)
{
    const slc_onebit *onebit = rt->units[u].onebit;
    const slc_onebit_tensors *kept = &onebit->kept[number_of(rt, step)];
    return kept->group.count ? kept : &onebit->all;
}

/* ---- Operations ---- */

/* The words that kernels of a onebit unit read, if something is to be learned from the agreement. */
static const sluice_step_words *words_of(const sluice_runtime *rt, const slc_step_state *step)
{
    if (!step->ahead || !slc_waits_for_agreement(&rt->job, SLC_ONEBIT)) return NULL;
    return step->mode == SLC_STEP_AVERAGE ? &step->ahead->words->told : &step->ahead->words->own;
}

static slc_onebit_unit describe_unit(sluice_runtime *rt, uint32_t u, const slc_step_state *step)
{
    const slc_unit_state *unit = &rt->units[u];
    slc_onebit *onebit = unit->onebit;
    const slc_onebit_tensors *kept = kept_tensors(rt, u, step);
    uint32_t count = 0;
    for (uint32_t p = 0; p < unit->param_count; p++) {
        const sluice_param *param = unit->params[p];
        if (slc_left_out_param(step, param)) continue;
        slc_part whole = {.first = param->first, .count = param->count, .shard_first = param->first};
        sluice_update update = slc_update_of(rt, u, param, &whole, step);
        update.gradient = slc_element(unit->gradient, unit->gradient_dtype, param->first);
        update.gradient_dtype = unit->gradient_dtype;
        if (step->mode != SLC_STEP_AVERAGE) update.gradient_factor = step->own_scale * step->own_factor;
        update.words = words_of(rt, step);
        update.stream = &rt->updates;
        onebit->tensors[count++] = update;
    }
    slc_onebit_unit out = {.tensor_count = count,
                           .tensors = onebit->tensors,
                           .group = &kept->group,
                           .workers = kept->workers,
                           .packets = onebit->packets,
                           .results = onebit->results};
    for (int i = 0; i < SLC_LOCAL_MAX; i++)
        if (onebit->local[i]) out.local[i] = kept->parts[i];
    return out;
}

static void note_bad(slc_step_state *step, uint32_t parameter)
{
    step->non_finite++;
    if (parameter < step->bad_param) step->bad_param = parameter;
}

static sluice_status inspect_own_ahead(sluice_runtime *rt, uint32_t u, const slc_step_state *step)
{
    const slc_unit_state *unit = &rt->units[u];
    slc_looking l;
    slc_looking_begin(&l, &rt->updates, step->ahead->words, unit->gradient_dtype,
                      rt->config.clip > 0 ? SLC_INSPECT_OWN_NORM : SLC_INSPECT_FINITE);
    sluice_status status = SLUICE_OK;
    for (uint32_t p = 0; !status && p < unit->param_count; p++) {
        const sluice_param *param = unit->params[p];
        if (slc_left_out_param(step, param)) continue;
        const void *gradient = slc_element(unit->gradient, unit->gradient_dtype, param->first);
        status = slc_looking_add(&l, &(slc_step_words_range){param->count, gradient, param->number});
    }
    return status ? status : slc_looking_end(&l);
}

/* Inspects this rank's own gradients. The norm's last bin counts values that are not finite. */
static sluice_status inspect_own(sluice_runtime *rt, uint32_t u, slc_step_state *step)
{
    const slc_unit_state *unit = &rt->units[u];
    int64_t *bad = &step->own_bins[SLC_NORM_BINS - 1];
    if (step->ahead) return inspect_own_ahead(rt, u, step);
    for (uint32_t p = 0; p < unit->param_count; p++) {
        const sluice_param *param = unit->params[p];
        if (slc_left_out_param(step, param)) continue;
        const void *gradient = slc_element(unit->gradient, unit->gradient_dtype, param->first);
        int64_t before = *bad;
        bool finite = true;
        sluice_status status =
            rt->config.clip > 0
                ? slc_norm_add(&rt->updates, unit->gradient_dtype, param->count, gradient, step->own_bins)
                : slc_all_finite(&rt->updates, unit->gradient_dtype, param->count, gradient, &finite);
        if (!status) status = slc_stream_synchronize(&rt->updates);
        if (status) return status;
        if (!finite || *bad != before) note_bad(step, param->number);
    }
    return SLUICE_OK;
}

sluice_status slc_onebit_inspect(sluice_runtime *rt, uint32_t u, slc_step_state *step)
{
    /* Averaged gradients are inspected after their reduction. */
    return step->mode == SLC_STEP_AVERAGE ? SLUICE_OK : inspect_own(rt, u, step);
}

sluice_status slc_onebit_compress(sluice_runtime *rt, uint32_t u, slc_step_state *step)
{
    bool agreed = slc_waits_for_agreement(&rt->job, SLC_ONEBIT);
    if ((!step->ahead && step->skip) || step->mode == SLC_STEP_AVERAGE) return SLUICE_OK;
    if (step->mode == SLC_STEP_LOCAL) return agreed ? SLUICE_OK : inspect_own(rt, u, step);
    slc_onebit_unit unit = describe_unit(rt, u, step);
    uint32_t bad = SLC_NONE, *found = !step->ahead ? &bad : agreed ? NULL : &step->ahead->words->first_bad;
    sluice_status status = rt->onebit.compress(rt->onebit.context, &unit, found);
    if (!status && !step->ahead) status = slc_stream_synchronize(&rt->updates);
    /* After the agreement it is too late to note a tensor that is not finite. Its packets say so instead, and the
     * update finds it on every rank. */
    if (bad != SLC_NONE && !agreed) note_bad(step, bad);
    return slc_error_context(status, "optimizer %s, unit \"%s\"", rt->optimizer.name, rt->job.units[u].name);
}

slc_op slc_onebit_exchange(const sluice_runtime *rt, uint32_t u, const slc_step_state *step)
{
    const slc_onebit *onebit = rt->units[u].onebit;
    const slc_onebit_tensors *kept = kept_tensors(rt, u, step);
    slc_op op = slc_exchange_op(&kept->group, onebit->packets, onebit->results, kept->servers);
    op.skip = &step->exchange_off;
    op.words = words_of(rt, step);
    return op;
}

/* Updates a unit from averaged gradients, as units of other strategies are updated. */
static sluice_status update_averaged(const sluice_runtime *rt, const slc_onebit_unit *unit, const slc_step_state *step)
{
    const sluice_optimizer *optimizer = &rt->optimizer;
    const uint32_t most = step->ahead && optimizer->update_many ? SLUICE_OPTIMIZER_RANGES_MAX : 1;
    sluice_status status = SLUICE_OK;
    for (uint32_t t = 0, count; !status && t < unit->tensor_count; t += count) {
        count = 1; /* what one call gets has one step */
        while (count < most && t + count < unit->tensor_count && unit->tensors[t + count].step == unit->tensors[t].step)
            count++;
        status = most > 1 ? optimizer->update_many(&unit->tensors[t], count, optimizer->context)
                          : optimizer->update(&unit->tensors[t], optimizer->context);
    }
    return status;
}

sluice_status slc_onebit_update(sluice_runtime *rt, uint32_t u, const slc_step_state *step)
{
    slc_onebit_unit unit = describe_unit(rt, u, step);
    void *context = rt->onebit.context;
    sluice_status status = SLUICE_OK;
    switch (step->mode) {
    case SLC_STEP_AVERAGE: status = update_averaged(rt, &unit, step); break;
    case SLC_STEP_EXCHANGE: status = rt->onebit.apply(context, &unit, &rt->compression.bad[SLC_BAD_EXCHANGE]); break;
    case SLC_STEP_LOCAL: status = rt->onebit.local(context, &unit, &rt->compression.bad[SLC_BAD_LOCAL]); break;
    }
    if (!status && !step->ahead) status = slc_stream_synchronize(&rt->updates);
    return slc_error_context(status, "optimizer %s, unit \"%s\"", rt->optimizer.name, rt->job.units[u].name);
}
