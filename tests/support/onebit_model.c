/* Gradients depend on the values and on rank, step and micro-batch; some elements never have one. */
#include "tests/support/onebit_model.h"

#include "lib/base/element.h"
#include "tests/support/draw.h"
#include "tests/support/scale.h"

#include <math.h>

int model_world(const trial *t, int rank, int size, model *m)
{
    sluice_world_config config;
    *m = (model){.t = t, .rank = rank, .size = size};
    RANK_CHECK(!sluice_world_config_init(&config));
    config.direct = !t->messages;
    RANK_CHECK(!sluice_world_create(&config, &m->world));
    return 0;
}

sluice_config model_config(const trial *t)
{
    sluice_config config;
    sluice_config_init(&config);
    if (t->device) config.device = t->device;
    if (test_brief()) config.steps = 20; /* as in engine_model.c */
    config.optimizer_name = t->optimizer ? t->optimizer : "onebit_adam";
    config.onebit.compat = t->compat;
    config.strategy = t->strategy ? t->strategy : "onebit";
    config.schedule = t->schedule ? t->schedule : "serial";
    config.fuse = t->fuse ? t->fuse : "off";
    config.micro_batches = t->micro_batches ? t->micro_batches : 1;
    config.block_bytes = t->block ? t->block : 2048;
    config.budget_bytes = t->budget;
    config.budget_of_dp = t->budget_of_dp;
    config.clip = t->clip;
    config.nan = t->skip_nan ? SLUICE_NAN_SKIP : SLUICE_NAN_STOP;
    config.wire = t->fp32_wire ? SLUICE_FP32 : SLUICE_BF16;
    config.onebit.freeze_step = t->freeze_step;
    if (t->freeze_change > 0) config.onebit.freeze_change = t->freeze_change;
    if (t->beta2 > 0) config.adamw.beta2 = config.lamb.beta2 = t->beta2;
    if (t->var_freeze_step) config.onebit.var_freeze_step = t->var_freeze_step;
    if (t->var_update_scaler) config.onebit.var_update_scaler = t->var_update_scaler;
    if (t->local_step_scaler) config.onebit.local_step_scaler = t->local_step_scaler;
    if (t->local_step_clipper) config.onebit.local_step_clipper = t->local_step_clipper;
    return config;
}

int model_layers(model *m, uint64_t *random)
{
    const trial *t = m->t;
    for (uint32_t l = 0; l < LAYERS; l++) {
        char name[8];
        snprintf(name, sizeof name, "l%u", l);
        RANK_CHECK(!sluice_layer_add(m->rt, name, &m->layers[l]));
        RANK_CHECK(!sluice_layer_precision(m->layers[l], t->bf16_layers >> l & 1 ? SLUICE_BF16 : SLUICE_FP32));
        if (t->onebit_layers >> l & 1)
            RANK_CHECK(!sluice_layer_strategy(m->layers[l], "onebit"));
        else if (t->other)
            RANK_CHECK(!sluice_layer_strategy(m->layers[l], t->other));
        RANK_CHECK(!sluice_activation_add(m->layers[l],
                                          &SLUICE_INIT(sluice_activation_desc, .name = "a",
                                                       .bytes = 64 + draw(random, 5000), .last = SLUICE_BACKWARD),
                                          &m->activations[l]));
        sluice_param *frozen;
        if (t->frozen)
            RANK_CHECK(!sluice_param_add(
                m->layers[l], &SLUICE_INIT(sluice_param_desc, .name = "f", .count = 100 + l, .frozen = true), &frozen));
        for (uint64_t k = 1 + draw(random, 3); k > 0; k--) {
            static const uint64_t counts[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 500, 777, COUNT_MAX};
            known *p = &m->params[m->param_count++];
            char label[8];
            snprintf(label, sizeof label, "p%u", (unsigned)k);
            *p = (known){.layer = l, .count = counts[draw(random, 12)], .no_decay = draw(random, 2)};
            p->dead_from = draw(random, p->count + 1);
            p->dead_end = p->dead_from + draw(random, p->count - p->dead_from + 1) / 2;
            RANK_CHECK(!sluice_param_add(
                m->layers[l],
                &SLUICE_INIT(sluice_param_desc, .name = label, .count = p->count, .no_decay = p->no_decay), &p->param));
        }
    }
    return 0;
}

int model_build_with(model *m, const sluice_config *config)
{
    uint64_t random = m->t->seed;
    m->param_count = 0;
    m->calls = 0;
    RANK_CHECK(!(m->create ? m->create : sluice_runtime_create)(m->world, config, &m->rt));
    if (model_layers(m, &random)) return 1;
    RANK_CHECK(!sluice_runtime_commit(m->rt));
    slc_device *device = sluice_runtime_stream(m->rt)->device;
    if (slc_device_runs_ahead(device))
        RANK_CHECK(!slc_pinned_create(device, 2 * COUNT_MAX * sizeof(float), &m->copies));
    for (uint32_t p = 0; p < m->param_count; p++) {
        float values[COUNT_MAX];
        for (uint64_t i = 0; i < m->params[p].count; i++) values[i] = noise(m->t->seed + p, i);
        RANK_CHECK(!sluice_param_write(m->params[p].param, 0, m->params[p].count, values));
    }
    return 0;
}

int model_build(model *m)
{
    const sluice_config config = model_config(m->t);
    return model_build_with(m, &config);
}

/* An element that has gradients. */
static uint64_t live_element(const known *k)
{
    return k->dead_from ? 0 : k->dead_end;
}

float model_added(const model *m, uint32_t p, uint64_t i, uint64_t call, uint32_t batch, int rank, float value)
{
    const known *k = &m->params[p];
    if (i >= k->dead_from && i < k->dead_end) return 0;
    if (m->huge_from && call >= m->huge_from && !p && i == live_element(k)) return 3e38F;
    if (call == m->bad_call && rank == m->bad_rank && p == m->bad_param && i == live_element(k)) return INFINITY;
    return value * 0.01f + noise((call * 8 + batch) * 64 + (uint64_t)rank * 16 + p, i);
}

float model_rounded(sluice_dtype dtype, float x)
{
    return dtype == SLUICE_BF16 ? sluice_bf16_to_float(sluice_bf16_from_float(x)) : x;
}

/* Gives what lies at `data` to the host; on a GPU it is a copy, one of two. */
static void *seen(model *m, const void *data, size_t bytes, int which)
{
    sluice_stream *stream = sluice_runtime_stream(m->rt);
    if (!m->copies.base) return (void *)(uintptr_t)data;
    void *copy = (float *)m->copies.base + which * COUNT_MAX;
    bool copied = !slc_copy(stream, copy, data, bytes) && !slc_stream_synchronize(stream);
    return copied ? copy : NULL;
}

/* Writes what the host has changed there back. */
static int write_back(model *m, void *data, const void *changed, size_t bytes)
{
    sluice_stream *stream = sluice_runtime_stream(m->rt);
    RANK_CHECK(data == changed || (!slc_copy(stream, data, changed, bytes) && !slc_stream_synchronize(stream)));
    return 0;
}

static int model_forward(model *m, uint32_t layer, uint32_t batch)
{
    const uint64_t mark = m->calls * 8 + batch + layer;
    RANK_CHECK(!sluice_forward_begin(m->layers[layer]));
    void *data = sluice_activation_data(m->activations[layer]), *own = seen(m, data, sizeof mark, 0);
    RANK_CHECK(own);
    memcpy(own, &mark, sizeof mark);
    if (write_back(m, data, own, sizeof mark)) return 1;
    RANK_CHECK(!sluice_forward_end(m->layers[layer]));
    return 0;
}

static int model_backward(model *m, uint32_t layer, uint32_t batch)
{
    RANK_CHECK(!sluice_backward_begin(m->layers[layer]));
    const uint64_t *mark = seen(m, sluice_activation_data(m->activations[layer]), sizeof *mark, 0);
    RANK_CHECK(mark && *mark == m->calls * 8 + batch + layer);
    for (uint32_t p = 0; p < m->param_count; p++) {
        known *k = &m->params[p];
        if (k->layer != layer) continue;
        sluice_dtype dtype = sluice_param_dtype(k->param), narrow = sluice_param_gradient_dtype(k->param);
        const size_t bytes = k->count * sluice_dtype_bytes(narrow);
        const void *value = sluice_param_value(k->param);
        bool fresh = false;
        void *place = sluice_param_gradient_fresh(k->param, &fresh), *gradient;
        RANK_CHECK(value && place);
        value = seen(m, value, k->count * sluice_dtype_bytes(dtype), 0), gradient = seen(m, place, bytes, 1);
        RANK_CHECK(value && gradient);
        for (uint64_t i = 0; i < k->count; i++) {
            float sum = fresh ? 0 : slc_element_value(gradient, narrow, i);
            sum += model_added(m, p, i, m->calls, batch, m->rank, slc_element_value(value, dtype, i));
            if (narrow == SLUICE_BF16)
                ((uint16_t *)gradient)[i] = sluice_bf16_from_float(sum);
            else
                ((float *)gradient)[i] = sum;
        }
        if (write_back(m, place, gradient, bytes)) return 1;
    }
    RANK_CHECK(!sluice_backward_end(m->layers[layer]));
    return 0;
}

bool model_leaves_out(const trial *t, uint64_t call, uint32_t layer)
{
    return t->leaves_out && layer && layer + 1 < LAYERS && mix(t->seed * 1000 + call * LAYERS + layer) % 5 < 2;
}

int model_compute(model *m)
{
    const sluice_layer *left_out[LAYERS];
    m->calls++;
    sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.01, .gradient_scale = m->t->scale,
                                              .exchange = m->exchange, .layers_left_out = left_out);
    for (uint32_t l = 0; l < LAYERS; l++)
        if (m->left_out >> l & 1 || (!m->exchange && model_leaves_out(m->t, m->calls, l)))
            left_out[options.layer_left_out_count++] = m->layers[l];
    RANK_CHECK(!sluice_step_begin(m->rt, &options));
    uint32_t batches = m->t->micro_batches ? m->t->micro_batches : 1;
    for (uint32_t b = 0; b < batches; b++) {
        for (uint32_t l = 0; l < LAYERS; l++)
            if (sluice_layer_runs(m->layers[l]) && model_forward(m, l, b)) return 1;
        for (uint32_t l = LAYERS; l-- > 0;)
            if (sluice_layer_runs(m->layers[l]) && model_backward(m, l, b)) return 1;
    }
    return 0;
}

int model_step(model *m, sluice_step_report *report)
{
    if (model_compute(m)) return 1;
    RANK_CHECK(!sluice_step_end(m->rt, report));
    return 0;
}

bool model_is_onebit(const known *k)
{
    return sluice_param_state_count(k->param, "error_worker") > 0;
}

int model_hash(model *m, bool states, uint64_t *hash)
{
    static const char *const names[] = {"exp_avg", "exp_avg_sq"};
    float x[COUNT_MAX];
    *hash = 1;
    for (uint32_t p = 0; p < m->param_count; p++)
        for (int s = -1; s < (states ? 2 : 0); s++) {
            known *k = &m->params[p];
            RANK_CHECK(!(s < 0 ? sluice_param_read(k->param, 0, k->count, x)
                               : sluice_param_state_read(k->param, names[s], 0, k->count, x)));
            for (uint64_t i = 0; i < k->count; i++) {
                uint32_t bits;
                memcpy(&bits, &x[i], 4);
                *hash = mix(*hash ^ bits);
            }
        }
    return 0;
}

int model_replicas_equal(model *m, uint64_t *hash)
{
    uint64_t all[RANKS_MAX];
    if (model_hash(m, true, hash)) return 1;
    RANK_CHECK(!sluice_world_all_gather(m->world, hash, sizeof *hash, all));
    for (int r = 0; r < m->size; r++) RANK_CHECK(all[r] == *hash);
    return 0;
}

int model_peak_is_planned(model *m)
{
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    RANK_CHECK(!sluice_runtime_memory(m->rt, &memory));
    RANK_CHECK(memory.peak_bytes == memory.planned_bytes);
    RANK_CHECK(!memory.budget_bytes || memory.peak_bytes <= memory.budget_bytes);
    return 0;
}

int model_beside_any_strategy(int rank, int size, const trial *of,
                              int (*weights_of)(const trial *t, model *m, uint64_t *hash))
{
    static const char *const others[] = {"dp", "oss", "sdp", "fsdp"};
    trial t = *of;
    model m;
    uint64_t expected = 0, hash;
    if (model_world(of, rank, size, &m)) return 1;
    for (int i = 0; i < 4; i++) {
        t.other = others[i];
        if (weights_of(&t, &m, &hash)) return 1;
        RANK_CHECK(!i || hash == expected);
        expected = hash;
    }
    sluice_world_destroy(m.world);
    return 0;
}

void model_end(model *m)
{
    slc_pinned_destroy(&m->copies);
    sluice_runtime_destroy(m->rt);
    m->rt = NULL;
}

int model_leave(model *m)
{
    model_end(m);
    sluice_world_destroy(m->world);
    return 0;
}
