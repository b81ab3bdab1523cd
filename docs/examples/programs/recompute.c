/* docs/recomputation.md: blocks whose wide middle is computed again in backward where memory is short.
 *   cc recompute.c $(pkg-config --cflags --libs sluice) -lm -o recompute
 *   sluice run -n 2 -- ./recompute [none|auto|all [PERCENT_OF_DP]] */
#include <math.h>
#include <sluice/sluice.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if (call) exit((fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, sluice_last_error()), 1));                  \
    } while (0)

enum { WIDTH = 16, WIDE = 256, BLOCKS = 4, BATCH = 192, STEPS = 40 };

typedef struct { /* y = x + tanh(x in + bias) out */
    char name[24];
    sluice_layer *layer;
    sluice_param *in, *bias, *out;
    sluice_activation *middle, *y, *dx; /* tanh(x in + bias); the output; the gradient by the input */
} block;

static sluice_world *world;
static sluice_runtime *rt;
static block blocks[BLOCKS];
static float x[BATCH * WIDTH], target[BATCH * WIDTH], dy[BATCH * WIDTH]; /* the program's own */

/* A number in [-1, 1) that only depends on `seed`. */
static float drawn(uint64_t seed)
{
    seed = (seed + 1) * 0x9e3779b97f4a7c15u;
    seed = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9u;
    return (float)((seed ^ seed >> 32) >> 40) / (1 << 23) - 1;
}

static void add_block(int number)
{
    block *b = &blocks[number];
    snprintf(b->name, sizeof b->name, "block.%d", number);
    CHECK(sluice_layer_add(rt, b->name, &b->layer));
    CHECK(sluice_layer_can_recompute(b->layer, true));
    CHECK(sluice_param_add(b->layer, &SLUICE_INIT(sluice_param_desc, .name = "in", .count = WIDTH * WIDE), &b->in));
    CHECK(sluice_param_add(b->layer, &SLUICE_INIT(sluice_param_desc, .name = "bias", .count = WIDE, .no_decay = true),
                           &b->bias));
    CHECK(sluice_param_add(b->layer, &SLUICE_INIT(sluice_param_desc, .name = "out", .count = WIDE * WIDTH), &b->out));

    /* This block's forward writes it and this block's backward alone reads it. */
    CHECK(sluice_activation_add(b->layer,
                                &SLUICE_INIT(sluice_activation_desc, .name = "middle",
                                             .bytes = sizeof(float) * BATCH * WIDE, .last = SLUICE_BACKWARD,
                                             .recomputable = true),
                                &b->middle));
    /* The next block's backward reads it, so it is kept. */
    char next[24];
    snprintf(next, sizeof next, "block.%d", number + 1);
    CHECK(sluice_activation_add(b->layer,
                                &SLUICE_INIT(sluice_activation_desc, .name = "y", .bytes = sizeof x,
                                             .last_layer = number + 1 < BLOCKS ? next : NULL, .last = SLUICE_BACKWARD),
                                &b->y));
    if (number == 0) return;
    CHECK(sluice_activation_add(b->layer,
                                &SLUICE_INIT(sluice_activation_desc, .name = "dx", .bytes = sizeof x,
                                             .first = SLUICE_BACKWARD, .last_handle = blocks[number - 1].layer,
                                             .last = SLUICE_BACKWARD),
                                &b->dx));
}

static void write_first_values(block *b, uint64_t seed)
{
    float values[WIDTH * WIDE];
    for (int i = 0; i < WIDTH * WIDE; i++) values[i] = drawn(seed * 1000003 + (uint64_t)i) / 4;
    CHECK(sluice_param_write(b->in, 0, WIDTH * WIDE, values));
    for (int i = 0; i < WIDTH * WIDE; i++) values[i] = drawn(seed * 1000033 + (uint64_t)i) / 16;
    CHECK(sluice_param_write(b->out, 0, WIDTH * WIDE, values));
}

/* Computes a block's middle activation. The forward and the recomputation both call it, so it writes recomputable
 * memory and nothing else. */
static void compute_middle(block *b, const float *input, int count)
{
    const float *in = sluice_param_value(b->in), *bias = sluice_param_value(b->bias);
    float *middle = sluice_activation_data(b->middle);
    CHECK(!in || !bias || !middle);
    for (int n = 0; n < count; n++) {
        for (int w = 0; w < WIDE; w++) {
            float sum = bias[w];
            for (int i = 0; i < WIDTH; i++) sum += input[n * WIDTH + i] * in[i * WIDE + w];
            middle[n * WIDE + w] = tanhf(sum);
        }
    }
}

static void forward(block *b, const float *input, int count)
{
    CHECK(sluice_forward_begin(b->layer));
    compute_middle(b, input, count);
    const float *out = sluice_param_value(b->out), *middle = sluice_activation_data(b->middle);
    float *y = sluice_activation_data(b->y);
    for (int n = 0; n < count; n++) {
        for (int o = 0; o < WIDTH; o++) {
            float sum = input[n * WIDTH + o];
            for (int w = 0; w < WIDE; w++) sum += middle[n * WIDE + w] * out[w * WIDTH + o];
            y[n * WIDTH + o] = sum;
        }
    }
    CHECK(sluice_forward_end(b->layer));
}

/* `dinput` is NULL for the first block. */
static void backward(block *b, const float *input, const float *doutput, float *dinput, int count)
{
    if (sluice_layer_recomputes(b->layer)) {
        CHECK(sluice_recompute_begin(b->layer));
        compute_middle(b, input, count);
        CHECK(sluice_recompute_end(b->layer));
    }
    CHECK(sluice_backward_begin(b->layer));
    const float *in = sluice_param_value(b->in), *out = sluice_param_value(b->out);
    const float *middle = sluice_activation_data(b->middle);
    float *din = sluice_param_gradient(b->in), *dbias = sluice_param_gradient(b->bias);
    float *dout = sluice_param_gradient(b->out);
    CHECK(!in || !out || !din || !dbias || !dout);
    if (dinput) memcpy(dinput, doutput, sizeof(float) * WIDTH * (size_t)count);
    for (int n = 0; n < count; n++) {
        for (int w = 0; w < WIDE; w++) {
            const float m = middle[n * WIDE + w];
            float dm = 0;
            for (int o = 0; o < WIDTH; o++) {
                dm += doutput[n * WIDTH + o] * out[w * WIDTH + o];
                dout[w * WIDTH + o] += doutput[n * WIDTH + o] * m;
            }
            dm *= 1 - m * m;
            dbias[w] += dm;
            for (int i = 0; i < WIDTH; i++) {
                din[i * WIDE + w] += input[n * WIDTH + i] * dm;
                if (dinput) dinput[n * WIDTH + i] += in[i * WIDE + w] * dm;
            }
        }
    }
    CHECK(sluice_backward_end(b->layer));
}

static const float *input_of(int number)
{
    return number ? sluice_activation_data(blocks[number - 1].y) : x;
}

/* One step on this rank's part of a batch; the mean loss over the ranks. */
static double train_step(int step, int first, int count)
{
    for (int i = 0; i < count * WIDTH; i++) {
        x[i] = drawn(((uint64_t)step * BATCH + (uint64_t)first) * WIDTH + (uint64_t)i);
        target[i] = sinf(3 * x[i]);
    }
    CHECK(sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 3e-3)));
    for (int l = 0; l < BLOCKS; l++) forward(&blocks[l], input_of(l), count);
    const float *y = sluice_activation_data(blocks[BLOCKS - 1].y);
    double loss = 0;
    for (int i = 0; i < count * WIDTH; i++) {
        dy[i] = (y[i] - target[i]) / (float)(count * WIDTH);
        loss += 0.5 * (y[i] - target[i]) * (y[i] - target[i]) / (count * WIDTH);
    }
    for (int l = BLOCKS; l-- > 0;) {
        const float *doutput = l + 1 < BLOCKS ? sluice_activation_data(blocks[l + 1].dx) : dy;
        backward(&blocks[l], input_of(l), doutput, l ? sluice_activation_data(blocks[l].dx) : NULL, count);
    }
    CHECK(sluice_step_end(rt, NULL));
    CHECK(sluice_world_all_reduce(world, &loss, 1));
    return loss / sluice_world_size(world);
}

static void print_plan(void)
{
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    CHECK(sluice_runtime_memory(rt, &memory));
    int again = 0;
    for (int l = 0; l < BLOCKS; l++) again += sluice_layer_recomputes(blocks[l].layer);
    printf("recomputed: %d of %d blocks; planned: %.0f KiB of %.0f\n", again, BLOCKS,
           (double)memory.planned_bytes / 1024, (double)memory.budget_bytes / 1024);
}

int main(int argc, char **argv)
{
    const char *recompute = argc > 1 ? argv[1] : "auto";
    sluice_config config;
    CHECK(sluice_world_create(NULL, &world));
    sluice_config_init(&config);
    config.recompute = !strcmp(recompute, "none")  ? SLUICE_RECOMPUTE_NONE
                       : !strcmp(recompute, "all") ? SLUICE_RECOMPUTE_ALL
                                                   : SLUICE_RECOMPUTE_AUTO;
    if (argc > 2) config.budget_of_dp = strtod(argv[2], NULL) / 100;
    CHECK(sluice_runtime_create(world, &config, &rt));
    for (int l = 0; l < BLOCKS; l++) add_block(l);
    CHECK(sluice_runtime_reserve(rt, "input, target and the loss's gradient", sizeof x + sizeof target + sizeof dy));
    CHECK(sluice_runtime_commit(rt));
    for (int l = 0; l < BLOCKS; l++) write_first_values(&blocks[l], (uint64_t)l);

    const int rank = sluice_world_rank(world), count = BATCH / sluice_world_size(world);
    double loss = 0;
    for (int step = 1; step <= STEPS; step++) loss = train_step(step, rank * count, count);
    char hash[65];
    CHECK(sluice_runtime_weights_sha256(rt, hash));
    if (rank == 0) {
        print_plan();
        printf("loss %.5f\nweights %s\n", loss, hash);
    }
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}
