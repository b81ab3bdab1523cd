/* A short run that ends by writing what it measured. tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/survey.h"

#include "bench/train/options/batch_options.h"
#include "bench/train/options/depth_options.h"
#include "bench/train/options/length_options.h"
#include "bench/train/options/lr_schedule.h"
#include "bench/train/run.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <stdio.h>

enum { SURVEY_STEPS = 8 };

typedef struct {
    const slc_training_options *options;
    uint32_t length;
    const char *path;
} survey;

static sluice_status write_profile(sluice_runtime *rt, void *context)
{
    const survey *s = context;
    char model[128];
    snprintf(model, sizeof model, "%s %s, batch %" PRIu64 ", context %u", s->options->model, s->options->size,
             s->options->batch, s->length);
    return sluice_runtime_profile_write(rt, s->path, model);
}

sluice_status slc_bench_survey(sluice_world *world, const slc_training_options *options, const char *path,
                               const volatile sig_atomic_t *stops, slc_profile **out)
{
    slc_training_options short_run = *options;
    slc_training_result result = {0};
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    survey s = {.options = options, .path = path};
    const slc_training_watch watch = {.finished = write_profile, .context = &s, .stops = stops};
    *out = NULL;
    short_run.strategy = "fsdp";
    short_run.schedule = "serial";
    short_run.budget = "";
    short_run.steps = SURVEY_STEPS;
    slc_lr_schedule_drop(&short_run);
    slc_batch_options_drop(&short_run);
    slc_depth_options_drop(&short_run);
    slc_length_options_drop(&short_run);
    short_run.eval_batches = 0;
    short_run.trace = NULL;
    sluice_status status = slc_training_model(options, &model, &s.length);
    if (!status) status = slc_training_run(world, &short_run, &watch, &result);
    if (!status && result.interrupted) status = slc_error(SLUICE_ERR_INTERRUPTED, "stopped while measuring a profile");
    slc_training_result_free(&result);
    if (!status && sluice_world_rank(world) == 0) status = slc_profile_read(path, out);
    return status;
}
