/* The configuration knows which compressed optimizers there are, and refuses onebit without one. */
#include "lib/optim/optimizers.h"
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

typedef struct {
    sluice_world *world;
    sluice_config config;
} fixture;

static int setup(void **state)
{
    static fixture f;
    become_rank(0, 1, free_port());
    if (sluice_world_create(NULL, &f.world)) return 1;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    sluice_world_destroy(f->world);
    return 0;
}

static sluice_config defaults(const char *optimizer)
{
    sluice_config config;
    sluice_config_init(&config);
    config.optimizer_name = optimizer;
    config.schedule = "serial";
    return config;
}

static void refuses(fixture *f, const sluice_config *config, sluice_status expected, const char *why)
{
    sluice_runtime *rt;
    assert_int_equal(sluice_runtime_create(f->world, config, &rt), expected);
    assert_non_null(strstr(sluice_last_error(), why));
}

static void only_named_optimizers(void **state)
{
    sluice_config config = defaults("onebit_sgd");
    char names[SLC_OPTIMIZER_NAMES_BYTES];
    refuses(*state, &config, SLUICE_ERR_ARGUMENT, slc_optimizer_names(SLC_OPTIMIZERS_ALL, names));
    config = defaults("onebit_adam");
    config.onebit.freeze_change = 1;
    refuses(*state, &config, SLUICE_ERR_ARGUMENT, "freezes");
    config = defaults("onebit_lamb");
    config.onebit.compat = true, config.onebit.freeze_step = 1;
    refuses(*state, &config, SLUICE_ERR_ARGUMENT, "give a freeze_step of 2 or more");
    config = defaults("onebit_adam");
    config.adamw.beta2 = 1;
    refuses(*state, &config, SLUICE_ERR_ARGUMENT, "beta");
}

static void each_cannot_be_compressed(void **state)
{
    sluice_config config = defaults("onebit_adam");
    config.accumulate = SLUICE_ACCUMULATE_EACH;
    refuses(*state, &config, SLUICE_ERR_UNSUPPORTED, "use accumulate last");
}

static sluice_status keeps_all(const sluice_update *update, void *context)
{
    (void)update;
    (void)context;
    return SLUICE_OK;
}

static void onebit_is_for_compressed_optimizers(void **state)
{
    char compressed[SLC_OPTIMIZER_NAMES_BYTES];
    slc_optimizer_names(SLC_OPTIMIZERS_COMPRESSED, compressed);
    for (size_t i = 0; slc_optimizer_at(i); i++) {
        sluice_config config = defaults(slc_optimizer_at(i)->name);
        config.strategy = "onebit";
        if (!slc_optimizer_at(i)->compressed) refuses(*state, &config, SLUICE_ERR_ARGUMENT, compressed);
    }
    const sluice_optimizer own = SLUICE_INIT(sluice_optimizer, .name = "own", .update = keeps_all);
    sluice_config config = defaults("onebit_adam");
    config.strategy = "onebit";
    config.optimizer = &own;
    refuses(*state, &config, SLUICE_ERR_ARGUMENT, compressed);
}

/* Commits with a layer's strategy, a strategy file's, and a re-plan's. */
static sluice_status commit_with(fixture *f, const char *optimizer, const char *strategy, const char *layers,
                                 const char *replan)
{
    sluice_config config = defaults(optimizer);
    config.strategy = strategy;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *param;
    sluice_status status = sluice_runtime_create(f->world, &config, &rt);
    if (status) return status;
    status = sluice_layer_add(rt, "a", &layer);
    if (!status && layers) status = sluice_layer_strategy(layer, layers);
    if (!status) status = sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = 100), &param);
    if (!status) status = sluice_runtime_commit(rt);
    if (!status && replan) status = sluice_runtime_replan(rt, replan, NULL, 0);
    sluice_runtime_destroy(rt);
    return status;
}

static void however_it_is_asked_for(void **state)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/sluice-onebit-%d.json", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"layers\": {\"*\": \"onebit\"}}", file);
    fclose(file);
    assert_int_equal(commit_with(*state, "adamw", "dp", "onebit", NULL), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "layer \"a\""));
    assert_int_equal(commit_with(*state, "adamw", path, NULL, NULL), SLUICE_ERR_ARGUMENT);
    char names[SLC_OPTIMIZER_NAMES_BYTES]; /* the planner, which sees no table of optimizers, has these by heart */
    assert_non_null(strstr(sluice_last_error(), "onebit needs a compressed optimizer"));
    assert_non_null(strstr(sluice_last_error(), slc_optimizer_names(SLC_OPTIMIZERS_COMPRESSED, names)));
    assert_int_equal(commit_with(*state, "adamw", "dp", NULL, "onebit"), SLUICE_ERR_ARGUMENT);
    assert_int_equal(commit_with(*state, "onebit_adam", "dp", "onebit", "onebit"), SLUICE_OK);
    assert_int_equal(commit_with(*state, "onebit_adam", path, NULL, "auto"), SLUICE_OK);
    assert_int_equal(commit_with(*state, "onebit_adam", "onebit", NULL, path), SLUICE_OK);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_named_optimizers),
        cmocka_unit_test(each_cannot_be_compressed),
        cmocka_unit_test(onebit_is_for_compressed_optimizers),
        cmocka_unit_test(however_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
