/* Idle time has two causes: a stage has less to compute than the one that has most, or the pipeline fills and empties.
 * tests/command/train/pipeline_train_test.sh covers this file. */
#include "bench/train/words/stages.h"

#include <math.h>
#include <string.h>

enum { NAMES_BYTES = 256 };

/* Names what the stage waited for longest: messages, or at the step's end the other stages. */
static void print_longest_wait(FILE *out, const slc_training_stage *stage)
{
    const slc_training_channel *longest = NULL;
    for (uint32_t c = 0; c < stage->channel_count; c++)
        if (!longest || stage->channels[c].waited_s > longest->waited_s) longest = &stage->channels[c];
    if (!longest || stage->end_s >= longest->waited_s)
        fprintf(out, "the step's end, %.1f ms\n", 1e3 * stage->end_s);
    else
        fprintf(out, "%s %s stage %u, %.1f ms\n", longest->what, longest->receives ? "of" : "to", longest->stage,
                1e3 * longest->waited_s);
}

static void print_table(FILE *out, const slc_training_pipeline *pipeline)
{
    char names[NAMES_BYTES];
    int width = 6;
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        slc_training_stage_layers(pipeline, s, names, sizeof names);
        if ((int)strlen(names) > width) width = (int)strlen(names);
    }
    fprintf(out, "  stage  %-*s  %12s  %10s  %10s  %10s  waits longest for\n", width, "layers", "memory", "compute",
            "idle", "exposed");
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        const slc_training_stage *stage = &pipeline->stages[s];
        slc_training_stage_layers(pipeline, s, names, sizeof names);
        fprintf(out, "  %5u  %-*s  %8.1f MiB  %7.1f ms  %7.1f ms  %7.1f ms  ", s, width, names,
                (double)stage->peak_bytes / 0x1p20, 1e3 * stage->compute_s, 1e3 * stage->idle_s,
                1e3 * stage->exposed_s);
        print_longest_wait(out, stage);
    }
}

/* The shares are of the step, and means over the stages. */
static void print_causes(FILE *out, const slc_training_pipeline *pipeline, double step_s)
{
    const slc_training_stage *slowest = pipeline->stages;
    double idle_s = 0, unequal_s = 0;
    for (uint32_t s = 1; s < pipeline->stage_count; s++)
        if (pipeline->stages[s].compute_s > slowest->compute_s) slowest = &pipeline->stages[s];
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        const slc_training_stage *stage = &pipeline->stages[s];
        idle_s += stage->idle_s / pipeline->stage_count;
        unequal_s += fmin(slowest->compute_s - stage->compute_s, stage->idle_s) / pipeline->stage_count;
    }
    const double filling_s = idle_s - unequal_s;
    fprintf(
        out,
        "idle    %.1f %% of the step, the mean of the stages: %.1f %% because stage %u computes longest, %.1f %% to "
        "fill and empty the pipeline with %u micro-batch%s",
        100 * idle_s / step_s, 100 * unequal_s / step_s, (unsigned)(slowest - pipeline->stages),
        100 * filling_s / step_s, pipeline->micro_batches, pipeline->micro_batches == 1 ? "" : "es");
    fprintf(out, unequal_s > filling_s ? "; other --pipeline-cuts share the work better, where layers allow it\n"
                                       : "; more --micro-batches lower that\n");
}

/* The measured step is that of the rank that computes longest. */
static void print_prediction(FILE *out, const slc_training_pipeline *pipeline)
{
    const double predicted_s = pipeline->predicted_step_s, measured_s = pipeline->measured_step_s;
    if (isnan(predicted_s) || isnan(measured_s)) return;
    fprintf(out, "step    %.1f ms predicted before the first one, %.1f ms measured (%+.1f %%)\n", 1e3 * predicted_s,
            1e3 * measured_s, 100 * (measured_s / predicted_s - 1));
}

void slc_training_print_stages(FILE *out, const slc_training_pipeline *pipeline, double step_s)
{
    if (!pipeline || isnan(pipeline->stages[0].compute_s) || isnan(step_s)) return;
    print_table(out, pipeline);
    print_causes(out, pipeline, step_s);
    print_prediction(out, pipeline);
}
