/* A user's own training program on a GPU: the perceptron of digits_mlp.c, with CUDA kernels of its own.
 *   nvcc -std=c++20 digits_mlp_cuda.cu $(pkg-config --define-variable=rpath= --cflags --libs sluice) \
 *       -Xlinker -rpath=$(pkg-config --variable=libdir sluice) -lz -o digits_mlp_cuda
 *   ./digits_mlp_cuda digits.csv.gz
 * The GPU's memory is the runtime's alone, inside its budget; pinned memory of the host is what goes there and back. */
#include <cuda_runtime.h>
#include <math.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

constexpr int ROWS = 1797, TRAIN = 1500, PIXELS = 64, HIDDEN = 48, DIGITS = 10, BATCH = 50, STEPS = 300;
constexpr int THREADS = 128; /* of a block */

struct answer { /* of one row; the GPU fills in the last two */
    int digit;
    int best;
    float loss;
};
static struct pinned {
    float images[ROWS][PIXELS];
    answer answers[ROWS];
} * host;
static cudaStream_t stream; /* the runtime's: what is launched on it runs in order, and the host does not wait */

static void check(sluice_status status)
{
    if (status) exit((fprintf(stderr, "digits_mlp_cuda: %s\n", sluice_last_error()), 1));
}

static void check_cuda(cudaError_t error)
{
    if (error) exit((fprintf(stderr, "digits_mlp_cuda: %s\n", cudaGetErrorString(error)), 1));
}

static void read_digits(const char *path)
{
    char line[1024];
    gzFile file = gzopen(path, "rb");
    for (int row = 0; file && row < ROWS && gzgets(file, line, sizeof line); row++) {
        char *text = line;
        for (int p = 0; p < PIXELS; p++, text++) host->images[row][p] = strtof(text, &text) / 16;
        host->answers[row].digit = (int)strtol(text, NULL, 10);
        if (row == ROWS - 1 && !gzclose(file)) return;
    }
    exit((fprintf(stderr, "digits_mlp_cuda: %s does not hold %d digits\n", path, ROWS), 1));
}

/* ---- Kernels: each thread makes one element, so that the same sums are made in the same order each time ---- */

static __global__ void forward(int in, int out, const float *x, const float *w, const float *b, float *y, bool rectify)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / out, o = k % out;
    if (n >= BATCH) return;
    float sum = b[o];
    for (int i = 0; i < in; i++) sum += x[n * in + i] * w[i * out + o];
    y[k] = rectify && sum < 0 ? 0 : sum;
}

/* Adds to the gradients of w, and of b, which is like a further row of w whose input is 1. */
static __global__ void backward_params(int in, int out, const float *x, const float *dy, float *dw, float *db)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, i = k / out, o = k % out;
    if (i > in) return;
    float sum = 0;
    for (int n = 0; n < BATCH; n++) sum += i < in ? x[n * in + i] * dy[n * out + o] : dy[n * out + o];
    *(i < in ? dw + k : db + o) += sum;
}

/* The gradient of what was rectified to be x. */
static __global__ void backward_input(int in, int out, const float *x, const float *w, const float *dy, float *dx)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / in, i = k % in;
    if (n >= BATCH) return;
    float sum = 0;
    for (int o = 0; o < out; o++) sum += w[i * out + o] * dy[n * out + o];
    dx[k] = x[k] > 0 ? sum : 0;
}

/* Softmax cross-entropy, a thread a row; y becomes the gradient of the batch's mean loss. */
static __global__ void loss_of(float *y, answer *answers)
{
    const int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= BATCH) return;
    answer *a = answers + n;
    int best = 0;
    float sum = 0;
    y += n * DIGITS;
    for (int o = 1; o < DIGITS; o++) best = y[o] > y[best] ? o : best;
    const float top = y[best];
    for (int o = 0; o < DIGITS; o++) sum += expf(y[o] - top);
    a->best = best;
    a->loss = logf(sum) - (y[a->digit] - top);
    for (int o = 0; o < DIGITS; o++) y[o] = (expf(y[o] - top) / sum - (o == a->digit)) / BATCH;
}

/* Launches a kernel as kernel<<<blocks, THREADS, 0, stream>>>(arguments...) would, which only nvcc can compile. */
template <class... P, class... A> static void launch(void (*kernel)(P...), int threads, A... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((threads + THREADS - 1) / THREADS);
    config.blockDim = dim3(THREADS);
    config.stream = stream;
    check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/* ---- Layers ---- */

struct dense { /* one fully connected layer: y = x w + b */
    sluice_layer *layer;
    sluice_param *w, *b;
    int in, out;
};

static dense dense_add(sluice_runtime *rt, const char *name, int in, int out)
{
    dense d = {.in = in, .out = out};
    const sluice_param_desc w = SLUICE_INIT(sluice_param_desc, .name = "w", .count = (uint64_t)in * out);
    const sluice_param_desc b = SLUICE_INIT(sluice_param_desc, .name = "b", .count = (uint64_t)out, .no_decay = true);
    check(sluice_layer_add(rt, name, &d.layer));
    check(sluice_param_add(d.layer, &w, &d.w));
    check(sluice_param_add(d.layer, &b, &d.b));
    return d;
}

static void dense_init(dense *d, unsigned seed)
{
    float w[PIXELS * HIDDEN];
    srand(seed);
    for (int i = 0; i < d->in * d->out; i++) w[i] = (2.0f * rand() / RAND_MAX - 1) / sqrtf(d->in);
    check(sluice_param_write(d->w, 0, d->in * d->out, w)); /* from the host's memory; biases stay zero */
}

static void dense_forward(dense *d, const float *x, float *y, bool rectify)
{
    launch(forward, BATCH * d->out, d->in, d->out, x, (const float *)sluice_param_value(d->w),
           (const float *)sluice_param_value(d->b), y, rectify);
}

/* dx is NULL for the first layer. */
static void dense_backward(dense *d, const float *x, const float *dy, float *dx)
{
    check(sluice_backward_begin(d->layer));
    launch(backward_params, (d->in + 1) * d->out, d->in, d->out, x, dy, (float *)sluice_param_gradient(d->w),
           (float *)sluice_param_gradient(d->b));
    if (dx) launch(backward_input, BATCH * d->in, d->in, d->out, x, (const float *)sluice_param_value(d->w), dy, dx);
    check(sluice_backward_end(d->layer));
}

/* ---- The model ---- */

struct perceptron {
    dense first, second;
    sluice_activation *x, *h, *y, *dh, *answers; /* of a batch; y is its own gradient from the loss on */
};

static sluice_activation *activation_add(sluice_layer *layer, sluice_activation_desc life)
{
    sluice_activation *added;
    check(sluice_activation_add(layer, &life, &added));
    return added;
}

static perceptron perceptron_add(sluice_runtime *rt)
{
    perceptron m = {.first = dense_add(rt, "first", PIXELS, HIDDEN), .second = dense_add(rt, "second", HIDDEN, DIGITS)};
    const uint64_t row = BATCH * sizeof(float);
    m.x = activation_add(m.first.layer, SLUICE_INIT(sluice_activation_desc, .name = "x", .bytes = row * PIXELS,
                                                    .last = SLUICE_BACKWARD));
    m.h = activation_add(m.first.layer, SLUICE_INIT(sluice_activation_desc, .name = "h", .bytes = row * HIDDEN,
                                                    .last_layer = "second", .last = SLUICE_BACKWARD));
    m.y = activation_add(m.second.layer, SLUICE_INIT(sluice_activation_desc, .name = "y", .bytes = row * DIGITS,
                                                     .last = SLUICE_BACKWARD));
    m.dh = activation_add(m.second.layer,
                          SLUICE_INIT(sluice_activation_desc, .name = "dh", .bytes = row * HIDDEN,
                                      .first = SLUICE_BACKWARD, .last_layer = "first", .last = SLUICE_BACKWARD));
    m.answers = activation_add(m.second.layer,
                               SLUICE_INIT(sluice_activation_desc, .name = "answers", .bytes = BATCH * sizeof(answer)));
    return m;
}

static float *floats(sluice_activation *a) /* a re-plan between steps moves them */
{
    return (float *)sluice_activation_data(a);
}

/* Queues the forward of the rows from `at` on; their answers reach the host's memory in stream order. */
static void perceptron_forward(perceptron *m, int at)
{
    float *x = floats(m->x), *h = floats(m->h), *y = floats(m->y);
    answer *answers = (answer *)sluice_activation_data(m->answers);
    check(sluice_forward_begin(m->first.layer));
    check_cuda(cudaMemcpyAsync(x, host->images[at], BATCH * sizeof host->images[0], cudaMemcpyHostToDevice, stream));
    dense_forward(&m->first, x, h, true);
    check(sluice_forward_end(m->first.layer));
    check(sluice_forward_begin(m->second.layer));
    dense_forward(&m->second, h, y, false);
    check_cuda(cudaMemcpyAsync(answers, host->answers + at, BATCH * sizeof *answers, cudaMemcpyHostToDevice, stream));
    launch(loss_of, BATCH, y, answers);
    check_cuda(cudaMemcpyAsync(host->answers + at, answers, BATCH * sizeof *answers, cudaMemcpyDeviceToHost, stream));
    check(sluice_forward_end(m->second.layer));
}

static void perceptron_backward(perceptron *m)
{
    dense_backward(&m->second, floats(m->h), floats(m->y), floats(m->dh));
    dense_backward(&m->first, floats(m->x), floats(m->dh), NULL);
}

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: digits_mlp_cuda digits.csv.gz\n"), 2;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_config config;
    check(sluice_world_create(NULL, &world));
    sluice_config_init(&config);
    config.device = "cuda";
    check(sluice_runtime_create(world, &config, &rt));
    stream = (cudaStream_t)sluice_stream_native(sluice_runtime_stream(rt));
    check_cuda(cudaHostAlloc((void **)&host, sizeof *host, cudaHostAllocDefault));
    read_digits(argv[1]);
    perceptron model = perceptron_add(rt);
    check(sluice_runtime_commit(rt));
    dense_init(&model.first, 1);
    dense_init(&model.second, 2);

    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 5e-3);
    for (int step = 0; step < STEPS; step++) {
        const int at = step * BATCH % TRAIN;
        check(sluice_step_begin(rt, &options));
        perceptron_forward(&model, at);
        perceptron_backward(&model);
        check(sluice_step_end(rt, NULL)); /* has waited for the stream, so that the answers are here */
        float loss = 0;
        for (int n = 0; n < BATCH; n++) loss += host->answers[at + n].loss / BATCH;
        if (step % 50 == 49) printf("step %d  loss %.4f\n", step + 1, loss);
    }
    int right = 0, rows = 0;
    check(sluice_evaluate_begin(rt));
    for (int at = TRAIN; at + BATCH <= ROWS; at += BATCH) perceptron_forward(&model, at);
    check_cuda(cudaStreamSynchronize(stream));
    check(sluice_evaluate_end(rt));
    for (; rows < (ROWS - TRAIN) / BATCH * BATCH; rows++)
        right += host->answers[TRAIN + rows].best == host->answers[TRAIN + rows].digit;
    printf("right: %.1f %% on %s\n", 100.0 * right / rows, sluice_runtime_device(rt));
    sluice_runtime_destroy(rt);
    check_cuda(cudaFreeHost(host));
    sluice_world_destroy(world);
    return right > 0.8 * rows ? 0 : 1;
}
