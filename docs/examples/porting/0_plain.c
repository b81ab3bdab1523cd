/* The program that docs/porting.md ports: a perceptron with two hidden layers learns a function of eight numbers, in
 * one process, with an AdamW of its own.
 *   cc 0_plain.c -lm -o 0_plain && ./0_plain */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUTS = 8, HIDDEN = 32, LAYERS = 3, BATCH = 48, STEPS = 300, UNSEEN = 1 << 20 };

typedef struct {
    int count, decays;
    float *value, *gradient, *m, *v; /* the last two are AdamW's */
} parameter;

typedef struct { /* y = tanh(x w + b); the last layer's is linear */
    const char *name;
    int in, out, linear;
    parameter w, b;
    float *y, *dy; /* of the batch: the output, the loss's gradient by it */
} dense;

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

static void add_parameter(parameter *p, int count, int decays)
{
    *p = (parameter){count, decays, zeros(count), zeros(count), zeros(count), zeros(count)};
}

static void add_layer(dense *d)
{
    add_parameter(&d->w, d->in * d->out, 1);
    add_parameter(&d->b, d->out, 0);
    d->y = zeros(BATCH * d->out);
    d->dy = zeros(BATCH * d->out);
}

static void write_first_values(dense *d, uint64_t seed)
{
    for (int i = 0; i < d->w.count; i++) d->w.value[i] = drawn(seed * 1000003 + i) / sqrtf(d->in);
}

static void forward(dense *d, const float *x, int count)
{
    const float *w = d->w.value, *b = d->b.value;
    for (int k = 0; k < count * d->out; k++) {
        float sum = b[k % d->out];
        for (int i = 0; i < d->in; i++) sum += x[k / d->out * d->in + i] * w[i * d->out + k % d->out];
        d->y[k] = d->linear ? sum : tanhf(sum);
    }
}

/* The gradient by the input goes to dx, where that is not NULL. */
static void backward(dense *d, const float *x, float *dx, int count)
{
    const float *w = d->w.value;
    float *dw = d->w.gradient, *db = d->b.gradient;
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

static void update(parameter *p, double rate, int step)
{
    for (int i = 0; i < p->count; i++) {
        double g = p->gradient[i];
        p->m[i] = (float)(0.9 * p->m[i] + 0.1 * g);
        p->v[i] = (float)(0.999 * p->v[i] + 0.001 * g * g);
        double m = p->m[i] / (1 - pow(0.9, step)), v = p->v[i] / (1 - pow(0.999, step));
        double decay = p->decays ? 0.01 * p->value[i] : 0;
        p->value[i] -= (float)(rate * (m / (sqrt(v) + 1e-8) + decay));
        p->gradient[i] = 0;
    }
}

static double train_step(long first, int count, float *x, float *target)
{
    make_examples(first, count, x, target);
    for (int l = 0; l < LAYERS; l++) forward(&layers[l], l ? layers[l - 1].y : x, count);
    double loss = loss_of(layers[LAYERS - 1].y, target, layers[LAYERS - 1].dy, count);
    for (int l = LAYERS; l-- > 0;) backward(&layers[l], l ? layers[l - 1].y : x, l ? layers[l - 1].dy : NULL, count);
    return loss;
}

static double evaluate(int count, float *x, float *target)
{
    make_examples(UNSEEN, count, x, target);
    for (int l = 0; l < LAYERS; l++) forward(&layers[l], l ? layers[l - 1].y : x, count);
    return loss_of(layers[LAYERS - 1].y, target, NULL, count);
}

int main(void)
{
    float x[BATCH * INPUTS], target[BATCH];
    for (int l = 0; l < LAYERS; l++) {
        add_layer(&layers[l]);
        write_first_values(&layers[l], l);
    }
    for (int step = 1; step <= STEPS; step++) {
        double loss = train_step((long)step * BATCH, BATCH, x, target);
        for (int l = 0; l < LAYERS; l++) {
            update(&layers[l].w, 1e-2, step);
            update(&layers[l].b, 1e-2, step);
        }
        if (step % 50 == 0) printf("step %d: loss %.5f\n", step, loss);
    }
    printf("unseen: loss %.5f\n", evaluate(BATCH, x, target));
    return 0;
}
