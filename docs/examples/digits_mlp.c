/* A user's own training program: a two-layer perceptron on scikit-learn's handwritten digits (1,797 of 8 x 8 pixels).
 *   cc digits_mlp.c $(pkg-config --cflags --libs sluice) -lz -lm -o digits_mlp
 *   sluice run -n 2 -- ./digits_mlp digits.csv.gz [strategy] */
#include <math.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

enum { ROWS = 1797, TRAIN = 1500, PIXELS = 64, HIDDEN = 48, DIGITS = 10, BATCH = 50, STEPS = 300 };

static float images[ROWS][PIXELS];
static int labels[ROWS];

static void check(sluice_status status)
{
    if (status) exit((fprintf(stderr, "digits_mlp: %s\n", sluice_last_error()), 1));
}

static void read_digits(const char *path)
{
    char line[1024];
    gzFile file = gzopen(path, "rb");
    for (int row = 0; file && row < ROWS && gzgets(file, line, sizeof line); row++) {
        char *text = line;
        for (int p = 0; p < PIXELS; p++, text++) images[row][p] = strtof(text, &text) / 16;
        labels[row] = (int)strtol(text, NULL, 10);
        if (row == ROWS - 1 && !gzclose(file)) return;
    }
    exit((fprintf(stderr, "digits_mlp: %s does not hold %d digits\n", path, ROWS), 1));
}

typedef struct { /* one fully connected layer: y = x w + b */
    sluice_layer *layer;
    sluice_param *w, *b;
    int in, out;
} dense;

static dense dense_add(sluice_runtime *rt, const char *name, int in, int out)
{
    dense d = {.in = in, .out = out};
    check(sluice_layer_add(rt, name, &d.layer));
    check(sluice_param_add(d.layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = (uint64_t)in * out), &d.w));
    check(
        sluice_param_add(d.layer, &SLUICE_INIT(sluice_param_desc, .name = "b", .count = out, .no_decay = true), &d.b));
    return d;
}

static void dense_init(dense *d, unsigned seed)
{
    float w[PIXELS * HIDDEN];
    srand(seed);
    for (int i = 0; i < d->in * d->out; i++) w[i] = (2.0f * rand() / RAND_MAX - 1) / sqrtf(d->in);
    check(sluice_param_write(d->w, 0, d->in * d->out, w)); /* the same on every rank; biases stay zero */
}

static void dense_forward(dense *d, const float *x, float *y, int rectify)
{
    check(sluice_forward_begin(d->layer));
    const float *w = sluice_param_value(d->w), *b = sluice_param_value(d->b);
    for (int k = 0; k < BATCH * d->out; k++) {
        float sum = b[k % d->out];
        for (int i = 0; i < d->in; i++) sum += x[k / d->out * d->in + i] * w[i * d->out + k % d->out];
        y[k] = rectify && sum < 0 ? 0 : sum;
    }
    check(sluice_forward_end(d->layer));
}

/* dx is added to; NULL for the first layer. */
static void dense_backward(dense *d, const float *x, const float *dy, float *dx)
{
    check(sluice_backward_begin(d->layer));
    const float *w = sluice_param_value(d->w);
    float *dw = sluice_param_gradient(d->w), *db = sluice_param_gradient(d->b);
    for (int k = 0; k < BATCH * d->out; k++) {
        int n = k / d->out, o = k % d->out;
        db[o] += dy[k];
        for (int i = 0; i < d->in; i++) {
            dw[i * d->out + o] += x[n * d->in + i] * dy[k];
            if (dx) dx[n * d->in + i] += w[i * d->out + o] * dy[k];
        }
    }
    check(sluice_backward_end(d->layer));
}

/* Softmax cross-entropy: the mean loss of the batch; y becomes its gradient. */
static double loss_of(float *y, const int *target, double *right)
{
    double loss = 0;
    for (int n = 0, best = 0; n < BATCH; n++, y += DIGITS, best = 0) {
        double sum = 0;
        for (int o = 1; o < DIGITS; o++) best = y[o] > y[best] ? o : best;
        *right += best == target[n];
        for (int o = 0; o < DIGITS; o++) sum += exp(y[o] - y[best]);
        loss -= (y[target[n]] - y[best] - log(sum)) / BATCH;
        float top = y[best];
        for (int o = 0; o < DIGITS; o++) y[o] = (float)((exp(y[o] - top) / sum - (o == target[n])) / BATCH);
    }
    return loss;
}

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: digits_mlp digits.csv.gz [dp|oss|sdp|fsdp]\n"), 2;
    read_digits(argv[1]);
    sluice_world *world;
    sluice_runtime *rt;
    sluice_config config;
    check(sluice_world_create(NULL, &world));
    sluice_config_init(&config);
    if (argc > 2) config.strategy = argv[2];
    check(sluice_runtime_create(world, &config, &rt));
    dense first = dense_add(rt, "first", PIXELS, HIDDEN), second = dense_add(rt, "second", HIDDEN, DIGITS);
    sluice_activation *hidden; /* lives from the first layer's forward to its backward */
    sluice_activation_desc life =
        SLUICE_INIT(sluice_activation_desc, .name = "h", .bytes = 4 * BATCH * HIDDEN, .last = SLUICE_BACKWARD);
    check(sluice_activation_add(first.layer, &life, &hidden));
    check(sluice_runtime_reserve(rt, "digits", sizeof images + sizeof labels));
    check(sluice_runtime_commit(rt));
    float y[BATCH * DIGITS];
    dense_init(&first, 1);
    dense_init(&second, 2);

    for (int step = 0, rank = sluice_world_rank(world), size = sluice_world_size(world); step < STEPS; step++) {
        int at = (step * size + rank) * BATCH % TRAIN;
        double sums[2] = {0, 0};                                             /* loss, right answers */
        float dh[BATCH * HIDDEN] = {0}, *h = sluice_activation_data(hidden); /* a re-plan between steps moves it */
        check(sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 5e-3)));
        dense_forward(&first, images[at], h, 1);
        dense_forward(&second, h, y, 0);
        sums[0] = loss_of(y, labels + at, &sums[1]);
        dense_backward(&second, h, y, dh);
        for (int i = 0; i < BATCH * HIDDEN; i++) dh[i] = h[i] > 0 ? dh[i] : 0;
        dense_backward(&first, images[at], dh, NULL);
        check(sluice_step_end(rt, NULL));
        check(sluice_world_all_reduce(world, sums, 2));
        if (rank == 0 && step % 50 == 49) printf("step %d  loss %.4f\n", step + 1, sums[0] / size);
    }
    double sums[2] = {0, 0};
    check(sluice_evaluate_begin(rt));
    float *h = sluice_activation_data(hidden);
    for (int at = TRAIN; at + BATCH <= ROWS; at += BATCH) {
        dense_forward(&first, images[at], h, 1);
        dense_forward(&second, h, y, 0);
        sums[0] += loss_of(y, labels + at, &sums[1]);
    }
    check(sluice_evaluate_end(rt));
    if (sluice_world_rank(world) == 0) printf("right: %.1f %%\n", 100 * sums[1] / ((ROWS - TRAIN) / BATCH * BATCH));
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return sums[1] > 0.8 * ((ROWS - TRAIN) / BATCH * BATCH) ? 0 : 1;
}
