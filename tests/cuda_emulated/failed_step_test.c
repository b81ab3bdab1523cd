/* A GPU that fails in the middle of a step says so by the error of some later call, which then names the first slot
 * that has not ended. Every call after it returns that error, and nothing waits for ever. Each failure is in a process
 * of its own, because nothing works after it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/scale.h"

#include <emulated.h>
#include <cuda_runtime_api.h>
#include <sluice/model.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 1, LENGTH = 8, ROWS = BATCH * LENGTH };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
} job;

#define OR_RETURN(call)                                                                                                \
    do {                                                                                                               \
        sluice_status status_ = (call);                                                                                \
        if (status_) return status_;                                                                                   \
    } while (0)

static sluice_status begin(job *j)
{
    sluice_config config;
    sluice_model_config gpt2 = SLUICE_INIT(sluice_model_config);
    sluice_config_init(&config);
    config.device = "cuda";
    config.schedule = "one_ahead";
    OR_RETURN(sluice_model_config_named("gpt2", "nano", &gpt2));
    OR_RETURN(sluice_world_create(NULL, &j->world));
    OR_RETURN(sluice_runtime_create(j->world, &config, &j->rt));
    OR_RETURN(sluice_model_create(j->rt, &gpt2, &SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = LENGTH),
                                  &j->model));
    OR_RETURN(sluice_runtime_commit(j->rt));
    return sluice_model_init(j->model, 1);
}

static sluice_status step(job *j)
{
    int32_t tokens[ROWS], targets[ROWS];
    for (int i = 0; i < ROWS; i++) tokens[i] = targets[i] = i * 7 % 256;
    OR_RETURN(sluice_step_begin(j->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3)));
    OR_RETURN(sluice_model_forward(j->model, &SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = targets)));
    OR_RETURN(sluice_model_backward(j->model, NULL));
    return sluice_step_end(j->rt, NULL);
}

static int complain(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, sluice_last_error());
    return 1;
}

/* `operation`: which of the step's operations fails, counted from 1. */
static int fail_at(uint64_t operation)
{
    job j;
    if (begin(&j)) return complain("it does not begin");
    for (int i = 0; i < (test_brief() ? 1 : 3); i++)
        if (step(&j)) return complain("it does not train");
    emulated_fail(operation, cudaErrorIllegalAddress);
    sluice_status status = SLUICE_OK;
    for (int i = 0; i < 3 && !status; i++) status = step(&j);
    if (status != SLUICE_ERR_SYSTEM) return complain("the failure is not told");
    char line[1024];
    snprintf(line, sizeof line, "%s", sluice_last_error());
    if (!strstr(line, "an illegal memory access was encountered")) return complain("it does not say what");
    if (!strstr(line, "; in step ")) return complain("it does not say when");
    if (!strstr(line, " of layer \"") && !strstr(line, "all slots of the pass had ended"))
        return complain("it does not say where");
    printf("operation %d: %s\n", (int)operation, line);
    if (step(&j) != SLUICE_ERR_SYSTEM || strcmp(line, sluice_last_error())) return complain("the error has changed");
    if (sluice_runtime_sync(j.rt) != SLUICE_ERR_SYSTEM) return complain("sync works");
    sluice_model_destroy(j.model);
    sluice_runtime_destroy(j.rt);
    sluice_world_destroy(j.world);
    return 0;
}

static void a_failed_step_says_where(void **state)
{
    (void)state;
    const uint64_t operations[] = {1, 90, 170, 9, 40, 130};
    for (size_t i = 0; i < (test_brief() ? 3 : sizeof operations / sizeof *operations); i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(120); /* it must not wait for ever */
            int code = fail_at(operations[i]);
            fflush(NULL);
            _exit(code);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_failed_step_says_where)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
