/* Layers and parameters are found by their names however many there are: registering thousands compares each name with
 * few others. */
#include "lib/engine/model/registration.h"
#include "lib/engine/runtime.h"
#include "tests/support/base/folder.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sluice/sluice.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS = 3000, PARAMS = 2, FEW = 8 };

static uint64_t comparisons;

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);

int __wrap_strcmp(const char *a, const char *b)
{
    comparisons++;
    return __real_strcmp(a, b);
}

static sluice_status add_param(sluice_layer *layer, const char *name)
{
    sluice_param *param;
    return sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = name, .count = 16), &param);
}

static void register_layers(sluice_runtime *rt)
{
    for (uint32_t i = 0; i < LAYERS; i++) {
        char name[24];
        sluice_layer *layer;
        snprintf(name, sizeof name, "h.%u", i);
        works(sluice_layer_add(rt, name, &layer));
        works(add_param(layer, "weight"));
        works(add_param(layer, "bias"));
    }
}

static void names_are_found_among_thousands(void **state)
{
    (void)state;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_config config;
    sluice_config_init(&config);
    works(sluice_world_create(NULL, &world));
    works(sluice_runtime_create(world, &config, &rt));
    assert_null(slc_find_layer(rt, "h.0"));
    comparisons = 0;
    register_layers(rt);
    if (comparisons > FEW * LAYERS * (1 + PARAMS))
        fail_msg("%llu comparisons of names for %d layers", (unsigned long long)comparisons, (int)LAYERS);
    for (uint32_t i = 0; i < LAYERS; i++) {
        char name[24];
        snprintf(name, sizeof name, "h.%u", i);
        assert_ptr_equal(slc_find_layer(rt, name), rt->model.layers[i]);
        assert_int_equal(sluice_layer_add(rt, name, &layer), SLUICE_ERR_ARGUMENT);
        assert_non_null(strstr(sluice_last_error(), "is there already"));
        assert_int_equal(add_param(rt->model.layers[i], "bias"), SLUICE_ERR_ARGUMENT);
        assert_non_null(strstr(sluice_last_error(), "is there already"));
    }
    assert_null(slc_find_layer(rt, "h.3000"));
    assert_null(slc_find_layer(rt, ""));
    assert_int_equal(rt->model.layer_count, LAYERS);
    assert_int_equal(rt->model.param_count, LAYERS * PARAMS);
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_found_among_thousands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
