/* pipeline_simulate_test.c covers this file. */
#include "sched/pipeline/simulate/forecast.h"

#include <math.h>
#include <stdlib.h>

uint32_t slc_pipeline_steady_steps(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape)
{
    const uint32_t filling = (shape->stages + shape->micro_batches - 1) / shape->micro_batches;
    return 2 * (schedule->flushes ? 1 : filling) + 2;
}

static const slc_task_time *time_of(const slc_pipeline_program *program, const slc_pipeline_forecast *out,
                                    uint32_t stage, uint32_t task)
{
    return &out->tasks[(size_t)stage * program->task_count + task];
}

/* The time at which the first piece has ended the last micro-batch of a step. */
static double end_of_step(const slc_pipeline_program *program, const slc_pipeline_forecast *out, uint32_t step)
{
    const slc_task *tasks = slc_pipeline_tasks(program, 0);
    const uint32_t m = (step + 1) * program->shape.micro_batches - 1;
    double end_s = 0;
    for (uint32_t t = 0; t < program->task_count; t++)
        if (!tasks[t].piece && tasks[t].micro_batch == m && tasks[t].kind != SLC_TASK_FORWARD)
            end_s = fmax(end_s, time_of(program, out, 0, t)->end_s);
    return end_s;
}

static double overlap(double start_s, double end_s, double from_s, double to_s)
{
    return fmax(0, fmin(end_s, to_s) - fmax(start_s, from_s));
}

void slc_pipeline_conclude(const slc_pipeline_program *program, const slc_pipeline_times *times, double over_s,
                           slc_pipeline_forecast *out)
{
    const slc_pipeline_shape *shape = &program->shape;
    const uint32_t before = slc_pipeline_steady_steps(program->schedule, shape) / 2 - 1;
    const bool steady = program->steps >= 2 * (before + 1);
    const double to_s = steady ? end_of_step(program, out, before + 1) : over_s;
    out->from_s = steady ? end_of_step(program, out, before) : 0;
    const double whole_s = to_s - out->from_s;
    out->step_s = steady ? whole_s : whole_s / program->steps;
    for (uint32_t s = 0; s < shape->stages; s++) {
        slc_stage_forecast *stage = &out->stages[s];
        for (uint32_t t = 0; t < program->task_count; t++) {
            const slc_task_time *time = time_of(program, out, s, t);
            const double alone_s =
                fmin(time->end_s, time->start_s + slc_task_duration(times, slc_pipeline_tasks(program, s) + t));
            stage->compute_s += overlap(time->start_s, alone_s, out->from_s, to_s);
            stage->exposed_s += overlap(alone_s, time->end_s, out->from_s, to_s);
        }
        stage->idle_s = fmax(0, whole_s - stage->compute_s - stage->exposed_s);
        if (whole_s > 0) out->idle_share += (stage->idle_s + stage->exposed_s) / whole_s / shape->stages;
    }
    for (uint32_t t = 0; t < out->transfer_count; t++) {
        const slc_transfer *transfer = &out->transfers[t];
        const double s = overlap(transfer->start_s, transfer->end_s, out->from_s, to_s);
        if (transfer->kind < SLC_TRANSFER_OPERATION)
            out->stages[transfer->from].messages_s += s;
        else if (transfer->kind == SLC_TRANSFER_GATHER || !(times->operations[transfer->piece].thread_s > 0))
            out->stages[transfer->from].operations_s += s;
    }
}

void slc_pipeline_forecast_fini(slc_pipeline_forecast *forecast)
{
    free(forecast->transfers);
    free(forecast->tasks);
    free(forecast->stages);
    *forecast = (slc_pipeline_forecast){0};
}
