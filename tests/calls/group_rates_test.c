/* Rates of groups that a program computed wrongly are refused before the step has begun, by name, and the step can
 * begin with better ones. That each parameter has its group's rate in every plan is engine_test's. */
#include "tests/support/ranks.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *param;
} program;

static int begin(program *p, const char *optimizer)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "dp";
    config.schedule = "serial";
    config.optimizer_name = optimizer;
    RANK_CHECK(!sluice_world_create(NULL, &p->world));
    RANK_CHECK(!sluice_runtime_create(p->world, &config, &p->rt));
    RANK_CHECK(!sluice_layer_add(p->rt, "l", &p->layer));
    sluice_param_desc desc = SLUICE_INIT(sluice_param_desc, .name = "w", .count = 16, .group = 65536);
    RANK_CHECK(sluice_param_add(p->layer, &desc, &p->param) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "layer \"l\": parameter \"w\" is of group 65536; give one below 65536"));
    desc.group = 2;
    RANK_CHECK(!sluice_param_add(p->layer, &desc, &p->param));
    RANK_CHECK(!sluice_runtime_commit(p->rt));
    return 0;
}

static int end(program *p)
{
    sluice_runtime_destroy(p->rt);
    sluice_world_destroy(p->world);
    return 0;
}

static int train_step(program *p, const sluice_step_options *options)
{
    RANK_CHECK(!sluice_step_begin(p->rt, options));
    RANK_CHECK(!sluice_forward_begin(p->layer) && !sluice_forward_end(p->layer));
    RANK_CHECK(!sluice_backward_begin(p->layer));
    float *gradient = sluice_param_gradient(p->param);
    for (int i = 0; i < 16; i++) gradient[i] += 1;
    RANK_CHECK(!sluice_backward_end(p->layer));
    RANK_CHECK(!sluice_step_end(p->rt, NULL));
    return 0;
}

static int refused_rates(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p;
    float value;
    if (begin(&p, "sgd")) return 1;
    sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.5,
                                              .group_rates = (const double[]){1, NAN, 0.25}, .group_count = 2);
    RANK_CHECK(sluice_step_begin(p.rt, &options) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "step_begin: 2 group_rates, but a parameter is of group 2"));
    options.group_count = 3;
    RANK_CHECK(sluice_step_begin(p.rt, &options) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "step_begin: group_rates[1] is nan"));
    options.group_rates = (const double[]){1, 1, 1e300};
    options.learning_rate = 1e10;
    RANK_CHECK(sluice_step_begin(p.rt, &options) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "step_begin: group_rates[2] is 1e+300"));
    options.group_rates = (const double[]){7, 8, 0.25};
    options.learning_rate = 0.5;
    if (train_step(&p, &options)) return 1;
    RANK_CHECK(!sluice_param_read(p.param, 0, 1, &value) && value == -0.125f);
    options.group_rates = NULL; /* all have learning_rate: the momentum is 0.9 + 1 now */
    if (train_step(&p, &options)) return 1;
    RANK_CHECK(!sluice_param_read(p.param, 0, 1, &value) && value == -0.125f - 0.5f * 1.9f);
    return end(&p);
}

/* It compresses all of a unit by one rate. */
static int compressed_optimizer(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p;
    if (begin(&p, "onebit_adam")) return 1;
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.5,
                                                    .group_rates = (const double[]){1, 1, 1}, .group_count = 3);
    RANK_CHECK(sluice_step_begin(p.rt, &options) == SLUICE_ERR_UNSUPPORTED);
    RANK_CHECK(strstr(sluice_last_error(), "the optimizer onebit_adam has one rate for all parameters"));
    return end(&p);
}

static void wrong_rates(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, refused_rates, NULL, 60), 0);
}

static void compressed_optimizers(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, compressed_optimizer, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_rates),
        cmocka_unit_test(compressed_optimizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
