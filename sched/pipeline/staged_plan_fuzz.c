/* Any text must be read as a plan of stages or refused with a line; whatever is read must be a valid plan that is
 * written and read back the same. Inputs are edits of plans of one small job: several schedules, replicas, gathers. */
#include "sched/pipeline/pipeline_plan.h"
#include "sched/study/random_profile.h"
#include "tests/support/base/splice_fuzz.h"

#include <sluice/status.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLANS = 4, SEED = 3 };

static slc_profile *make_profile(void)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){4, 4};
    options.world = 2;
    options.micro_batches = 2;
    options.tied_share = 1;
    options.split_share = 1;
    options.unit_bytes = (slc_random_range){1e4, 1e5};
    if (slc_random_profile(&options, SEED, &profile)) abort();
    return profile;
}

static char *make_text(const slc_profile *profile, int number)
{
    static const char *const schedules[PLANS] = {"1f1b", "interleaved", "zero_bubble", "1f1b"};
    const slc_pipeline_request request = {.profile = profile,
                                          .schedule = slc_pipeline_schedule_find(schedules[number]),
                                          .shape = {2, 1 + (number == 1), profile->job.micro_batches},
                                          .strategy = number == 3 ? SLC_FSDP : SLC_STRATEGIES};
    slc_pipeline_plan plan;
    char *text;
    if (slc_pipeline_plan_make(&request, &plan) || slc_pipeline_plan_text(&request, &plan, &text)) abort();
    slc_pipeline_plan_fini(&plan);
    return text;
}

static void check(const slc_profile *profile, const char *text, size_t length)
{
    slc_pipeline_plan plan, back;
    slc_pipeline_request request, again;
    char *written;
    if (slc_pipeline_plan_from_text(profile, text, length, &request, &plan)) {
        if (!*sluice_last_error()) abort();
        slc_pipeline_plan_fini(&plan);
        return;
    }
    if (slc_pipeline_plan_text(&request, &plan, &written)) abort();
    if (slc_pipeline_plan_from_text(profile, written, strlen(written), &again, &back)) abort();
    for (uint32_t s = 0; s < plan.staged->stages; s++)
        if (slc_plan_fingerprint(plan.staged->plans[s]) != slc_plan_fingerprint(back.staged->plans[s])) abort();
    free(written);
    slc_pipeline_plan_fini(&back);
    slc_pipeline_plan_fini(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static slc_profile *profile; /* made once, because making plans takes longer than reading them */
    static char *texts[PLANS];
    if (!profile) {
        profile = make_profile();
        for (int n = 0; n < PLANS; n++) texts[n] = fuzz_without_space(make_text(profile, n));
    }
    size_t length;
    char *text = fuzz_splice((const char *const *)texts, PLANS, data, size, &length);
    if (text) check(profile, text, length);
    free(text);
    return 0;
}
