/* Ranks train together only if every setting of every optimizer is alike: each one that the table has is changed on one
 * rank by the least step there is, and every rank is refused with its name. A new row of the table is tested by being
 * there. */
#include "lib/optim/optimizers.h"
#include "tests/support/ranks.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

/* Changes a setting to the value next to its default that its range has. */
static void change(sluice_config *config, const slc_optimizer_setting *s)
{
    void *field = (char *)config + s->offset;
    if (s->type == SLC_OPTIMIZER_REAL)
        *(double *)field = nextafter(*(double *)field, s->fallback > s->least ? s->least : s->most);
    else if (s->type == SLC_OPTIMIZER_WHOLE)
        *(uint64_t *)field += 1;
    else
        *(bool *)field = !*(bool *)field;
}

static sluice_status commit(sluice_world *world, const sluice_config *config)
{
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *param;
    sluice_status status = sluice_runtime_create(world, config, &rt);
    if (status) return status;
    status = sluice_layer_add(rt, "a", &layer);
    if (!status) status = sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = 100), &param);
    if (!status) status = sluice_runtime_commit(rt);
    sluice_runtime_destroy(rt);
    return status;
}

static int refuse(sluice_world *world, int rank, const slc_optimizer_row *row, const slc_optimizer_group *group,
                  const slc_optimizer_setting *s)
{
    char name[64];
    sluice_config config;
    sluice_config_init(&config);
    config.optimizer_name = row->name;
    config.strategy = "dp";
    config.schedule = "serial";
    if (rank) change(&config, s);
    sluice_status status = commit(world, &config);
    snprintf(name, sizeof name, ": %s.%s is ", group->name, s->name);
    if (status == SLUICE_ERR_MISMATCH && strstr(sluice_last_error(), name)) return 0;
    fprintf(stderr, "%s: ranks with different %s.%s: %s, %s\n", row->name, group->name, s->name,
            sluice_status_name(status), status ? sluice_last_error() : "they train");
    return 1;
}

static int refuse_each(int rank, int size, void *context)
{
    (void)size;
    (void)context;
    sluice_world *world;
    int failed = 0;
    RANK_CHECK(!sluice_world_create(NULL, &world));
    for (size_t o = 0; slc_optimizer_at(o); o++)
        for (size_t g = 0; slc_optimizer_group_at(g); g++)
            for (uint32_t i = 0; i < slc_optimizer_group_at(g)->count; i++)
                failed |= refuse(world, rank, slc_optimizer_at(o), slc_optimizer_group_at(g),
                                 &slc_optimizer_group_at(g)->settings[i]);
    sluice_world_destroy(world);
    return failed;
}

static void ranks_with_different_settings_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, refuse_each, NULL, 120), 0);
}

/* sluice/config.h lists the default of every field, which config_defaults_test.sh holds against the structs: the
 * fields inside structs are the table's settings, in any order. */
static void every_field_is_in_the_table(void **state)
{
    (void)state;
    char line[256], struct_name[32], field[32];
    size_t listed = 0, settings = 0;
    FILE *header = fopen(SLUICE_CONFIG_HEADER, "r");
    assert_non_null(header);
    while (fgets(line, sizeof line, header)) {
        if (sscanf(line, " *   %31[a-z0-9_].%31[a-z0-9_] = ", struct_name, field) != 2) continue;
        bool found = false;
        for (size_t g = 0; slc_optimizer_group_at(g); g++)
            for (uint32_t i = 0; i < slc_optimizer_group_at(g)->count; i++)
                found |= !strcmp(slc_optimizer_group_at(g)->name, struct_name) &&
                         !strcmp(slc_optimizer_group_at(g)->settings[i].name, field);
        if (!found) fail_msg("%s.%s is not in the table of optimizers", struct_name, field);
        listed++;
    }
    fclose(header);
    for (size_t g = 0; slc_optimizer_group_at(g); g++) settings += slc_optimizer_group_at(g)->count;
    assert_int_equal(listed, settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_with_different_settings_are_refused),
        cmocka_unit_test(every_field_is_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
