/* docs/optimizers.md: an optimizer of the program's own, Lion (Chen et al., arXiv 2302.06675), in a linear regression.
 *   cc lion.c $(pkg-config --cflags --libs sluice) -lm -o lion
 *   sluice run -n 2 -- ./lion [STRATEGY] */
#include <math.h>
#include <sluice/sluice.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if (call) exit((fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, sluice_last_error()), 1));                  \
    } while (0)

enum { INPUTS = 64, OUTPUTS = 32, BATCH = 48, STEPS = 400 };

typedef struct {
    float beta1, beta2, weight_decay;
} lion_settings;

/* c = b1 m + (1-b1) g; m = b2 m + (1-b2) g; w -= lr (sign(c) + wd w). Any range of a parameter: an element's result
 * depends on nothing but that element. */
static sluice_status lion_update(const sluice_update *u, void *context)
{
    const lion_settings *s = context;
    const float rate = (float)u->learning_rate, factor = (float)u->gradient_factor;
    const float decay = u->no_decay ? 0 : s->weight_decay;
    const float *gradient = u->gradient; /* fp32, since the optimizer does not say mixed_precision */
    float *m = u->state[0];
    for (size_t i = 0; i < u->count; i++) {
        const float g = factor * gradient[i]; /* the factor clips */
        const float c = s->beta1 * m[i] + (1 - s->beta1) * g;
        m[i] = s->beta2 * m[i] + (1 - s->beta2) * g;
        u->value[i] -= rate * ((float)((c > 0) - (c < 0)) + decay * u->value[i]);
    }
    return SLUICE_OK;
}

/* A number in [-1, 1) that only depends on `seed`. */
static float drawn(uint64_t seed)
{
    seed = (seed + 1) * 0x9e3779b97f4a7c15u;
    seed = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9u;
    return (float)((seed ^ seed >> 32) >> 40) / (1 << 23) - 1;
}

static float x[BATCH * INPUTS], dy[BATCH * OUTPUTS], teacher[INPUTS * OUTPUTS];

/* The loss of `count` examples from number `first` on, and its gradient by the outputs x w. */
static double look_at_examples(const float *w, long first, int count)
{
    double loss = 0;
    for (int i = 0; i < count * INPUTS; i++) x[i] = drawn((uint64_t)first * INPUTS + (uint64_t)i);
    for (int k = 0; k < count * OUTPUTS; k++) {
        float error = 0;
        for (int i = 0; i < INPUTS; i++) {
            const int at = i * OUTPUTS + k % OUTPUTS;
            error += x[k / OUTPUTS * INPUTS + i] * (w[at] - teacher[at]);
        }
        loss += 0.5 * error * error / (count * OUTPUTS);
        dy[k] = error / (float)(count * OUTPUTS);
    }
    return loss;
}

int main(int argc, char **argv)
{
    lion_settings settings = {.beta1 = 0.9f, .beta2 = 0.99f, .weight_decay = 0.0f};
    const sluice_optimizer lion =
        SLUICE_INIT(sluice_optimizer, .name = "lion", .state_count = 1, .state_name = {"exp_avg"},
                    .update = lion_update, .context = &settings, .concurrent = true);
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *param;
    sluice_config config;
    CHECK(sluice_world_create(NULL, &world));
    sluice_config_init(&config);
    config.optimizer = &lion; /* must outlive the runtime */
    config.clip = 1;
    if (argc > 1) config.strategy = argv[1];
    CHECK(sluice_runtime_create(world, &config, &rt));
    CHECK(sluice_layer_add(rt, "linear", &layer));
    CHECK(sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = INPUTS * OUTPUTS), &param));
    CHECK(sluice_runtime_reserve(rt, "examples", sizeof x + sizeof dy + sizeof teacher));
    CHECK(sluice_runtime_commit(rt)); /* values that nobody writes are zero */

    for (int i = 0; i < INPUTS * OUTPUTS; i++) teacher[i] = drawn(UINT64_C(1) << 40 | (uint64_t)i);
    const int rank = sluice_world_rank(world), count = BATCH / sluice_world_size(world);
    for (int step = 1; step <= STEPS; step++) {
        const double rate = 2e-2 * (1 - (step - 1.0) / STEPS);
        CHECK(sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = rate)));
        CHECK(sluice_forward_begin(layer));
        double loss = look_at_examples(sluice_param_value(param), (long)step * BATCH + rank * count, count);
        CHECK(sluice_forward_end(layer));
        CHECK(sluice_backward_begin(layer));
        float *dw = sluice_param_gradient(param);
        CHECK(!dw);
        for (int k = 0; k < count * OUTPUTS; k++)
            for (int i = 0; i < INPUTS; i++) dw[i * OUTPUTS + k % OUTPUTS] += x[k / OUTPUTS * INPUTS + i] * dy[k];
        CHECK(sluice_backward_end(layer));
        CHECK(sluice_step_end(rt, NULL));
        CHECK(sluice_world_all_reduce(world, &loss, 1));
        if (rank == 0 && step % 100 == 0) printf("step %d: loss %.5f\n", step, loss / sluice_world_size(world));
    }
    char hash[65];
    CHECK(sluice_runtime_weights_sha256(rt, hash));
    if (rank == 0) printf("weights %s\n", hash);
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}
