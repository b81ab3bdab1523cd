/* A model whose registration runs out of memory says so, wherever that is. */
#include "tests/support/base/failing_memory.h"
#include "tests/support/model/lone_model.h"
#include "lib/model/gradient_keeper.h"

#include <stdio.h>

static const char *const models[] = {"gpt2", "beit_masked_shared"};

typedef struct {
    sluice_world *world;
    sluice_model_config model;
} registration;

static sluice_status registers(void *context)
{
    const registration *r = context;
    sluice_config config;
    sluice_runtime *rt = NULL;
    sluice_model *model = NULL;
    sluice_config_init(&config);
    config.strategy = "dp";
    config.schedule = "serial";
    config.optimizer = &slc_gradient_keeper;
    config.threads = 1;
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = 2, .length = r->model.image_size ? 0 : 8);
    sluice_status status = sluice_runtime_create(r->world, &config, &rt);
    if (!status) status = sluice_model_create(rt, &r->model, &options, &model);
    if (!status) status = sluice_runtime_commit(rt);
    sluice_model_destroy(model);
    sluice_runtime_destroy(rt);
    return status;
}

static void registering_tells(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        char path[600];
        registration r = {.model = SLUICE_INIT(sluice_model_config)};
        snprintf(path, sizeof path, "%s/%s", SLUICE_GOLDEN_DIR, models[m]);
        works(sluice_model_config_read(path, &r.model));
        works(sluice_world_create(NULL, &r.world));
        assert_true(memory_runs_out(models[m], 4096, registers, &r, "packing") >
                    1000); /* the packing can do without some */
        sluice_world_destroy(r.world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(registering_tells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
