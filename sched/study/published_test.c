/* Tables of published models must have the papers' numbers of parameters and operations, and plans can be made of all
 * of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/status.h"
#include "sched/study/layer_table.h"
#include "sched/study/published.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static slc_profile *make(const char *model, const char *cluster, double ratio)
{
    slc_profile *profile;
    const slc_published_options options = {
        .model = model, .cluster = cluster, .compute_ratio = ratio, .can_recompute = true};
    if (slc_published_profile(&options, &profile)) fail_msg("%s: %s", model, sluice_last_error());
    return profile;
}

/* Parameters and multiplications of a forward, if the paper or the authors' code gives them; 0: it does not. */
static const struct {
    const char *model;
    double parameters, within, products;
} published[] = {
    {"alexnet", 60965224, 0, 0},
    {"vgg16", 138357544, 0, 15.47e9},
    {"resnet50", 25557032, 0, 3.8e9},
    {"resnet152", 60192808, 0, 11.3e9},
    {"wide-resnet50", 68883240, 0, 0},
    {"inception3", 23834568, 0, 5.7e9},
    {"densenet121", 7978856, 0, 2.85e9},
    {"unet", 31030658, 0, 0},
    {"vit-huge", 632e6, 0.003, 162e9},
    {"mixer-large", 208e6, 0.01, 0},
    {"bert-large", 335141888, 0.001, 0},
    {"gpt2-xl", 1557611200, 0, 0},
    {"t5-11b", 11.3e9, 0.01, 0},
    {"transformer-big", 213e6, 0.02, 0},
    {"switch-base", 7.4e9, 0.02, 0},
    {"mixtral-8x7b", 46.7e9, 0.002, 0},
    {"gemma-2b", 2.5e9, 0.01, 0},
    {"llama3-8b", 8030261248, 0, 0},
    {"llama3-405b", 405.9e9, 0.001, 0},
    {"deep-512", 512.0 * 1024 * 1025, 0, 0},
    {"gnmt", 278e6, 0.15, 0},
    {"big-lstm", 1.8e9, 0.1, 0},
    {"dlrm", 540e6, 0.01, 0},
};
enum { MODELS = sizeof published / sizeof *published };

static void parameters_are_as_published(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        slc_profile *profile = make(published[i].model, "8xcpu-10gbit", 1);
        double sum = 0;
        for (uint32_t u = 0; u < profile->job.unit_count; u++) sum += (double)profile->parameters[u];
        double wanted = published[i].parameters;
        if (fabs(sum - wanted) > published[i].within * wanted)
            fail_msg("%s has %.0f parameters, not %.0f", published[i].model, sum, wanted);
        slc_profile_destroy(profile);
    }
    assert_null(slc_published_name(MODELS));
}

static const slc_layer_model *find_image_model(const char *name)
{
    const slc_layer_model *m = slc_image_models;
    while (strcmp(m->name, name)) m++;
    return m;
}

static void operations_are_as_published(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        if (!(published[i].products > 0)) continue;
        slc_layer_table table = {0};
        double flops = 0;
        find_image_model(published[i].model)->write(&table);
        for (uint32_t l = 0; l < table.count; l++) flops += table.layers[l].flops;
        slc_layer_table_fini(&table);
        if (fabs(flops / 2 / published[i].products - 1) > 0.05)
            fail_msg("%s takes %.3g multiplications, not %.3g", published[i].model, flops / 2, published[i].products);
    }
}

/* The batch is the least power of two that reaches the ratio. */
static void the_batch_follows_the_ratio(void **state)
{
    (void)state;
    slc_profile *less = make("resnet50", "8xcpu-10gbit", 0.5), *more = make("resnet50", "8xcpu-10gbit", 0.501);
    double sums[2] = {0};
    for (uint32_t s = 0; s < slc_job_slots(&less->job); s++) {
        sums[0] += less->times.slot_s[s];
        sums[1] += more->times.slot_s[s];
    }
    assert_true(sums[1] >= sums[0]);
    double exact = log2(sums[1] / sums[0]);
    assert_true(fabs(exact - round(exact)) < 1e-9);
    slc_profile_destroy(less);
    slc_profile_destroy(more);
}

static void plans_are_valid(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        if (!strcmp(published[i].model, "deep-512")) continue; /* takes seconds under the schedulers */
        slc_profile *profile = make(published[i].model, "64xA100-200gbit", 1);
        slc_strategy *strategies = malloc(profile->job.unit_count * sizeof *strategies);
        assert_non_null(strategies);
        for (uint32_t u = 0; u < profile->job.unit_count; u++) strategies[u] = SLC_FSDP;
        const slc_scheduling in = {
            .job = &profile->job, .strategies = strategies, .times = &profile->times, .limit = UINT64_MAX};
        slc_plan *plan = NULL;
        if (slc_plan_make(&in, &slc_scheduler_one_ahead, &plan) || slc_plan_validate(&profile->job, plan))
            fail_msg("%s: %s", published[i].model, sluice_last_error());
        slc_plan_destroy(plan);
        free(strategies);
        slc_profile_destroy(profile);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    slc_profile *profile;
    slc_published_options o = {.model = "vgg17", .cluster = "8xcpu-10gbit", .compute_ratio = 1};
    assert_int_equal(slc_published_profile(&o, &profile), SLUICE_ERR_ARGUMENT);
    o.model = "vgg16";
    o.compute_ratio = NAN;
    assert_int_equal(slc_published_profile(&o, &profile), SLUICE_ERR_ARGUMENT);
    o.compute_ratio = 1;
    o.cluster = "a garage";
    assert_int_equal(slc_published_profile(&o, &profile), SLUICE_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_as_published), cmocka_unit_test(operations_are_as_published),
        cmocka_unit_test(the_batch_follows_the_ratio), cmocka_unit_test(plans_are_valid),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
