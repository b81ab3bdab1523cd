/* docs/porting.md, fourth step: a strategy, a budget, and checkpoints.
 *   cc 4_whole.c $(pkg-config --cflags --libs sluice) -lm -o 4_whole
 *   sluice run -n 2 -- ./4_whole [STRATEGY [BUDGET_BYTES [FOLDER]]] */
#include <math.h>
#include <sluice/sluice.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if (call) exit((fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, sluice_last_error()), 1));                  \
    } while (0)

enum { INPUTS = 8, HIDDEN = 32, LAYERS = 3, BATCH = 48, STEPS = 300, UNSEEN = 1 << 20 };

typedef struct { /* y = tanh(x w + b); the last layer's is linear */
    const char *name;
    int in, out, linear;
    sluice_layer *layer;
    sluice_param *w, *b;
    sluice_activation *y_held, *dy_held;
    float *y, *dy; /* of the batch: the output, the loss's gradient by it */
} dense;

static sluice_world *world;
static sluice_runtime *rt;
static dense layers[LAYERS] = {{.name = "first", .in = INPUTS, .out = HIDDEN},
                               {.name = "second", .in = HIDDEN, .out = HIDDEN},
                               {.name = "third", .in = HIDDEN, .out = 1, .linear = 1}};

/* A number in [-1, 1) that only depends on `seed`. */
static float drawn(uint64_t seed)
{
    seed = (seed + 1) * 0x9e3779b97f4a7c15u;
    seed = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9u;
    return (float)((seed ^ seed >> 32) >> 40) / (1 << 23) - 1;
}

/* `count` examples from number `first` on: their inputs and what the network is to say. */
static void make_examples(long first, int count, float *x, float *target)
{
    for (int n = 0; n < count; n++) {
        float *in = x + n * INPUTS;
        for (int i = 0; i < INPUTS; i++) in[i] = drawn((uint64_t)(first + n) * INPUTS + (uint64_t)i);
        target[n] = in[0] * in[1] + sinf(2 * in[2]);
    }
}

static float *zeros(size_t count)
{
    float *memory = calloc(count, sizeof *memory);
    if (!memory) exit((fprintf(stderr, "no memory\n"), 1));
    return memory;
}

static void add_layer(dense *d)
{
    CHECK(sluice_layer_add(rt, d->name, &d->layer));
    CHECK(sluice_param_add(d->layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = d->in * d->out), &d->w));
    CHECK(sluice_param_add(d->layer, &SLUICE_INIT(sluice_param_desc, .name = "b", .count = d->out, .no_decay = true),
                           &d->b));
    const size_t bytes = sizeof(float) * BATCH * d->out;
    if (d->linear) { /* the last output stays the program's: in evaluation it is read after the last layer's forward */
        d->y = zeros(BATCH * d->out);
        d->dy = zeros(BATCH * d->out);
        CHECK(sluice_runtime_reserve(rt, "last output", 2 * bytes));
        return;
    }
    const sluice_activation_desc y =
        SLUICE_INIT(sluice_activation_desc, .name = "y", .bytes = bytes, .last = SLUICE_BACKWARD);
    CHECK(sluice_activation_add(d->layer, &y, &d->y_held));
}

/* It begins in the backward of the layer behind, `next`, and ends in d's. */
static void add_dy(dense *d, dense *next)
{
    const sluice_activation_desc dy = {.struct_size = sizeof(sluice_activation_desc),
                                       .name = "dx",
                                       .bytes = sizeof(float) * BATCH * d->out,
                                       .first = SLUICE_BACKWARD,
                                       .last_handle = d->layer,
                                       .last = SLUICE_BACKWARD};
    CHECK(sluice_activation_add(next->layer, &dy, &d->dy_held));
}

/* Activations are found again in each step, because the end of the one before may have moved them. */
static void find_activations(void)
{
    for (int l = 0; l + 1 < LAYERS; l++) {
        layers[l].y = sluice_activation_data(layers[l].y_held);
        layers[l].dy = sluice_activation_data(layers[l].dy_held);
    }
}

static void write_first_values(dense *d, uint64_t seed)
{
    float w[HIDDEN * HIDDEN];
    for (int i = 0; i < d->in * d->out; i++) w[i] = drawn(seed * 1000003 + i) / sqrtf(d->in);
    CHECK(sluice_param_write(d->w, 0, d->in * d->out, w)); /* on every rank; biases are zero */
}

static void forward(dense *d, const float *x, int count)
{
    CHECK(sluice_forward_begin(d->layer));
    const float *w = sluice_param_value(d->w), *b = sluice_param_value(d->b);
    CHECK(!w || !b);
    for (int k = 0; k < count * d->out; k++) {
        float sum = b[k % d->out];
        for (int i = 0; i < d->in; i++) sum += x[k / d->out * d->in + i] * w[i * d->out + k % d->out];
        d->y[k] = d->linear ? sum : tanhf(sum);
    }
    CHECK(sluice_forward_end(d->layer));
}

/* The gradient by the input goes to dx, where that is not NULL. */
static void backward(dense *d, const float *x, float *dx, int count)
{
    CHECK(sluice_backward_begin(d->layer));
    const float *w = sluice_param_value(d->w);
    float *dw = sluice_param_gradient(d->w), *db = sluice_param_gradient(d->b);
    CHECK(!w || !dw || !db);
    for (int k = 0; dx && k < count * d->in; k++) dx[k] = 0;
    for (int k = 0; k < count * d->out; k++) {
        int n = k / d->out, o = k % d->out;
        float dsum = d->dy[k] * (d->linear ? 1 : 1 - d->y[k] * d->y[k]);
        db[o] += dsum;
        for (int i = 0; i < d->in; i++) {
            dw[i * d->out + o] += x[n * d->in + i] * dsum;
            if (dx) dx[n * d->in + i] += w[i * d->out + o] * dsum;
        }
    }
    CHECK(sluice_backward_end(d->layer));
}

/* The mean of half the squared error; its gradient goes to dy, where that is not NULL. */
static double loss_of(const float *y, const float *target, float *dy, int count)
{
    double loss = 0;
    for (int n = 0; n < count; n++) {
        float error = y[n] - target[n];
        loss += 0.5 * error * error / count;
        if (dy) dy[n] = error / count;
    }
    return loss;
}

/* Over the ranks. */
static double mean(double value)
{
    CHECK(sluice_world_all_reduce(world, &value, 1));
    return value / sluice_world_size(world);
}

static double train_step(long first, int count, float *x, float *target)
{
    make_examples(first, count, x, target);
    find_activations();
    CHECK(sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-2)));
    for (int l = 0; l < LAYERS; l++) forward(&layers[l], l ? layers[l - 1].y : x, count);
    double loss = loss_of(layers[LAYERS - 1].y, target, layers[LAYERS - 1].dy, count);
    for (int l = LAYERS; l-- > 0;) backward(&layers[l], l ? layers[l - 1].y : x, l ? layers[l - 1].dy : NULL, count);
    CHECK(sluice_step_end(rt, NULL));
    return loss;
}

static double evaluate(long first, int count, float *x, float *target)
{
    make_examples(first, count, x, target);
    find_activations();
    CHECK(sluice_evaluate_begin(rt));
    for (int l = 0; l < LAYERS; l++) forward(&layers[l], l ? layers[l - 1].y : x, count);
    CHECK(sluice_evaluate_end(rt));
    return loss_of(layers[LAYERS - 1].y, target, NULL, count);
}

/* Goes on where the folder's last checkpoint ends, if there is one. */
static void resume(const char *folder)
{
    bool found;
    uint64_t step;
    CHECK(sluice_checkpoint_latest(folder, &found, &step));
    if (found) CHECK(sluice_checkpoint_load(rt, folder, NULL, NULL));
}

int main(int argc, char **argv)
{
    const char *folder = argc > 3 ? argv[3] : NULL;
    float x[BATCH * INPUTS], target[BATCH];
    sluice_config config;
    CHECK(sluice_world_create(NULL, &world));
    sluice_config_init(&config); /* AdamW with decay 0.01 */
    if (argc > 1) config.strategy = argv[1];
    if (argc > 2) config.budget_bytes = strtoull(argv[2], NULL, 10);
    CHECK(sluice_runtime_create(world, &config, &rt));
    int rank = sluice_world_rank(world), count = BATCH / sluice_world_size(world);
    for (int l = 0; l < LAYERS; l++) add_layer(&layers[l]);
    for (int l = 0; l + 1 < LAYERS; l++) add_dy(&layers[l], &layers[l + 1]);
    CHECK(sluice_runtime_commit(rt));
    for (int l = 0; l < LAYERS; l++) write_first_values(&layers[l], l);
    if (folder) resume(folder);
    for (int step = (int)sluice_runtime_step(rt) + 1; step <= STEPS; step++) {
        double loss = mean(train_step((long)step * BATCH + rank * count, count, x, target));
        if (rank == 0 && step % 50 == 0) printf("step %d: loss %.5f\n", step, loss);
        if (folder && step % 100 == 0) CHECK(sluice_checkpoint_save(rt, folder, NULL, 0));
    }
    double loss = mean(evaluate(UNSEEN + rank * count, count, x, target));
    if (rank == 0) printf("unseen: loss %.5f\n", loss);
    char hash[65];
    CHECK(sluice_runtime_weights_sha256(rt, hash));
    if (rank == 0) printf("weights %s\n", hash);
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}
