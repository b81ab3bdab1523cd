/* A model's life and its micro-batch: every layer's forward in order, then every layer's backward in reverse.
 * golden_models_test.c covers this file. */
#include "lib/model/model.h"

#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/model/batch/micro_batch.h"
#include "lib/model/blocks/kept_blocks.h"
#include "lib/model/blocks/observation.h"
#include "lib/model/cache.h"
#include "lib/model/layers/layer_slots.h"
#include "lib/model/options_check.h"
#include "lib/model/registration.h"
#include "lib/model/state.h"

#include <math.h>
#include <stdlib.h>

/* ---- Life ---- */

sluice_status sluice_model_create(sluice_runtime *rt, const sluice_model_config *given_config,
                                  const sluice_model_options *given_options, sluice_model **out)
{
    sluice_model_config full_config, *config = &full_config;
    sluice_model_options full_options = SLUICE_INIT(sluice_model_options), *options = &full_options;
    if (!rt || !given_options || !out)
        return slc_model_lacks("model_create", !rt ? "runtime" : out ? "options" : "place for the result");
    sluice_status status = slc_model_config_take(given_config, config);
    if (!status) status = sluice_model_config_check(config);
    if (!status) status = slc_sized_read("sluice_model_options", NULL, given_options, sizeof *options, options);
    if (!status) status = slc_model_options_check(rt, config, options);
    if (!status && options->scales_branches) status = slc_kept_blocks_check_family(config);
    if (status) return status;
    sluice_model *m = calloc(1, sizeof *m);
    if (!m) return slc_error(SLUICE_ERR_MEMORY, "model");
    m->rt = rt;
    m->stream = sluice_runtime_stream(rt);
    m->apart = slc_device_runs_ahead(m->stream->device);
    m->config = *config;
    m->batch = options->batch;
    m->length = options->length;
    m->length_step = options->length_step;
    m->length_least = options->length_least ? options->length_least : options->length_step;
    m->folds = options->folds;
    for (uint64_t s = 0; s < options->shape_count; s++) m->shape_lengths[m->shape_count++] = options->shape_lengths[s];
    m->dropout_seed = options->dropout_seed;
    m->evaluates_only = options->evaluates_only || options->cache_tokens;
    m->scales_branches = options->scales_branches;
    m->cache.room = options->cache_tokens;
    m->label_smoothing = (float)options->label_smoothing;
    m->in_step = options->micro_batches;
    m->observation.wanted = options->observe && !m->evaluates_only;
    m->step = UINT64_MAX; /* no step has begun */
    slc_model_set_shape(m, options->batch, options->length);
    m->layer_count = config->layers + 2;
    m->layers = calloc(m->layer_count, sizeof *m->layers);
    if (!m->layers) {
        status = slc_error(SLUICE_ERR_MEMORY, "a model of %u layers", config->layers);
        goto destroy;
    }
    status = slc_model_register(m, options->precision);
    if (!status) status = slc_micro_batch_create(m);
    if (!status) status = slc_model_cache_create(m);
    if (!status) status = slc_observation_create(m);
    if (status) goto destroy;
    *out = m;
    return SLUICE_OK;

destroy:
    sluice_model_destroy(m);
    return status;
}

void sluice_model_destroy(sluice_model *m)
{
    if (!m) return;
    slc_pinned_destroy(&m->logits_piece);
    slc_pinned_destroy(&m->cache.memory);
    slc_observation_destroy(m);
    slc_micro_batch_destroy(m);
    free(m->layers);
    free(m->new_params);
    free(m);
}

const sluice_model_config *sluice_model_get_config(const sluice_model *m)
{
    return m ? &m->config : NULL;
}

void sluice_model_check(sluice_model *m, sluice_status (*check)(void *context), void *context)
{
    if (!m) return;
    m->check = check;
    m->check_context = context;
}

/* ---- Calls ---- */

sluice_status slc_model_lacks(const char *call, const char *what)
{
    return slc_error(SLUICE_ERR_ARGUMENT, "%s: no %s given", call, what);
}

/* Tells the runtime of a device that has failed, which any call may notice: only the runtime knows how far the device
 * had come. */
static sluice_status tell_runtime(sluice_model *m, sluice_status status)
{
    const bool device_failed = status == SLUICE_ERR_SYSTEM && slc_device_runs_ahead(m->stream->device);
    return device_failed ? sluice_runtime_fail(m->rt, status, NULL) : status;
}

sluice_status sluice_model_forward(sluice_model *m, const sluice_batch *given)
{
    sluice_batch batch = SLUICE_INIT(sluice_batch);
    if (!m || !given) return slc_model_lacks("model_forward", m ? "micro-batch" : "model");
    sluice_status status = slc_sized_read("sluice_batch", NULL, given, sizeof batch, &batch);
    if (!status && m->evaluates_only)
        status =
            slc_error(SLUICE_ERR_UNSUPPORTED, "model_forward: the model was made with evaluates_only or a cache; it "
                                              "cannot be trained");
    if (!status && !batch.targets) status = slc_error(SLUICE_ERR_ARGUMENT, "model_forward: training needs targets");
    if (!status) status = slc_kept_blocks_check(m);
    if (!status) status = slc_micro_batch_check(m, &batch);
    if (!status) status = slc_micro_batch_check_shape(m, &batch);
    if (status) return status;
    status = slc_micro_batch_take(m, &batch); /* which refuses one that comes at another time */
    if (status) return tell_runtime(m, status);
    slc_micro_batch_pick(m);
    status = slc_micro_batch_expect_launches(m, true);
    if (status) return tell_runtime(m, status);
    uint64_t step = sluice_runtime_step(m->rt);
    if (step != m->step || m->losses.told) slc_losses_forget(m);
    m->micro_batch = step == m->step ? m->micro_batch + 1 : 0;
    m->step = step;
    m->has_loss = false;
    for (uint32_t i = 0; !status && i < m->layer_count; i++)
        if (sluice_layer_runs(m->layers[i].layer)) status = slc_layer_forward(m, i, true);
    m->in = (slc_batch_arrays){0};
    return tell_runtime(m, status);
}

/* Runs every layer's backward. The head's comes first; after it no copy to or from the host is queued any more. */
sluice_status sluice_model_backward(sluice_model *m, double *loss)
{
    if (!m) return slc_model_lacks("model_backward", "model");
    const uint32_t head = m->layer_count - 1;
    sluice_status status = slc_layer_backward(m, head);
    if (!status) status = slc_micro_batch_queued(m);
    for (uint32_t i = head; !status && i-- > 0;)
        if (sluice_layer_runs(m->layers[i].layer)) status = slc_layer_backward(m, i);
    if (status) return tell_runtime(m, status);
    m->memory->owes = true;
    m->has_loss = true;
    if (!loss) return SLUICE_OK;
    status = slc_losses_collect(m);
    *loss = m->losses.last;
    return tell_runtime(m, status);
}

/* ---- A whole step ---- */

static sluice_status check_batches(const sluice_model *m, const sluice_batch *batches)
{
    if (m->evaluates_only || !m->in_step)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "model_step: the model was made %s; set sluice_model_options.micro_batches",
                         m->evaluates_only ? "with evaluates_only or a cache" : "for one micro-batch at a time");
    for (uint32_t i = 0; i < m->in_step; i++) {
        sluice_status status = batches[i].targets
                                   ? slc_micro_batch_check(m, &batches[i])
                                   : slc_error(SLUICE_ERR_ARGUMENT, "model_step: training needs targets");
        if (!status) status = slc_micro_batch_check_shape(m, &batches[i]);
        if (status) return slc_error_context(status, "micro-batch %u", i);
    }
    return SLUICE_OK;
}

static uint32_t number_of(const sluice_model *m, const sluice_layer *layer)
{
    uint32_t number = 0;
    while (m->layers[number].layer != layer) number++;
    return number;
}

/* Makes the task's micro-batch the current one. Without a pipeline it is taken when its first slot comes. The stages of
 * a pipeline tell each other of rows, so that all micro-batches are taken at once. */
static sluice_status turn_to(sluice_model *m, const sluice_batch *batches, const sluice_task *task, uint32_t *taken)
{
    const bool alone = (int)sluice_runtime_replicas(m->rt) == sluice_world_size(sluice_runtime_world(m->rt));
    const uint32_t last = alone ? task->micro_batch : m->in_step - 1;
    sluice_status status = SLUICE_OK;
    for (; !status && *taken <= last; ++*taken) {
        if (!m->apart) m->memory = &m->memories[(*taken + m->memory_count - 1) % m->memory_count];
        status = slc_micro_batch_take(m, &batches[*taken]);
        if (!status) slc_micro_batch_pick(m);
        if (!status) status = slc_micro_batch_expect_launches(m, true);
    }
    if (!status && !m->apart) slc_micro_batch_return_to(m, task->micro_batch);
    m->micro_batch = task->micro_batch;
    return status;
}

static sluice_status run_task(sluice_model *m, const sluice_task *task)
{
    const uint32_t number = number_of(m, task->layer);
    if (task->kind == SLUICE_TASK_FORWARD) return slc_layer_forward(m, number, true);
    sluice_status status = slc_layer_backward(m, number); /* it recomputes where it must */
    if (status || number + 1 < m->layer_count) return status;
    m->memory->owes = m->has_loss = true;
    return slc_micro_batch_queued(m);
}

sluice_status sluice_model_step(sluice_model *m, const sluice_batch *batches, bool *here)
{
    if (!m || !batches || !here)
        return slc_model_lacks("model_step", !m ? "model" : here ? "micro-batches" : "place for the result");
    sluice_task task = SLUICE_INIT(sluice_task);
    uint32_t taken = 0;
    sluice_status status = check_batches(m, batches);
    if (status) return status;
    slc_losses_forget(m);
    m->step = sluice_runtime_step(m->rt);
    m->has_loss = false;
    *here = sluice_layer_here(m->layers[m->layer_count - 1].layer);
    status = slc_kept_blocks_check(m);
    if (!status) status = sluice_step_next(m->rt, &task);
    while (!status && task.kind != SLUICE_TASK_END) {
        status = turn_to(m, batches, &task, &taken);
        if (!status) status = run_task(m, &task);
        if (!status) status = sluice_step_next(m->rt, &task);
    }
    m->in = (slc_batch_arrays){0};
    return tell_runtime(m, status);
}

sluice_status sluice_model_loss(sluice_model *m, double *loss)
{
    if (!m || !loss) return slc_model_lacks("model_loss", m ? "place for the result" : "model");
    if (!m->has_loss)
        return slc_error(SLUICE_ERR_ORDER, "model_loss: the last micro-batch has no loss yet; call it after "
                                           "sluice_model_backward, before the next sluice_model_forward");
    sluice_status status = slc_losses_collect(m);
    if (status) return tell_runtime(m, status);
    m->losses.told = true;
    *loss = m->losses.sum / (double)m->losses.count;
    return SLUICE_OK;
}

sluice_status sluice_model_evaluate(sluice_model *m, const sluice_batch *given, double *loss, float *logits)
{
    sluice_batch batch = SLUICE_INIT(sluice_batch);
    if (!m || !given || !loss)
        return slc_model_lacks("model_evaluate", !m ? "model" : given ? "place for the result" : "micro-batch");
    sluice_status status = slc_sized_read("sluice_batch", NULL, given, sizeof batch, &batch);
    if (!status && m->cache.room)
        status = slc_error(SLUICE_ERR_UNSUPPORTED, "model_evaluate: the model was made with a cache; call "
                                                   "sluice_model_extend");
    if (!status) status = slc_micro_batch_check(m, &batch);
    if (status) return status;
    m->host_logits = logits;
    status = sluice_evaluate_begin(m->rt);
    if (!status) status = slc_micro_batch_take(m, &batch);
    if (!status) status = slc_micro_batch_expect_launches(m, false);
    for (uint32_t i = 0; !status && i < m->layer_count; i++)
        if (sluice_layer_here(m->layers[i].layer)) status = slc_layer_forward(m, i, false);
    if (!status) status = slc_micro_batch_queued(m);
    if (!status) status = sluice_evaluate_end(m->rt);
    m->host_logits = NULL;
    m->in = (slc_batch_arrays){0};
    if (!status) status = slc_micro_batch_wait(m->memory);
    if (status) return tell_runtime(m, status);
    const bool has_loss = sluice_layer_here(m->layers[m->layer_count - 1].layer) && batch.targets &&
                          (m->memory->target_count || batch.loss_divisor > 0);
    *loss = has_loss ? slc_micro_batch_loss(m->memory) : NAN;
    return SLUICE_OK;
}

/* ---- With a cache ---- */

static sluice_status check_extension(const sluice_model *m, const int32_t *tokens, uint32_t count)
{
    const slc_model_cache *cache = &m->cache;
    if (!cache->room)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "model_extend: the model has no cache; set "
                                                 "sluice_model_options.cache_tokens");
    if (!count || !tokens) return slc_error(SLUICE_ERR_ARGUMENT, "model_extend: at least one token is needed");
    if (count > cache->room - cache->tokens)
        return slc_error(SLUICE_ERR_ARGUMENT, "model_extend: %u tokens after %u are more than the cache's %u", count,
                         cache->tokens, cache->room);
    for (uint32_t i = 0; i < count; i++)
        if ((uint32_t)tokens[i] >= m->config.vocabulary)
            return slc_error(SLUICE_ERR_ARGUMENT, "model_extend: token %d at %u is outside the %u that there are",
                             tokens[i], i, m->config.vocabulary);
    return SLUICE_OK;
}

static sluice_status run_pass(sluice_model *m, const int32_t *tokens, uint32_t count, float *logits)
{
    m->rows = m->tokens = count;
    m->in = (slc_batch_arrays){.places = tokens};
    m->masked = false;
    m->host_logits = logits;
    sluice_status status = sluice_evaluate_begin(m->rt);
    for (uint32_t i = 0; !status && i < m->layer_count; i++) status = slc_layer_forward(m, i, false);
    if (!status) status = sluice_evaluate_end(m->rt);
    m->in = (slc_batch_arrays){0};
    m->host_logits = NULL;
    return status;
}

sluice_status sluice_model_extend(sluice_model *m, const int32_t *tokens, uint32_t count, float *logits)
{
    if (!m) return slc_model_lacks("model_extend", "model");
    const uint32_t before = m->cache.tokens;
    sluice_status status = check_extension(m, tokens, count);
    for (uint32_t done = 0, pass; !status && done < count; done += pass) {
        pass = slc_model_pass(m, count - done);
        status = run_pass(m, tokens + done, pass, done + pass == count ? logits : NULL);
        if (!status) m->cache.tokens += pass;
    }
    if (status) m->cache.tokens = before;
    return status;
}

uint32_t sluice_model_cached(const sluice_model *m)
{
    return m ? m->cache.tokens : 0;
}

sluice_status sluice_model_rewind(sluice_model *m, uint32_t tokens)
{
    if (!m) return slc_model_lacks("model_rewind", "model");
    if (!m->cache.room) return slc_error(SLUICE_ERR_UNSUPPORTED, "model_rewind: the model has no cache");
    if (tokens > m->cache.tokens)
        return slc_error(SLUICE_ERR_ARGUMENT, "model_rewind: the cache holds %u tokens, not %u", m->cache.tokens,
                         tokens);
    m->cache.tokens = tokens;
    return SLUICE_OK;
}
