/* Measures overhead. Each round trains once under the engine and once by hand, and rounds alternate in which comes
 * first. Each run has its own memory: a step to warm up, then the steps that count.
 * tests/command/measure/overhead_test.sh covers this file. */
#include "bench/lab/overhead/measure.h"

#include "bench/lab/overhead/bare.h"
#include "lib/base/clock.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "lib/engine/engine.h"
#include "lib/engine/measure/recording.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENGINE, BARE, SIDES };
enum { WARM_UP = 1 };
static const double learning_rate = 1e-3;

typedef struct {
    double wall_s, caller_s, thread_s, work_s; /* times of a step; work_s, the time of compute and optimizer kernels, is
                                                  not in caller_s and thread_s */
} sample;

typedef struct {
    sluice_runtime *rt;
    sluice_layer **layers;
    sluice_param **params;
} engine_run;

typedef struct {
    sluice_world *world;
    const slc_overhead_config *config;
    slc_overhead_model model;
    slc_overhead_optimizer optimizer;
    clockid_t thread_clock; /* CPU time of the communication thread */
    engine_run planned;     /* keeps the job and the plan alive */
    slc_recorded made;
    sample *samples[SIDES]; /* [rounds] */
    uint64_t hash;          /* hash of the engine's weights; 0: not known yet */
} measurement;

/* ---- The model under the engine ---- */

static sluice_status add_layer(measurement *m, engine_run *run, uint32_t l)
{
    char name[32];
    snprintf(name, sizeof name, "layer.%u", l);
    const sluice_param_desc desc = SLUICE_INIT(sluice_param_desc, .name = "w", .count = m->model.elements);
    const sluice_activation_desc activation = SLUICE_INIT(sluice_activation_desc, .name = "out", .bytes = 4096);
    sluice_activation *unused;
    sluice_status status = sluice_layer_add(run->rt, name, &run->layers[l]);
    if (!status) status = sluice_param_add(run->layers[l], &desc, &run->params[l]);
    if (!status) status = sluice_activation_add(run->layers[l], &activation, &unused);
    return status;
}

static void close_engine(engine_run *run)
{
    sluice_runtime_destroy(run->rt);
    free(run->layers);
    free(run->params);
    *run = (engine_run){0};
}

static sluice_status open_engine(measurement *m, engine_run *run)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "dp";
    config.schedule = "serial";
    config.optimizer = &m->optimizer.optimizer;
    config.updates = SLUICE_UPDATES_COMMUNICATION; /* as by hand */
    config.block_bytes = m->model.block_bytes;
    *run = (engine_run){.layers = calloc(m->model.layers, sizeof *run->layers),
                        .params = calloc(m->model.layers, sizeof *run->params)};
    if (!run->layers || !run->params) return slc_error(SLUICE_ERR_MEMORY, "%u layers", m->model.layers);
    sluice_status status = sluice_runtime_create(m->world, &config, &run->rt);
    for (uint32_t l = 0; !status && l < m->model.layers; l++) status = add_layer(m, run, l);
    return status ? status : sluice_runtime_commit(run->rt);
}

static sluice_status forward(measurement *m, const engine_run *run, uint32_t l)
{
    sluice_status status = sluice_forward_begin(run->layers[l]);
    if (status) return status;
    slc_overhead_forward(&m->model, sluice_param_value(run->params[l]));
    return sluice_forward_end(run->layers[l]);
}

static sluice_status backward(measurement *m, const engine_run *run, uint32_t l)
{
    bool fresh;
    sluice_status status = sluice_backward_begin(run->layers[l]);
    if (status) return status;
    const float *value = sluice_param_value(run->params[l]);
    slc_overhead_backward(&m->model, l, value, sluice_param_gradient_fresh(run->params[l], &fresh));
    return sluice_backward_end(run->layers[l]);
}

static sluice_status engine_step(measurement *m, const engine_run *run)
{
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = learning_rate);
    uint32_t layers = m->model.layers;
    sluice_status status = sluice_step_begin(run->rt, &options);
    for (uint32_t l = 0; !status && l < layers; l++) status = forward(m, run, l);
    for (uint32_t l = layers; !status && l-- > 0;) status = backward(m, run, l);
    return status ? status : sluice_step_end(run->rt, NULL);
}

/* Computes the hash of the owned weights, as slc_bare_hash does. */
static sluice_status engine_hash(measurement *m, const engine_run *run, uint64_t *hash)
{
    const slc_job *job = m->made.job;
    float *values = malloc(m->model.elements * sizeof *values);
    if (!values) return slc_error(SLUICE_ERR_MEMORY, "values");
    sluice_status status = SLUICE_OK;
    *hash = SLC_FNV_START;
    for (uint32_t l = 0; !status && l < m->model.layers; l++) {
        const slc_unit *unit = &job->units[l];
        status = sluice_param_read(run->params[l], 0, m->model.elements, values);
        for (uint64_t first = 0; !status && first < unit->elements; first += unit->block_elements) {
            uint64_t left = unit->elements - first, length = left < unit->block_elements ? left : unit->block_elements;
            uint64_t part = length / job->world;
            *hash = slc_fnv(*hash, values + first + (uint64_t)m->model.rank * part, part * sizeof *values);
        }
    }
    free(values);
    return status;
}

/* ---- Clocks ---- */

static sluice_status find_clock(void *argument)
{
    clockid_t *clock = argument;
    if (pthread_getcpuclockid(pthread_self(), clock)) return slc_error(SLUICE_ERR_SYSTEM, "a thread's clock");
    return SLUICE_OK;
}

static sluice_status find_thread_clock(measurement *m)
{
    slc_comm *comm = slc_world_comm(m->world);
    const slc_op op = {.kind = SLC_CALL, .call = find_clock, .context = &m->thread_clock, .what = "clock"};
    uint32_t index = 0;
    sluice_status status = slc_comm_submit(comm, &op, 1, &index);
    return status ? status : slc_comm_wait(comm, index + 1);
}

typedef struct {
    uint64_t wall, caller, thread, compute, update;
} clocks;

static clocks read_clocks(const measurement *m)
{
    return (clocks){slc_clock_ns(), slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID), slc_clock_read_ns(m->thread_clock),
                    m->model.compute_ns, m->optimizer.update_ns};
}

static sample make_sample(const clocks *from, const clocks *to, uint32_t steps)
{
    double compute = slc_seconds(to->compute - from->compute), update = slc_seconds(to->update - from->update);
    return (sample){.wall_s = slc_seconds(to->wall - from->wall) / steps,
                    .caller_s = (slc_seconds(to->caller - from->caller) - compute) / steps,
                    .thread_s = (slc_seconds(to->thread - from->thread) - update) / steps,
                    .work_s = (compute + update) / steps};
}

/* ---- One side of a round ---- */

static sluice_status time_engine(measurement *m, sample *out, uint64_t *hash)
{
    engine_run run;
    sluice_status status = open_engine(m, &run);
    for (uint32_t s = 0; !status && s < WARM_UP; s++) status = engine_step(m, &run);
    if (!status) status = sluice_runtime_sync(run.rt);
    if (!status) status = sluice_world_barrier(m->world);
    clocks from = read_clocks(m);
    for (uint32_t s = 0; !status && s < m->config->steps; s++) status = engine_step(m, &run);
    if (!status) status = sluice_runtime_sync(run.rt);
    clocks to = read_clocks(m);
    *out = make_sample(&from, &to, m->config->steps);
    if (!status) status = engine_hash(m, &run, hash);
    close_engine(&run);
    return status;
}

static sluice_status time_bare(measurement *m, sample *out, uint64_t *hash)
{
    slc_bare *bare = NULL;
    sluice_status status = slc_bare_open(m->world, &m->model, &m->optimizer, m->made.job, &bare);
    for (uint32_t s = 0; !status && s < WARM_UP; s++) status = slc_bare_step(bare, learning_rate);
    if (!status) status = sluice_world_barrier(m->world);
    clocks from = read_clocks(m);
    for (uint32_t s = 0; !status && s < m->config->steps; s++) status = slc_bare_step(bare, learning_rate);
    clocks to = read_clocks(m);
    *out = make_sample(&from, &to, m->config->steps);
    /* No rank may free its memory while a peer reads it. */
    if (!status) status = sluice_world_barrier(m->world);
    if (!status) *hash = slc_bare_hash(bare);
    slc_bare_close(bare);
    return status;
}

static sluice_status time_side(measurement *m, int side, uint32_t round)
{
    sample *out = &m->samples[side][round];
    uint64_t hash = 0;
    sluice_status status = side == ENGINE ? time_engine(m, out, &hash) : time_bare(m, out, &hash);
    if (status) return status;
    if (m->hash && hash != m->hash)
        return slc_error(SLUICE_ERR_MISMATCH, "rank %d: the weights of the %s run are not those of the run before",
                         m->model.rank, side == ENGINE ? "engine's" : "bare");
    m->hash = hash;
    return SLUICE_OK;
}

/* ---- Rows ---- */

static double quantile(double *values, uint32_t count, double q)
{
    slc_sort(values, count);
    double at = q * (count - 1);
    uint32_t low = (uint32_t)at, high = low + 1 < count ? low + 1 : low;
    return values[low] + (at - low) * (values[high] - values[low]);
}

enum { STEP, CPU, CALLER, THREAD, OWN, WALL_RATIO, FIGURES };

static double figure_of(const measurement *m, int figure, uint32_t round)
{
    const sample *engine = &m->samples[ENGINE][round], *bare = &m->samples[BARE][round];
    double caller = engine->caller_s - bare->caller_s, thread = engine->thread_s - bare->thread_s;
    const double figures[FIGURES] = {
        [STEP] = engine->wall_s, [CPU] = engine->caller_s + engine->thread_s + engine->work_s,
        [CALLER] = caller,       [THREAD] = thread,
        [OWN] = caller + thread, [WALL_RATIO] = engine->wall_s / bare->wall_s};
    return figures[figure];
}

static void make_row(const measurement *m, double *values, slc_overhead_row *row)
{
    double *to[FIGURES] = {[STEP] = &row->step_s,     [CPU] = &row->cpu_s,    [CALLER] = &row->caller_s,
                           [THREAD] = &row->thread_s, [OWN] = &row->spread_s, [WALL_RATIO] = &row->wall_ratio};
    uint32_t rounds = m->config->rounds;
    for (int f = 0; f < FIGURES; f++) {
        for (uint32_t r = 0; r < rounds; r++) values[r] = figure_of(m, f, r);
        *to[f] = f == OWN ? (quantile(values, rounds, 0.75) - quantile(values, rounds, 0.25)) / 2
                          : quantile(values, rounds, 0.5);
    }
    for (uint32_t u = 0; u < m->made.job->unit_count; u++)
        row->blocks += (uint32_t)slc_unit_blocks(&m->made.job->units[u]);
    for (uint32_t i = 0; i < m->made.plan->train.item_count; i++)
        row->operations += m->made.plan->train.items[i].kind != SLC_ITEM_SLOT;
}

/* Replaces samples by means over ranks. */
static sluice_status share_samples(measurement *m)
{
    sluice_status status = SLUICE_OK;
    double ranks = sluice_world_size(m->world);
    for (int side = 0; side < SIDES; side++)
        for (uint32_t r = 0; !status && r < m->config->rounds; r++) {
            sample *s = &m->samples[side][r];
            double sums[] = {s->wall_s, s->caller_s, s->thread_s, s->work_s};
            status = sluice_world_all_reduce(m->world, sums, sizeof sums / sizeof *sums);
            *s = (sample){sums[0] / ranks, sums[1] / ranks, sums[2] / ranks, sums[3] / ranks};
        }
    return status;
}

/* ---- The whole measurement ---- */

static sluice_status prepare(measurement *m)
{
    const slc_overhead_config *config = m->config;
    uint64_t grain = 16 * (uint64_t)sluice_world_size(m->world);
    uint64_t elements = (config->layer_bytes / 4 + grain - 1) / grain * grain,
             turns = slc_overhead_calibrate(config->slot_s);
    sluice_status status = sluice_world_broadcast(m->world, &turns, sizeof turns, 0);
    m->model = (slc_overhead_model){.layers = config->layers,
                                    .elements = elements,
                                    .block_bytes = config->block_bytes,
                                    .turns = turns,
                                    .rank = sluice_world_rank(m->world)};
    for (int side = 0; side < SIDES; side++) {
        m->samples[side] = calloc(config->rounds, sizeof *m->samples[side]);
        if (!m->samples[side]) return slc_error(SLUICE_ERR_MEMORY, "%u rounds", config->rounds);
    }
    if (!status) status = slc_overhead_optimizer_open(&m->optimizer);
    return status ? status : find_thread_clock(m);
}

static sluice_status run_rounds(measurement *m)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t round = 0; round < m->config->rounds; round++)
        for (int i = 0; !status && i < SIDES; i++) status = time_side(m, round % 2 ? SIDES - 1 - i : i, round);
    return status ? status : share_samples(m);
}

static void clean_up(measurement *m)
{
    close_engine(&m->planned);
    slc_overhead_optimizer_close(&m->optimizer);
    for (int side = 0; side < SIDES; side++) free(m->samples[side]);
}

sluice_status slc_overhead_measure(sluice_world *world, const slc_overhead_config *config, slc_overhead_row *row)
{
    measurement m = {.world = world, .config = config};
    *row = (slc_overhead_row){0};
    double *values = calloc(config->rounds, sizeof *values);
    sluice_status status = values ? prepare(&m) : slc_error(SLUICE_ERR_MEMORY, "%u rounds", config->rounds);
    if (!status) status = open_engine(&m, &m.planned);
    if (!status) m.made = slc_engine_recorded(m.planned.rt);
    /* The rounds need only this runtime's plan, and a world serves one runtime at a time. */
    if (!status) status = slc_comm_attach(slc_world_comm(world), NULL, NULL, 0);
    if (!status) status = run_rounds(&m);
    if (!status) make_row(&m, values, row);
    clean_up(&m);
    free(values);
    return status;
}
