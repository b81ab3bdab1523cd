/* Rates of groups and numbers of micro-batches that a program computed wrongly are refused before the step has begun,
 * by name, and the step can begin with better ones. That plans of every kind heed them is engine_test's. */
#include "tests/support/ranks.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { MICRO_BATCHES = 3 };

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
    config.sgd.momentum = 0;
    config.micro_batches = MICRO_BATCHES;
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

static int run_micro_batch(program *p, uint32_t m, float add)
{
    sluice_task task = SLUICE_INIT(sluice_task);
    RANK_CHECK(!sluice_step_next(p->rt, &task) && task.kind == SLUICE_TASK_FORWARD && task.micro_batch == m);
    RANK_CHECK(!sluice_forward_begin(p->layer) && !sluice_forward_end(p->layer));
    RANK_CHECK(!sluice_step_next(p->rt, &task) && task.kind == SLUICE_TASK_BACKWARD && task.micro_batch == m);
    RANK_CHECK(!sluice_backward_begin(p->layer));
    float *gradient = sluice_param_gradient(p->param);
    for (int i = 0; i < 16; i++) gradient[i] += add;
    RANK_CHECK(!sluice_backward_end(p->layer));
    return 0;
}

static int train_step(program *p, const sluice_step_options *options)
{
    RANK_CHECK(!sluice_step_begin(p->rt, options));
    for (uint32_t m = 0; m < MICRO_BATCHES; m++)
        if (run_micro_batch(p, m, 1)) return 1;
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
    options.group_rates = NULL; /* all have learning_rate */
    if (train_step(&p, &options)) return 1;
    RANK_CHECK(!sluice_param_read(p.param, 0, 1, &value) && value == -0.125f - 0.5f);
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

/* The value falls by the mean of the gradients of the micro-batches that run. */
static int fewer_micro_batches(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p;
    float value, wanted = 0;
    sluice_task task = SLUICE_INIT(sluice_task);
    if (begin(&p, "sgd")) return 1;
    sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 1, .micro_batches = 4);
    RANK_CHECK(sluice_step_begin(p.rt, &options) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "step_begin: 4 micro_batches, but the config has 3"));
    for (uint32_t count = 0; count <= 3; count++) {
        const uint32_t run = count ? count : 3;
        sluice_step_report report = SLUICE_INIT(sluice_step_report);
        options.micro_batches = count;
        RANK_CHECK(!sluice_step_begin(p.rt, &options));
        for (uint32_t m = 0; m < run; m++)
            if (run_micro_batch(&p, m, (float)(1 + 2 * m))) return 1;
        RANK_CHECK(!sluice_step_next(p.rt, &task) && task.kind == SLUICE_TASK_END && task.micro_batch == run);
        RANK_CHECK(!sluice_step_end(p.rt, &report));
        wanted -= (float)run; /* the mean of 1, 3, 5 ... */
        RANK_CHECK(!sluice_param_read(p.param, 0, 1, &value) && value == wanted);
    }
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

static void micro_batches(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, fewer_micro_batches, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_rates),
        cmocka_unit_test(compressed_optimizers),
        cmocka_unit_test(micro_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
