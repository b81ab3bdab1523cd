/* Measures how much time a BERT saves if its head computes only the rows that have targets: head_rows [SIZE [TOKENS
 * [BATCH [STEPS [THREADS]]]]], which are base 128 4 20 1 if they are not given.
 *
 * One model makes two kinds of steps by turns. In the first kind 15 % of the positions have targets, as in masked text.
 * In the second kind all have, so that the head computes the logits of every row, as it once did for both kinds. Prints
 * the median time of each kind, without its first two steps, and how much shorter the first kind is.
 * tests/command/measure/peers_test.sh covers this file. */
#include <sluice/sluice.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if (call) exit((fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, sluice_last_error()), 1));                  \
    } while (0)

enum { WARM_UP = 2 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Fills a micro-batch of which 15 % of the positions, or all of them, has a target. */
static sluice_batch make_batch(int32_t *tokens, int32_t *targets, size_t positions, uint32_t vocabulary, int all)
{
    for (size_t i = 0; i < positions; i++) {
        tokens[i] = (int32_t)(i * 2654435761u % vocabulary);
        targets[i] = all || i % 20 < 3 ? tokens[i] : -1;
    }
    return SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = targets);
}

static double time_step(sluice_runtime *rt, sluice_model *model, const sluice_batch *batch)
{
    double loss;
    const double start = now_s();
    CHECK(sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-4)));
    CHECK(sluice_model_forward(model, batch));
    CHECK(sluice_model_backward(model, &loss));
    CHECK(sluice_step_end(rt, NULL));
    CHECK(sluice_runtime_sync(rt));
    return now_s() - start;
}

static uint32_t argument(int argc, char **argv, int at, uint32_t fallback)
{
    return argc > at ? (uint32_t)strtoul(argv[at], NULL, 10) : fallback;
}

int main(int argc, char **argv)
{
    const char *size = argc > 1 ? argv[1] : "base";
    const uint32_t tokens_each = argument(argc, argv, 2, 128), batch = argument(argc, argv, 3, 4);
    const uint32_t steps = argument(argc, argv, 4, 20);
    const size_t positions = (size_t)tokens_each * batch;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    sluice_config config;
    sluice_model_config c = SLUICE_INIT(sluice_model_config);
    int32_t *arrays = malloc(2 * positions * sizeof *arrays);
    double *times[2] = {malloc(steps * sizeof(double)), malloc(steps * sizeof(double))};
    if (!arrays || !times[0] || !times[1] || !steps) return 1;
    sluice_config_init(&config);
    config.schedule = "serial";
    config.threads = argument(argc, argv, 5, 1);
    CHECK(sluice_model_config_named("bert", size, &c));
    CHECK(sluice_world_create(NULL, &world));
    CHECK(sluice_runtime_create(world, &config, &rt));
    CHECK(
        sluice_model_create(rt, &c, &SLUICE_INIT(sluice_model_options, .batch = batch, .length = tokens_each), &model));
    CHECK(sluice_runtime_commit(rt));
    CHECK(sluice_model_init(model, 1));
    for (uint32_t i = 0; i < WARM_UP + steps; i++)
        for (int all = 0; all < 2; all++) {
            const sluice_batch made = make_batch(arrays, arrays + positions, positions, c.vocabulary, all);
            const double step_s = time_step(rt, model, &made);
            if (i >= WARM_UP) times[all][i - WARM_UP] = step_s;
        }
    const double some = median(times[0], steps), all = median(times[1], steps);
    printf("bert %s, %u x %u tokens: %.1f ms with targets at 15 %% of the rows, %.1f ms with all: %.1f %% faster\n",
           size, batch, tokens_each, 1e3 * some, 1e3 * all, 100 * (1 - some / all));
    sluice_model_destroy(model);
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    free(arrays);
    free(times[0]);
    free(times[1]);
    return 0;
}
