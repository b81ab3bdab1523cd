/* Made profiles must have the published numbers of parameters, FLOPs and bytes, which are worked out separately here,
 * and plans can be made of all of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/plan/profile_equal.h"
#include "sched/study/made_profile.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <stdlib.h>

static slc_profile *make_of(const char *cluster, slc_made_options options)
{
    slc_profile *profile;
    assert_int_equal(slc_made_cluster(cluster, &options), 0);
    if (slc_made_profile(&options, &profile)) fail_msg("%s", sluice_last_error());
    return profile;
}

static slc_profile *make(const char *model, const char *cluster, uint32_t batch, bool can_recompute)
{
    return make_of(cluster, (slc_made_options){.model = model, .batch = batch, .can_recompute = can_recompute});
}

static uint64_t parameters_of(const slc_profile *profile)
{
    uint64_t total = 0;
    for (uint32_t u = 0; u < profile->job.unit_count; u++) total += profile->parameters[u];
    return total;
}

static void parameters_are_as_published(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double published, within;
    } rows[] = {{"gpt2-small", 124439808, 0}, {"gpt2-medium", 354823168, 0}, {"gpt2-large", 774030080, 0},
                {"gpt2-xl", 1557611200, 0},   {"gpt3-6.7b", 6.7e9, 0.01},    {"gpt3-13b", 13e9, 0.02},
                {"gpt3-175b", 174.6e9, 0.001}};
    size_t count = sizeof rows / sizeof *rows;
    for (size_t i = 0; i < count; i++) {
        slc_profile *profile = make(rows[i].model, "64xA100-200gbit", 1, false);
        double parameters = (double)parameters_of(profile);
        for (uint32_t u = 0; u < profile->job.unit_count; u++) {
            uint64_t sum = 0;
            for (uint32_t t = 0; t < profile->tensors[u].count; t++) sum += profile->tensors[u].elements[t];
            assert_int_equal(sum, profile->parameters[u]);
            assert_int_equal(profile->tensors[u].count, *profile->job.units[u].name == 'e'     ? 1
                                                        : profile->job.units[u].name[1] == '.' ? 12
                                                                                               : 2);
            double bits = (double)sum / 8, wire = (double)profile->job.units[u].exchange.wire;
            assert_true(wire >= bits && wire <= bits + 12 * (64 * 64 / 8 + 4) * 64);
        }
        if (fabs(parameters - rows[i].published) > rows[i].within * rows[i].published)
            fail_msg("%s has %.0f parameters", rows[i].model, parameters);
        slc_profile_destroy(profile);
    }
    assert_non_null(slc_made_model_name(count - 1));
    assert_null(slc_made_model_name(count));
}

/* Six FLOPs a parameter and token, but the embeddings count only once, for the head's product; attention is extra. */
static void times_are_flops_over_speed(void **state)
{
    (void)state;
    slc_made_options options = {
        .model = "gpt2-small", .world = 4, .batch = 3, .device_flops = 2e12, .efficiency = 0.25, .bytes_per_s = 1e9};
    slc_profile *profile;
    assert_int_equal(slc_made_profile(&options, &profile), 0);
    double tokens = 3 * 1024, d = 768, step = 0;
    double products = 124439808 - 1024 * d - 2 * d, attention = 12 * 2 * 1024 * d, embed = 4 * d;
    for (uint32_t s = 0; s < slc_job_slots(&profile->job); s++) step += profile->times.slot_s[s];
    double expected = 3 * tokens * (2 * products + attention + embed) / 0.5e12;
    assert_true(fabs(step - expected) < 1e-9 * expected);
    assert_true(profile->times.recompute_s[1] == profile->times.slot_s[1]);
    slc_profile_destroy(profile);
}

/* In the middle of a block the activations of the block and its input must be 16 numbers a token and channel and one a
 * token and head. */
static void blocks_keep_sixteen_numbers(void **state)
{
    (void)state;
    slc_profile *profile = make("gpt2-medium", "8xcpu-10gbit", 2, true);
    const slc_job *job = &profile->job;
    uint64_t rows = 2 * 1024, spanning = 0;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        bool in_block =
            life->first_slot == 7 || (life->first_slot == 6 && life->last_slot == slc_backward_slot(job, 7));
        if (in_block && life->last_slot == slc_backward_slot(job, 7)) spanning += life->bytes;
        if (!life->recomputable) continue;
        assert_true(job->can_recompute[life->first_slot]);
        assert_int_equal(life->last_slot, slc_backward_slot(job, life->first_slot));
    }
    assert_int_equal(spanning, 4 * rows * (16 * 1024 + 16));
    assert_false(job->can_recompute[0] || job->can_recompute[job->layer_count - 1]);
    slc_profile_destroy(profile);
}

/* Values, activations and, with bf16 on the wire, scratch must halve; token numbers, the numbers a head keeps and
 * logits must not. */
static void bf16_halves_what_it_should(void **state)
{
    (void)state;
    slc_made_options options = {
        .model = "gpt2-small", .world = 4, .batch = 2, .device_flops = 2e12, .efficiency = 0.25, .bytes_per_s = 1e9};
    slc_profile *wide, *mixed, *narrow;
    assert_int_equal(slc_made_profile(&options, &wide), 0);
    options.precision = SLUICE_BF16;
    assert_int_equal(slc_made_profile(&options, &mixed), 0);
    options.wire = SLUICE_BF16;
    assert_int_equal(slc_made_profile(&options, &narrow), 0);
    for (uint32_t u = 0; u < wide->job.unit_count; u++) {
        assert_int_equal(narrow->job.units[u].dtype, SLUICE_BF16);
        assert_int_equal(narrow->job.units[u].block_elements, wide->job.units[u].block_elements);
    }
    assert_int_equal(slc_gradient_dtype(&mixed->job, mixed->job.units), SLUICE_FP32);
    assert_int_equal(mixed->job.scratch_bytes, wide->job.scratch_bytes);
    assert_int_equal(2 * narrow->job.scratch_bytes, wide->job.scratch_bytes);
    uint64_t tokens = 2 * 1024, heads = 4 * tokens * 12;
    for (uint32_t a = 0; a < wide->job.activation_count; a++) {
        uint64_t before = wide->job.activations[a].bytes, after = narrow->job.activations[a].bytes;
        bool are_tokens = before == 4 * tokens, kept = before > 4 * tokens * 768;
        assert_int_equal(after, are_tokens ? before : kept ? (before - heads) / 2 + heads : before / 2);
    }
    slc_profile_destroy(wide);
    slc_profile_destroy(mixed);
    slc_profile_destroy(narrow);
}

static void the_embedding_is_tied(void **state)
{
    (void)state;
    slc_profile *profile = make("gpt2-small", "2xcpu-1gbit", 4, false);
    const slc_job *job = &profile->job;
    assert_int_equal(job->layer_count, 14);
    assert_int_equal(job->unit_count, 15);
    uint32_t tied = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        if (job->units[u].use_count == 1) continue;
        tied++;
        assert_int_equal(profile->parameters[u], 50257 * 768);
        assert_int_equal(job->units[u].uses[0].layer, 0);
        assert_int_equal(job->units[u].uses[1].layer, 13);
    }
    assert_int_equal(tied, 1);
    slc_profile_destroy(profile);
}

static void plan_with(const slc_profile *profile, slc_strategy strategy)
{
    slc_strategy *strategies = calloc(profile->job.unit_count, sizeof *strategies);
    for (uint32_t u = 0; u < profile->job.unit_count; u++)
        strategies[u] = slc_unit_strategy(&profile->job, &profile->job.units[u], strategy);
    slc_scheduling in = {.job = &profile->job, .strategies = strategies, .times = &profile->times, .limit = UINT64_MAX};
    slc_plan *plan;
    if (slc_plan_make(&in, slc_scheduler_find("one_ahead"), &plan))
        fail_msg("%s, %s: %s", profile->model, profile->source, sluice_last_error());
    slc_plan_destroy(plan);
    free(strategies);
}

/* There must never be more rows than words or tokens; other worlds pad them anew; all else is as with a joint
 * embedding. */
static void the_embedding_may_be_split(void **state)
{
    (void)state;
    static const struct {
        uint32_t batch, context, rows;
    } cases[] = {{4, 1024, 4096}, {1, 77, 77}, {64, 1024, 50257}};
    for (int i = 0; i < 3; i++) {
        slc_made_options options = {.model = "gpt2-small", .batch = cases[i].batch, .context = cases[i].context};
        slc_profile *joint = make_of("8xcpu-10gbit", options);
        options.tied = SLUICE_TIED_SPLIT;
        slc_profile *split = make_of("8xcpu-10gbit", options);
        const slc_job *job = &split->job;
        assert_int_equal(job->unit_count, 16);
        const slc_unit *table = &job->units[1], *rows = &job->units[2];
        assert_true(table->role == SLC_UNIT_SPLIT && table->partner == 2 &&
                    table->elements == joint->job.units[1].elements);
        assert_true(table->use_count == 1 && table->uses[0].layer == 13 && table->uses[0].backward_value);
        assert_true(rows->role == SLC_UNIT_ROWS && rows->partner == 1 && rows->most_rows == cases[i].rows);
        assert_true(rows->use_count == 1 && rows->uses[0].layer == 0 && !rows->uses[0].backward_value);
        assert_true(rows->row_elements == 768 && rows->row_count == 50257);
        assert_int_equal(parameters_of(joint), parameters_of(split) - split->parameters[2]);
        plan_with(split, i ? SLC_FSDP : SLC_DP);
        assert_int_equal(slc_profile_set_world(split, 3), 0);
        assert_int_equal(rows->elements % 48, 0);
        assert_true(rows->elements >= rows->most_rows * 768 && rows->elements < rows->most_rows * 768 + 48);
        slc_profile_destroy(split);
        slc_profile_destroy(joint);
    }
}

/* Every model on every cluster must be read back as it was written; one of each is planned. */
static void all_are_good_profiles(void **state)
{
    (void)state;
    for (size_t m = 0; slc_made_model_name(m); m++)
        for (size_t c = 0; slc_made_cluster_name(c); c++) {
            const slc_made_options options = {.model = slc_made_model_name(m),
                                              .batch = 1,
                                              .can_recompute = m % 2,
                                              .tied = (m + c) % 2 ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT};
            slc_profile *profile = make_of(slc_made_cluster_name(c), options), *back;
            char *text;
            assert_int_equal(slc_profile_to_json(profile, &text), 0);
            if (slc_profile_from_json(text, strlen(text), &back)) fail_msg("%s", sluice_last_error());
            assert_true(test_profiles_equal(profile, back));
            if ((m == 0 && c < 3) || (m == 1 && c == 3)) plan_with(profile, m ? SLC_FSDP : SLC_SDP);
            slc_profile_destroy(back);
            slc_profile_destroy(profile);
            free(text);
        }
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    const slc_made_options good = {
        .model = "gpt2-small", .world = 4, .batch = 3, .device_flops = 2e12, .efficiency = 0.25, .bytes_per_s = 1e9};
    slc_made_options bad[12];
    for (int i = 0; i < 12; i++) bad[i] = good;
    bad[0].model = "gpt5";
    bad[1].world = 0;
    bad[2].batch = 0;
    bad[3].context = 1025;
    bad[4].device_flops = INFINITY;
    bad[5].efficiency = 1.5;
    bad[6].bytes_per_s = 0;
    bad[7].latency_s = -1;
    bad[8].kappa = 1.5;
    bad[9].sigma = 0.5;
    bad[10].model = NULL;
    bad[11].update_s_per_element = NAN;
    slc_profile *profile = NULL;
    for (int i = 0; i < 12; i++) {
        assert_int_equal(slc_made_profile(&bad[i], &profile), SLUICE_ERR_ARGUMENT);
        assert_null(profile);
    }
    slc_made_options options = good;
    assert_int_equal(slc_made_cluster("64xA100", &options), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "64xA100-200gbit"));
    assert_int_equal(slc_made_profile(&good, &profile), 0);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_as_published), cmocka_unit_test(times_are_flops_over_speed),
        cmocka_unit_test(blocks_keep_sixteen_numbers), cmocka_unit_test(bf16_halves_what_it_should),
        cmocka_unit_test(the_embedding_is_tied),       cmocka_unit_test(the_embedding_may_be_split),
        cmocka_unit_test(all_are_good_profiles),       cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
