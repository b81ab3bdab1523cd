/* A plan of stages is written and read back the same, for drawn jobs, schedules and strategies; damaged texts are
 * refused with the path to the damage; plans of other jobs too. */
#include "sched/pipeline/pipeline_plan.h"

#include "lib/base/status.h"
#include "lib/plan/roles.h"
#include "sched/study/random_profile.h"
#include "tests/support/draw.h"
#include "tests/support/scale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static slc_profile *draw_profile(uint64_t seed, uint32_t world, uint32_t micro_batches)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){4, 8};
    options.world = world;
    options.micro_batches = micro_batches;
    options.can_recompute = true;
    options.tied_share = 0.5;
    options.split_share = 1;
    options.unit_bytes = (slc_random_range){1e5, 1e6};
    assert_int_equal(slc_random_profile(&options, test_seed(seed), &profile), SLUICE_OK);
    return profile;
}

/* A planned pipeline and its text. */
typedef struct {
    slc_profile *profile;
    slc_pipeline_request request;
    slc_pipeline_plan plan;
    char *text;
} staged_case;

static void case_init(staged_case *c, uint64_t round)
{
    uint64_t seed = 7300 + round;
    const slc_pipeline_schedule *schedule = slc_pipeline_schedule_at(round % 6);
    const uint32_t stages = 2 + (uint32_t)draw(&seed, 2), world = 1 + (uint32_t)draw(&seed, 3);
    c->profile = draw_profile(round, world, stages * (1 + (uint32_t)draw(&seed, 2)));
    assert_int_equal(slc_profile_set_compressed(c->profile, round % 3 == 1), SLUICE_OK);
    c->request =
        (slc_pipeline_request){.profile = c->profile,
                               .schedule = schedule,
                               .shape = {stages, 1 + (schedule->chunked && c->profile->job.layer_count >= 2 * stages),
                                         c->profile->job.micro_batches},
                               .strategy = round % 4 == 2 && schedule->flushes ? SLC_FSDP : SLC_STRATEGIES,
                               .recompute = round % 5 == 1 && !schedule->splits};
    if (slc_pipeline_plan_make(&c->request, &c->plan)) fail_msg("%s", sluice_last_error());
    if (round % 2) {
        uint64_t most = 0;
        for (uint32_t s = 0; s < stages; s++) most = c->plan.bytes[s] > most ? c->plan.bytes[s] : most;
        slc_pipeline_plan_fini(&c->plan);
        c->request.budget_bytes = most - most / 20;
        if (slc_pipeline_plan_make(&c->request, &c->plan)) { /* nothing smaller fits */
            slc_pipeline_plan_fini(&c->plan);
            c->request.budget_bytes = most;
            assert_int_equal(slc_pipeline_plan_make(&c->request, &c->plan), SLUICE_OK);
        }
    }
    assert_int_equal(slc_pipeline_plan_text(&c->request, &c->plan, &c->text), SLUICE_OK);
}

static void case_fini(staged_case *c)
{
    free(c->text);
    slc_pipeline_plan_fini(&c->plan);
    slc_profile_destroy(c->profile);
}

static void expect_same(const staged_case *c, const slc_pipeline_plan *back, const slc_pipeline_request *request)
{
    const slc_staged_plan *a = c->plan.staged, *b = back->staged;
    const uint32_t units = c->profile->job.unit_count;
    assert_ptr_equal(request->schedule, c->request.schedule);
    assert_memory_equal(&request->shape, &c->request.shape, sizeof request->shape);
    assert_memory_equal(back->first_layer, c->plan.first_layer,
                        slc_pipeline_pieces(&request->shape) * sizeof *back->first_layer);
    assert_memory_equal(a->strategies, b->strategies, units * sizeof *a->strategies);
    assert_memory_equal(a->held, b->held, units * sizeof *a->held);
    assert_int_equal(a->recompute, b->recompute);
    for (uint32_t s = 0; s < a->stages; s++) {
        assert_true(slc_plan_fingerprint(a->plans[s]) == slc_plan_fingerprint(b->plans[s]));
        assert_int_equal(back->bytes[s], c->plan.bytes[s]);
        assert_int_equal(back->older_bytes[s], c->plan.older_bytes[s]);
    }
    assert_true(back->forecast.step_s == c->plan.forecast.step_s);
    assert_true(back->forecast.idle_share == c->plan.forecast.idle_share);
}

static void text_and_back_is_the_same_plan(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(test_brief() ? 6 : 36);
    uint32_t gathered = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        staged_case c;
        slc_pipeline_plan back;
        slc_pipeline_request request;
        char *again;
        case_init(&c, round);
        if (slc_pipeline_plan_from_text(c.profile, c.text, strlen(c.text), &request, &back))
            fail_msg("%s", sluice_last_error());
        expect_same(&c, &back, &request);
        gathered += back.costs.times.gather_count > 0;
        assert_int_equal(slc_pipeline_plan_text(&request, &back, &again), SLUICE_OK);
        assert_string_equal(again, c.text);
        free(again);
        slc_pipeline_plan_fini(&back);
        case_fini(&c);
    }
    assert_true(test_brief() || gathered > 0);
}

static void files_say_whom_they_are_for(void **state)
{
    (void)state;
    char path[] = "/tmp/staged_plan_XXXXXX";
    staged_case c;
    slc_pipeline_plan back;
    slc_pipeline_request request;
    slc_plan_outline outline;
    slc_plan *single;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    case_init(&c, 1);
    assert_int_equal(slc_pipeline_plan_write(&c.request, &c.plan, path), SLUICE_OK);
    outline = slc_plan_outline_read(path);
    assert_true(outline.staged);
    assert_int_equal(outline.stages, c.request.shape.stages);
    assert_int_equal(outline.replicas, c.profile->job.world);
    assert_int_equal(outline.micro_batches, c.profile->job.micro_batches);
    assert_true(outline.compressed == c.profile->job.compressed);
    assert_int_equal(slc_pipeline_plan_read(c.profile, path, &request, &back), SLUICE_OK);
    expect_same(&c, &back, &request);
    slc_pipeline_plan_fini(&back);
    assert_int_equal(slc_plan_read(&c.profile->job, path, &single), SLUICE_ERR_FORMAT);
    assert_non_null(strstr(sluice_last_error(), "a plan of a pipeline's stages"));
    assert_int_equal(unlink(path), 0);
    assert_false(slc_plan_outline_read(path).staged);
    assert_int_equal(slc_pipeline_plan_read(c.profile, path, &request, &back), SLUICE_ERR_PATH);
    case_fini(&c);
}

/* ---- Damage ---- */

/* Reads the text with the first `from` after `behind` replaced. */
static void expect_refused(const staged_case *c, const char *behind, const char *from, const char *to,
                           const char *words)
{
    const char *start = strstr(c->text, behind), *at = start ? strstr(start, from) : NULL;
    slc_pipeline_plan back;
    slc_pipeline_request request;
    char *text = at ? malloc(strlen(c->text) + strlen(to) + 1) : NULL;
    if (!text) fail_msg("the plan has no %s behind %s", from, behind);
    if (!at || !text) return;
    sprintf(text, "%.*s%s%s", (int)(at - c->text), c->text, to, at + strlen(from));
    const sluice_status status = slc_pipeline_plan_from_text(c->profile, text, strlen(text), &request, &back);
    if (!status || !strstr(sluice_last_error(), words))
        fail_msg("%s to %s: %s", from, to, status ? sluice_last_error() : "was read");
    slc_pipeline_plan_fini(&back);
    free(text);
}

static void damaged_texts_are_refused_with_their_path(void **state)
{
    (void)state;
    staged_case c;
    case_init(&c, 1); /* 1f1b, with replicas or without */
    const char *layer = c.profile->job.layers[c.plan.first_layer[1]];
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"cuts\": [\"%.40s\"", layer);
    expect_refused(&c, "{", "\"version\": 2", "\"version\": 1", "$");
    expect_refused(&c, "{", "\"version\": 2", "\"version\": 3", "$.version: version 3");
    expect_refused(&c, "{", "\"pipeline\"", "\"pipelines\"", "$");
    expect_refused(&c, "{", "\"stage_count\": ", "\"stage_count\": 9", "$.pipeline.stage_count");
    expect_refused(&c, "{", "\"replicas\": ", "\"replicas\": 9", "$.pipeline.replicas: the plan was made for 9");
    expect_refused(&c, "{", "\"micro_batches\": ", "\"micro_batches\": 9",
                   "$.pipeline.micro_batches: the plan was made");
    expect_refused(&c, "{", "\"1f1b\"", "\"2f2b\"", "no schedule \"2f2b\"; there are gpipe, 1f1b");
    expect_refused(&c, "{", "\"1f1b\"", "\"gpipe\"", "");
    expect_refused(&c, "{", "\"chunks\": 1", "\"chunks\": 0", "$.pipeline.chunks");
    expect_refused(&c, "{", quoted, "\"cuts\": [\"nowhere\"", "$.pipeline.cuts[0]: \"nowhere\" is no layer");
    expect_refused(&c, "\"strategies\"", "\": \"", "\": \"x", "$.pipeline.strategies");
    expect_refused(&c, "{", "\"held\": [", "\"held\": [\"nothing\"", "$.pipeline.held[0]: \"nothing\" is no unit");
    expect_refused(&c, "\"stages\": [", "\"world\"", "\"worlds\"", "$.stages[0].job");
    expect_refused(&c, "\"stages\": [", "\"channels\": [[", "\"channels\": [[9",
                   "$.stages[0].job.stage.channels[0][0]");
    expect_refused(&c, "\"train\"", "[\"slot\",0,0,0", "[\"slot\",0,0,1", "invalid plan: step item");
    expect_refused(&c, "\"train\"", "[\"send\"", "[\"receive\"", "");
    case_fini(&c);
}

/* A text that ends too early is refused wherever it ends. */
static void texts_cut_anywhere_are_refused(void **state)
{
    (void)state;
    staged_case c;
    case_init(&c, 1);
    const size_t length = strlen(c.text), step = length / (test_brief() ? 10 : 60) + 1;
    for (size_t cut = 1; cut < length - 3; cut += step) {
        slc_pipeline_plan back;
        slc_pipeline_request request;
        assert_int_equal(slc_pipeline_plan_from_text(c.profile, c.text, cut, &request, &back), SLUICE_ERR_FORMAT);
        slc_pipeline_plan_fini(&back);
    }
    case_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_back_is_the_same_plan),
        cmocka_unit_test(files_say_whom_they_are_for),
        cmocka_unit_test(damaged_texts_are_refused_with_their_path),
        cmocka_unit_test(texts_cut_anywhere_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
