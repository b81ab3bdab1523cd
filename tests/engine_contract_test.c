/* The hook API as a stranger's program meets it: what has no address says why, and where a call is wrong its line says
 * what to do. */
#include "tests/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LIMIT_S = 120 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[3];
    sluice_param *w[3];
} program;

static int create(program *p, sluice_config *config)
{
    static const char *const names[] = {"first", "second", "third"};
    RANK_CHECK(!sluice_world_create(NULL, &p->world));
    RANK_CHECK(!sluice_runtime_create(p->world, config, &p->rt));
    for (int l = 0; l < 3; l++) {
        RANK_CHECK(!sluice_layer_add(p->rt, names[l], &p->layer[l]));
        RANK_CHECK(!sluice_param_add(p->layer[l], &(sluice_param_desc){.name = "w", .count = 100}, &p->w[l]));
    }
    return 0;
}

static void destroy(program *p)
{
    sluice_runtime_destroy(p->rt);
    sluice_world_destroy(p->world);
}

/* What standard error gets from here on. */
static FILE *listen_to_stderr(void)
{
    FILE *heard = tmpfile();
    if (heard) dup2(fileno(heard), STDERR_FILENO);
    return heard;
}

static int count_heard(FILE *heard, const char *words)
{
    static char text[1 << 16];
    int count = 0;
    rewind(heard);
    text[fread(text, 1, sizeof text - 1, heard)] = 0;
    for (const char *at = text; (at = strstr(at, words)); at++) count++;
    return count;
}

/* Whoever uses the address dies before it can look at sluice_last_error. */
static int null_says_why(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p = {0};
    sluice_config config;
    sluice_config_init(&config);
    sluice_activation *hidden;
    sluice_workspace *space;
    const sluice_activation_desc desc = {.name = "hidden", .bytes = 64};
    if (create(&p, &config)) return 1;
    RANK_CHECK(!sluice_activation_add(p.layer[0], &desc, &hidden));
    RANK_CHECK(!sluice_workspace_add(p.layer[0], &(sluice_workspace_desc){.name = "space", .bytes = 64}, &space));
    FILE *heard = listen_to_stderr();
    RANK_CHECK(heard && !sluice_activation_data(hidden));
    RANK_CHECK(count_heard(heard, "activation \"first.hidden\": it has an address after commit; this is before") == 1);
    RANK_CHECK(!sluice_runtime_commit(p.rt) && sluice_activation_data(hidden));
    for (int i = 0; i < 3; i++) {
        RANK_CHECK(!sluice_param_value(p.w[0]) && !sluice_param_gradient(p.w[1]));
        RANK_CHECK(!sluice_workspace_data(space) && !sluice_param_value(NULL) && !sluice_param_gradient(NULL));
    }
    RANK_CHECK(count_heard(heard, "error: parameter \"first.w\": its value is valid only") == 1);
    RANK_CHECK(count_heard(heard, "error: parameter \"second.w\": its gradient is valid only") == 1);
    RANK_CHECK(count_heard(heard, "error: workspace \"first.space\": it is valid only in the forward") == 1);
    RANK_CHECK(count_heard(heard, "error: param_value: NULL was given") +
                   count_heard(heard, "error: param_gradient: NULL was given") ==
               1);
    RANK_CHECK(count_heard(heard, "this is between steps") == 3);
    RANK_CHECK(!sluice_step_begin(p.rt, &(sluice_step_options){.learning_rate = 1}));
    RANK_CHECK(!sluice_forward_begin(p.layer[0]) && !sluice_param_value(p.w[2]));
    RANK_CHECK(count_heard(heard, "this is the forward (or recomputation) of layer \"first\"") == 1);
    /* A program that does not look at a status hears of the first failure, not of what follows from it. */
    RANK_CHECK(sluice_backward_begin(p.layer[0]) == SLUICE_ERR_ORDER && !sluice_param_gradient(p.w[0]));
    RANK_CHECK(strstr(sluice_last_error(), "a call before this one failed: layer \"first\": backward_begin called"));
    destroy(&p);
    return 0;
}

static void an_address_that_is_not_there_says_why(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, null_says_why, NULL, LIMIT_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_address_that_is_not_there_says_why)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
