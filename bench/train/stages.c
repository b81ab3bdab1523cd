/* Medians are over the latest STEPS_MOST steps. tests/command/train/pipeline_train_test.sh covers this file. */
#include "bench/train/stages.h"

#include "lib/base/numbers/median.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP_STEPS = 2, STEPS_MOST = 256 };
enum { COMPUTE, IDLE, EXPOSED, AT_END, CHANNELS, TIMES = CHANNELS + SLUICE_STAGE_CHANNELS_MAX };

struct slc_stage_notes {
    uint32_t plan;
    uint64_t under, kept; /* steps under that plan; those of them that count */
    double times[TIMES][STEPS_MOST];
};

/* ---- Noting ---- */

sluice_status slc_stage_notes_create(const sluice_runtime *rt, slc_stage_notes **out)
{
    sluice_stage_report report = SLUICE_INIT(sluice_stage_report);
    sluice_status status = sluice_runtime_stage(rt, &report);
    *out = NULL;
    if (status || !report.stages) return status;
    *out = calloc(1, sizeof **out);
    return *out ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "times of a stage");
}

void slc_stage_notes_destroy(slc_stage_notes *notes)
{
    free(notes);
}

sluice_status slc_stage_notes_add(slc_stage_notes *notes, const sluice_runtime *rt, uint32_t plan)
{
    sluice_stage_report report = SLUICE_INIT(sluice_stage_report);
    sluice_status status = notes ? sluice_runtime_stage(rt, &report) : SLUICE_OK;
    if (status || !notes) return status;
    if (notes->plan != plan) notes->under = notes->kept = 0;
    notes->plan = plan;
    if (++notes->under <= WARM_UP_STEPS) return SLUICE_OK;
    const uint64_t place = notes->kept++ % STEPS_MOST;
    notes->times[COMPUTE][place] = report.slots_s;
    notes->times[IDLE][place] = report.idle_s;
    notes->times[EXPOSED][place] = report.exposed_s;
    notes->times[AT_END][place] = report.end_s;
    for (uint32_t c = 0; c < report.channel_count; c++) notes->times[CHANNELS + c][place] = report.channels[c].waited_s;
    return SLUICE_OK;
}

/* ---- All stages ---- */

static double known(double seconds)
{
    return seconds > 0 ? seconds : NAN;
}

/* Sorts the times. */
static double median_of(slc_stage_notes *notes, int which)
{
    return slc_median(notes->times[which], notes->kept < STEPS_MOST ? notes->kept : STEPS_MOST);
}

static slc_training_stage make_own(slc_stage_notes *notes, const sluice_stage_report *report,
                                   const sluice_memory_report *memory)
{
    slc_training_stage own = {.planned_bytes = memory->planned_bytes,
                              .peak_bytes = memory->peak_bytes,
                              .compute_s = median_of(notes, COMPUTE),
                              .idle_s = median_of(notes, IDLE),
                              .exposed_s = median_of(notes, EXPOSED),
                              .end_s = median_of(notes, AT_END),
                              .channel_count = report->channel_count};
    const bool predicted = report->predicted_step_s > 0;
    own.predicted_compute_s = predicted ? report->predicted_slots_s : NAN;
    own.predicted_idle_s = predicted ? report->predicted_idle_s : NAN;
    own.predicted_exposed_s = predicted ? report->predicted_exposed_s : NAN;
    for (uint32_t c = 0; c < own.channel_count; c++) {
        const sluice_stage_channel *channel = &report->channels[c];
        slc_training_channel *out = &own.channels[c];
        *out = (slc_training_channel){.piece = channel->piece,
                                      .stage = channel->stage,
                                      .receives = channel->receives,
                                      .step_bytes = channel->step_bytes,
                                      .waited_s = median_of(notes, CHANNELS + (int)c)};
        snprintf(out->what, sizeof out->what, "%s", channel->what);
    }
    return own;
}

static sluice_status name_layers(const sluice_runtime *rt, slc_training_pipeline *pipeline)
{
    for (uint32_t l = 0; l < pipeline->layer_count; l++) {
        const char *name;
        sluice_status status = sluice_runtime_piece(rt, l, &name, &pipeline->pieces[l]);
        if (status) return status;
        pipeline->layers[l] = strdup(name);
        if (!pipeline->layers[l]) return slc_error(SLUICE_ERR_MEMORY, "names of layers");
    }
    return SLUICE_OK;
}

/* Ranks are stages * replicas, replicas of a stage being neighbours. */
static void join_replicas(const slc_training_stage *of_ranks, slc_training_pipeline *pipeline)
{
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        const slc_training_stage *replicas = &of_ranks[(size_t)s * pipeline->replicas], *slowest = replicas,
                                 *largest = replicas;
        for (uint32_t r = 1; r < pipeline->replicas; r++) {
            if (replicas[r].compute_s > slowest->compute_s) slowest = &replicas[r];
            if (replicas[r].peak_bytes > largest->peak_bytes) largest = &replicas[r];
        }
        pipeline->stages[s] = *slowest;
        pipeline->stages[s].planned_bytes = largest->planned_bytes;
        pipeline->stages[s].peak_bytes = largest->peak_bytes;
    }
}

/* Stages need different memory: the result has that of the one that needs most. */
static void take_largest(const slc_training_pipeline *pipeline, sluice_memory_report *memory)
{
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        if (pipeline->stages[s].peak_bytes <= memory->peak_bytes) continue;
        memory->planned_bytes = pipeline->stages[s].planned_bytes;
        memory->peak_bytes = pipeline->stages[s].peak_bytes;
    }
}

static sluice_status create(const sluice_stage_report *report, uint32_t micro_batches, slc_training_pipeline **out)
{
    slc_training_pipeline *pipeline = calloc(1, sizeof *pipeline);
    *out = pipeline;
    if (!pipeline) return slc_error(SLUICE_ERR_MEMORY, "stages");
    *pipeline = (slc_training_pipeline){.stage_count = report->stages,
                                        .replicas = report->replicas,
                                        .chunks = report->chunks,
                                        .micro_batches = micro_batches,
                                        .predicted_step_s = known(report->predicted_step_s),
                                        .layer_count = report->layer_count,
                                        .layers = calloc(report->layer_count, sizeof(char *)),
                                        .pieces = calloc(report->layer_count, sizeof(uint32_t)),
                                        .stages = calloc(report->stages, sizeof(slc_training_stage))};
    snprintf(pipeline->schedule, sizeof pipeline->schedule, "%s", report->schedule);
    return pipeline->layers && pipeline->pieces && pipeline->stages
               ? SLUICE_OK
               : slc_error(SLUICE_ERR_MEMORY, "%u stages", report->stages);
}

sluice_status slc_stage_notes_gather(slc_stage_notes *notes, sluice_runtime *rt, uint32_t micro_batches,
                                     const sluice_prediction *prediction, sluice_memory_report *memory,
                                     slc_training_pipeline **out)
{
    sluice_world *world = sluice_runtime_world(rt);
    sluice_stage_report report = SLUICE_INIT(sluice_stage_report);
    *out = NULL;
    if (!notes) return SLUICE_OK;
    slc_training_stage *all = calloc((size_t)sluice_world_size(world), sizeof *all);
    sluice_status status = all ? sluice_runtime_stage(rt, &report) : slc_error(SLUICE_ERR_MEMORY, "stages");
    if (!status) status = create(&report, micro_batches, out);
    if (!status) status = name_layers(rt, *out);
    if (!status) (*out)->measured_step_s = known(prediction->measured.step_s);
    if (!status) {
        const slc_training_stage own = make_own(notes, &report, memory);
        status = sluice_world_all_gather(world, &own, sizeof own, all);
    }
    if (!status) join_replicas(all, *out);
    if (!status) take_largest(*out, memory);
    free(all);
    return status;
}

void slc_training_pipeline_destroy(slc_training_pipeline *pipeline)
{
    if (!pipeline) return;
    for (uint32_t l = 0; pipeline->layers && l < pipeline->layer_count; l++) free(pipeline->layers[l]);
    free(pipeline->layers);
    free(pipeline->pieces);
    free(pipeline->stages);
    free(pipeline);
}

/* ---- Words ---- */

void slc_training_stage_layers(const slc_training_pipeline *pipeline, uint32_t stage, char *out, size_t bytes)
{
    size_t used = 0;
    *out = 0;
    for (uint32_t first = 0, end; first < pipeline->layer_count && used < bytes; first = end) {
        for (end = first + 1; end < pipeline->layer_count && pipeline->pieces[end] == pipeline->pieces[first];) end++;
        if (pipeline->pieces[first] % pipeline->stage_count != stage) continue;
        const int put = snprintf(out + used, bytes - used, end == first + 1 ? "%s%s" : "%s%s-%s", used ? ", " : "",
                                 pipeline->layers[first], pipeline->layers[end - 1]);
        used += (size_t)put;
    }
}
