/* Attention and its gradients must be close to float64, and not much worse than the naive way in the same type, with
 * equal bits for every instruction set and thread count. */
#include "lib/kernels/attention/attention.h"
#include "tests/support/kernels/arrays.h"

/* Inputs and outputs. All have the shape's type, except logsumexp and the bias. */
enum { Q, K, V, DOUT, RELATIVE, INPUTS };
enum { OUT, LOGSUMEXP, DQ, DK, DV, DRELATIVE, OUTPUTS };
static const char *const names[] = {"out", "logsumexp", "dq", "dk", "dv", "drelative"};

typedef struct {
    slc_attention_shape shape;
    uint64_t all, rows, table; /* number of elements of q without gaps, of logsumexp, of the table */
    double *in[INPUTS], *want[OUTPUTS];
    void *given[INPUTS];   /* the inputs as the kernel takes them, with gaps */
    double naive[OUTPUTS]; /* nRMSE of the naive way, if it was asked for */
} problem;

static uint64_t stride_of(const problem *p, bool outside)
{
    uint64_t stride = outside ? p->shape.out_stride : p->shape.row_stride;
    return stride ? stride : p->shape.heads * p->shape.head_size;
}

static double get(sluice_dtype dtype, const void *x, uint64_t at)
{
    return dtype == SLUICE_BF16 ? (double)sluice_bf16_to_float(((const uint16_t *)x)[at])
                                : (double)((const float *)x)[at];
}

static void put(sluice_dtype dtype, void *x, uint64_t at, float value)
{
    if (dtype == SLUICE_BF16)
        ((uint16_t *)x)[at] = sluice_bf16_from_float(value);
    else
        ((float *)x)[at] = value;
}

/* Rounds the value to the type. */
static float rounded(sluice_dtype dtype, float value)
{
    return dtype == SLUICE_BF16 ? sluice_bf16_to_float(sluice_bf16_from_float(value)) : value;
}

static uint64_t place(const problem *p, uint64_t i, uint64_t stride)
{
    uint64_t row = p->shape.heads * p->shape.head_size;
    return i / row * stride + i % row;
}

/* Lays x out as [batch * tokens][stride], with NaN in the gaps. */
static void *spread(const problem *p, const double *x, uint64_t stride)
{
    uint64_t count = p->shape.batch * p->shape.tokens * stride;
    void *y = test_floats(count);
    for (uint64_t i = 0; i < count; i++) put(p->shape.dtype, y, i, NAN);
    for (uint64_t i = 0; i < p->all; i++) put(p->shape.dtype, y, place(p, i, stride), (float)x[i]);
    return y;
}

static double *random_doubles(uint64_t count, sluice_dtype dtype, float range, uint64_t seed)
{
    double *x = test_doubles(count);
    for (uint64_t i = 0; i < count; i++) x[i] = (double)rounded(dtype, test_uniform(&seed, -range, range));
    return x;
}

/* To ask for a table, `shape.relative` need only be non-NULL; mask and bias belong to the caller. */
static problem problem_create(slc_attention_shape shape, float range)
{
    problem p = {.shape = shape, .rows = shape.batch * shape.heads * shape.tokens};
    p.all = p.rows * shape.head_size;
    if (shape.relative) p.table = ((2 * shape.window_h - 1) * (2 * shape.window_w - 1) + 3) * shape.heads;
    const uint64_t counts[OUTPUTS] = {p.all, p.rows, p.all, p.all, p.all, p.table};
    for (int i = 0; i < OUTPUTS; i++) p.want[i] = test_doubles(counts[i]), p.naive[i] = INFINITY;
    for (uint64_t i = Q; i <= DOUT; i++) {
        p.in[i] = random_doubles(p.all, shape.dtype, i < V ? range : 1, i + 1);
        p.given[i] = spread(&p, p.in[i], stride_of(&p, i == DOUT));
    }
    p.in[RELATIVE] = random_doubles(p.table, shape.dtype, 2, 9);
    p.given[RELATIVE] = test_floats(p.table);
    for (uint64_t i = 0; i < p.table; i++) put(shape.dtype, p.given[RELATIVE], i, (float)p.in[RELATIVE][i]);
    if (shape.relative) p.shape.relative = p.given[RELATIVE];
    return p;
}

/* Fills in the results of float64. */
static void problem_solve(problem *p)
{
    double *weights = test_doubles(p->shape.tokens);
    slc_attention_shape shape = p->shape;
    if (shape.relative) shape.relative = p->in[RELATIVE];
    slc_attention_forward_ref(&(slc_attention_forward_args){.shape = shape,
                                                            .q = p->in[Q],
                                                            .k = p->in[K],
                                                            .v = p->in[V],
                                                            .out = p->want[OUT],
                                                            .logsumexp = p->want[LOGSUMEXP],
                                                            .workspace = weights});
    slc_attention_backward_ref(&(slc_attention_backward_args){.shape = shape,
                                                              .q = p->in[Q],
                                                              .k = p->in[K],
                                                              .v = p->in[V],
                                                              .out = p->want[OUT],
                                                              .dout = p->in[DOUT],
                                                              .logsumexp = p->want[LOGSUMEXP],
                                                              .dq = p->want[DQ],
                                                              .dk = p->want[DK],
                                                              .dv = p->want[DV],
                                                              .drelative = shape.relative ? p->want[DRELATIVE] : NULL,
                                                              .fresh = true});
    test_release(weights);
}

static void problem_destroy(problem *p)
{
    for (int i = 0; i < INPUTS; i++) test_release(p->in[i]), test_release(p->given[i]);
    for (int i = 0; i < OUTPUTS; i++) test_release(p->want[i]);
}

/* The results of a kernel. */
typedef struct {
    void *given[OUTPUTS];
    double *got[OUTPUTS]; /* the results without gaps */
} answer;

static answer answer_create(const problem *p)
{
    answer a = {0};
    const uint64_t rows = p->shape.batch * p->shape.tokens, row = stride_of(p, false);
    const uint64_t counts[OUTPUTS] = {rows * stride_of(p, true), p->rows, rows * row, rows * row, rows * row, p->table};
    for (int i = 0; i < OUTPUTS; i++) {
        a.given[i] = test_floats(counts[i]);
        memset(a.given[i], 0x5a, counts[i] * sizeof(float));
        a.got[i] = test_doubles(counts[i]);
    }
    return a;
}

/* Takes the results out of their arrays, and checks that nothing was written into the gaps. */
static void answer_read(answer *a, const problem *p)
{
    static const int strided[] = {OUT, DQ, DK, DV};
    const uint64_t row = p->shape.heads * p->shape.head_size, bytes = sluice_dtype_bytes(p->shape.dtype);
    for (int n = 0; n < 4; n++) {
        const uint64_t stride = stride_of(p, strided[n] == OUT);
        const char *given = a->given[strided[n]];
        for (uint64_t i = 0; i < p->all; i++) a->got[strided[n]][i] = get(p->shape.dtype, given, place(p, i, stride));
        for (uint64_t i = 0; i < p->shape.batch * p->shape.tokens; i++)
            for (uint64_t b = (i * stride + row) * bytes; b < (i + 1) * stride * bytes; b++)
                if (given[b] != 0x5a)
                    fail_msg("%s: byte %llu, in a gap, was written", names[strided[n]], (unsigned long long)b);
    }
    for (uint64_t i = 0; i < p->rows; i++) a->got[LOGSUMEXP][i] = get(SLUICE_FP32, a->given[LOGSUMEXP], i);
    for (uint64_t i = 0; i < p->table; i++) a->got[DRELATIVE][i] = get(SLUICE_FP32, a->given[DRELATIVE], i);
}

static void answer_destroy(answer *a)
{
    for (int i = 0; i < OUTPUTS; i++) test_release(a->given[i]), test_release(a->got[i]);
}

static slc_attention_backward_args backward_of(const problem *p, const answer *a, void *workspace)
{
    return (slc_attention_backward_args){.shape = p->shape,
                                         .q = p->given[Q],
                                         .k = p->given[K],
                                         .v = p->given[V],
                                         .out = a->given[OUT],
                                         .dout = p->given[DOUT],
                                         .logsumexp = a->given[LOGSUMEXP],
                                         .dq = a->given[DQ],
                                         .dk = a->given[DK],
                                         .dv = a->given[DV],
                                         .drelative = p->table ? a->given[DRELATIVE] : NULL,
                                         .fresh = true,
                                         .workspace = workspace};
}

/* Runs forward and backward, with a fresh fp32 gradient of the table. */
static answer attention(const problem *p, uint32_t threads)
{
    sluice_stream stream = test_stream(threads);
    answer a = answer_create(p);
    uint64_t floats = slc_attention_workspace_bytes(&stream, &p->shape) / sizeof(float);
    float *workspace = test_uniform_floats(floats + 1, NAN, NAN, 3); /* its content must not matter */
    workspace[floats] = 42;
    const slc_attention_forward_args forward = {.shape = p->shape,
                                                .q = p->given[Q],
                                                .k = p->given[K],
                                                .v = p->given[V],
                                                .out = a.given[OUT],
                                                .logsumexp = a.given[LOGSUMEXP],
                                                .workspace = workspace};
    const slc_attention_backward_args backward = backward_of(p, &a, workspace);
    assert_int_equal(slc_attention_forward(&stream, &forward), SLUICE_OK);
    for (uint64_t i = 0; i < floats; i++) workspace[i] = NAN;
    assert_int_equal(slc_attention_backward(&stream, &backward), SLUICE_OK);
    assert_true(workspace[floats] == 42);
    answer_read(&a, p);
    test_release(workspace);
    slc_stream_destroy(&stream);
    return a;
}

/* Returns ||got - want|| / ||want||. An error of `rounding` for each value is allowed, for results that are zero but
 * for rounding, like the gradients of scores with only a key or two. Both values may be infinite (logsumexp of a query
 * that sees no key). */
static double nrmse(uint64_t count, const double *got, const double *want, double rounding)
{
    double error = 0, size = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (isinf(want[i]) && got[i] == want[i]) continue;
        error += (got[i] - want[i]) * (got[i] - want[i]), size += want[i] * want[i];
    }
    if (!isfinite(error)) return INFINITY;
    error = sqrt(error) - rounding * sqrt((double)count);
    return error <= 0 ? 0 : size > 0 ? error / sqrt(size) : INFINITY;
}

static uint64_t count_of(const problem *p, int output)
{
    return output == LOGSUMEXP ? p->rows : output == DRELATIVE ? p->table : p->all;
}

/* Fixed bars for each type; and 2 or 3 times the naive way's error, which the rounding of results alone may exceed. */
static void check_bars(const problem *p, const answer *a)
{
    static const double bars[2][OUTPUTS] = {{3e-6, 1e-6, 1e-5, 1e-5, 1e-5, 1e-5},
                                            {2.5e-3, 1e-6, 1e-2, 1e-2, 1e-2, 1e-2}};
    /* If a query sees only a few keys, gradients of scores are small differences, one side of which comes from the
     * rounded out. */
    const bool bf16 = p->shape.dtype == SLUICE_BF16;
    const bool few_keys = p->shape.tokens < 16 || p->shape.key_mask || p->shape.bias;
    for (int i = 0; i < OUTPUTS; i++) {
        double rounding = i <= LOGSUMEXP ? 0 : (bf16 ? 1e-4 : 1e-7) * (!few_keys ? 1 : bf16 ? 100 : 10);
        double error = nrmse(count_of(p, i), a->got[i], p->want[i], rounding);
        double beside = (i == OUT ? 2 : 3) * p->naive[i], floor = bf16 ? 1.7e-3 : 2e-7;
        if (beside < floor) beside = floor;
        if (!(error <= bars[p->shape.dtype][i]))
            fail_msg("%s: error %g is above %g; %llu tokens, heads of %llu", names[i], error, bars[p->shape.dtype][i],
                     (unsigned long long)p->shape.tokens, (unsigned long long)p->shape.head_size);
        if (!(error <= beside)) fail_msg("%s: error %g, %g the naive way", names[i], error, p->naive[i]);
    }
}

/* drelative is summed by thread, so its bits must agree only for equal thread counts. */
static void check_bits(const problem *p, const answer *a, const answer *first, bool same_threads)
{
    for (int i = 0; i < (same_threads ? OUTPUTS : DRELATIVE); i++)
        for (uint64_t j = 0; j < count_of(p, i); j++)
            if (memcmp(&a->got[i][j], &first->got[i][j], sizeof(double)))
                fail_msg("%s: element %llu is %.9g on %s, %.9g before", names[i], (unsigned long long)j, a->got[i][j],
                         test_way_name(), first->got[i][j]);
}

/* A GPU's sums have an order of their own: its bits must be close, and repeat. */
static void check_on_gpu(const problem *p)
{
    const uint64_t work = p->all * p->shape.tokens / 400;
    if (test_use_way(SLC_ISA_COUNT, work)) {
        answer a = attention(p, 1), again = attention(p, 1);
        check_bars(p, &a);
        check_bits(p, &again, &a, true);
        answer_destroy(&a), answer_destroy(&again);
    }
    test_back_to_host();
}

static void check_problem(problem *p, uint32_t most_threads)
{
    check_on_gpu(p);
    for (uint32_t threads = 1; threads <= most_threads; threads++) {
        static answer first, alone;
        bool any = false;
        TEST_EACH_ISA(isa)
        {
            answer a = attention(p, threads);
            check_bars(p, &a);
            if (any) check_bits(p, &a, &first, true);
            if (any || threads > 1) check_bits(p, &a, &alone, false);
            if (!any && threads == 1) alone = attention(p, threads);
            if (!any)
                first = a;
            else
                answer_destroy(&a);
            any = true;
        }
        answer_destroy(&first);
        if (threads == most_threads) answer_destroy(&alone);
    }
}

static void check_shape(slc_attention_shape shape, float range, uint32_t most_threads)
{
    problem p = problem_create(shape, range);
    problem_solve(&p);
    check_problem(&p, most_threads);
    problem_destroy(&p);
}

/* ---- The naive way: every matrix stored whole, every result rounded to the type, sums in fp32 ---- */

/* c[m][n] = a b; element (i, k) of a is at a[i * a_row + k * a_step], element (k, j) of b likewise. */
static void product(sluice_dtype dtype, uint64_t m, uint64_t n, uint64_t depth, const float *a, uint64_t a_row,
                    uint64_t a_step, const float *b, uint64_t b_row, uint64_t b_step, float *c)
{
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = 0; j < n; j++) {
            float sum = 0;
            for (uint64_t k = 0; k < depth; k++) sum += a[i * a_row + k * a_step] * b[k * b_row + j * b_step];
            c[i * n + j] = rounded(dtype, sum);
        }
}

static void narrow(uint64_t count, const double *from, float *to)
{
    for (uint64_t i = 0; i < count; i++) to[i] = (float)from[i];
}

static void naive_softmax(const slc_attention_shape *s, float *scores)
{
    const uint64_t t = s->tokens;
    for (uint64_t i = 0; i < t; i++) {
        float *row = scores + i * t, most = -INFINITY, sum = 0;
        for (uint64_t j = 0; j < t; j++) {
            row[j] = s->causal && j > i ? -INFINITY : rounded(s->dtype, row[j] / sqrtf((float)s->head_size));
            most = fmaxf(most, row[j]);
        }
        for (uint64_t j = 0; j < t; j++) sum += row[j] = expf(row[j] - most);
        for (uint64_t j = 0; j < t; j++) row[j] = rounded(s->dtype, row[j] / sum);
    }
}

static void naive_softmax_backward(const slc_attention_shape *s, const float *p, float *dp)
{
    const uint64_t t = s->tokens;
    for (uint64_t i = 0; i < t; i++) {
        float sum = 0;
        for (uint64_t j = 0; j < t; j++) sum += p[i * t + j] * dp[i * t + j];
        for (uint64_t j = 0; j < t; j++) {
            float ds = rounded(s->dtype, p[i * t + j] * (dp[i * t + j] - sum));
            dp[i * t + j] = rounded(s->dtype, ds / sqrtf((float)s->head_size));
        }
    }
}

/* Solves a problem of one sequence, one head and no bias. */
static void problem_solve_naively(problem *p)
{
    const slc_attention_shape *s = &p->shape;
    const uint64_t t = s->tokens, d = s->head_size;
    assert_true(s->batch == 1 && s->heads == 1 && !s->key_mask && !s->bias && !s->relative);
    float *in[4], *out[OUTPUTS], *weights = test_floats(t * t), *slopes = test_floats(t * t);
    for (int i = Q; i <= DOUT; i++) in[i] = test_floats(p->all), narrow(p->all, p->in[i], in[i]);
    for (int i = 0; i < OUTPUTS; i++) out[i] = test_floats(p->all);
    product(s->dtype, t, t, d, in[Q], d, 1, in[K], 1, d, weights);
    naive_softmax(s, weights);
    product(s->dtype, t, d, t, weights, t, 1, in[V], d, 1, out[OUT]);
    product(s->dtype, t, t, d, in[DOUT], d, 1, in[V], 1, d, slopes);
    naive_softmax_backward(s, weights, slopes);
    product(s->dtype, t, d, t, slopes, t, 1, in[K], d, 1, out[DQ]);
    product(s->dtype, t, d, t, slopes, 1, t, in[Q], d, 1, out[DK]);
    product(s->dtype, t, d, t, weights, 1, t, in[DOUT], d, 1, out[DV]);
    for (int i = 0; i < DRELATIVE; i++) {
        double *got = test_widen(p->all, out[i]);
        if (i != LOGSUMEXP) p->naive[i] = nrmse(p->all, got, p->want[i], 0);
        test_release(got);
    }
    for (int i = Q; i <= DOUT; i++) test_release(in[i]);
    for (int i = 0; i < OUTPUTS; i++) test_release(out[i]);
    test_release(weights), test_release(slopes);
}

/* ---- The tests ---- */

static const sluice_dtype dtypes[] = {SLUICE_FP32, SLUICE_BF16};

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t shapes[][2] = {{1, 16}, {17, 8}, {33, 1},  {130, 24}, {70, 100}, {8, 16},   {64, 16}, {197, 16},
                                  {1, 64}, {8, 64}, {64, 64}, {197, 64}, {8, 128},  {64, 128}, {33, 80}, {129, 9}};
    for (size_t i = 0; i < TEST_SHAPES(shapes, 5); i++)
        for (int variant = 0; variant < 4; variant++)
            check_shape((slc_attention_shape){.dtype = dtypes[variant / 2],
                                              .batch = test_brief() && shapes[i][0] > 64 ? 1 : 2,
                                              .tokens = shapes[i][0],
                                              .heads = 2,
                                              .head_size = shapes[i][1],
                                              .causal = variant % 2},
                        1, 2);
}

static void errs_no_more_than_the_naive_way(void **state)
{
    (void)state;
    const uint64_t shapes[][2] = {{1, 64},   {8, 64},   {197, 64},  {197, 80},
                                  {512, 64}, {512, 40}, {1000, 64}, {1024, 64}}; /* tokens, head size */
    for (size_t i = 0; i < TEST_SHAPES(shapes, 1); i++)
        for (int variant = 0; variant < 4; variant++) {
            problem p = problem_create((slc_attention_shape){.dtype = dtypes[variant / 2],
                                                             .batch = 1,
                                                             .tokens = shapes[i][0],
                                                             .heads = 1,
                                                             .head_size = shapes[i][1],
                                                             .causal = variant % 2},
                                       2);
            problem_solve(&p);
            problem_solve_naively(&p);
            check_problem(&p, 1);
            problem_destroy(&p);
        }
}

/* ---- Options ---- */

enum { CAUSAL = 1, MASK = 2, BIAS = 4, RELATIVE_BIAS = 8, STRIDES = 16, BF16 = 32, DROPOUT = 64, OPTIONS = 128 };

/* Masks some keys; in some sequences all, in some all but the second. */
static uint8_t *random_mask(uint64_t batch, uint64_t tokens)
{
    uint64_t seed = 5;
    uint8_t *mask = test_bytes(batch * tokens);
    for (uint64_t b = 0; b < batch; b++)
        for (uint64_t j = 0; j < tokens; j++)
            mask[b * tokens + j] = b % 3 == 1 ? 0 : b % 3 == 2 ? j == 1 : test_random(&seed) % 3 > 0;
    return mask;
}

/* Puts -inf in some places, and in a whole row of each head. */
static float *random_bias(uint64_t count, uint64_t tokens)
{
    uint64_t seed = 6;
    float *bias = test_uniform_floats(count, -2, 2, 7);
    for (uint64_t i = 0; i < count; i++)
        if (test_random(&seed) % 5 == 0 || i / tokens % tokens == tokens / 2) bias[i] = -INFINITY;
    return bias;
}

static void check_options(int options, uint64_t batch, uint64_t h, uint64_t w, uint64_t heads, uint64_t head_size,
                          uint32_t threads)
{
    const uint64_t tokens = 1 + h * w, all = heads * head_size;
    slc_attention_shape shape = {.dtype = options & BF16 ? SLUICE_BF16 : SLUICE_FP32,
                                 .batch = batch,
                                 .tokens = tokens,
                                 .heads = heads,
                                 .head_size = head_size,
                                 .causal = options & CAUSAL};
    uint8_t *mask = random_mask(batch, tokens);
    float *bias = random_bias(batch * heads * tokens * tokens, tokens);
    const slc_dropout dropout = {.probability = 0.3f, .seed = 1234567890123, .first = (1ull << 34) - 100};
    if (options & DROPOUT) shape.dropout = &dropout;
    if (options & STRIDES) shape.row_stride = 3 * all, shape.out_stride = all + 5;
    if (options & MASK) shape.key_mask = mask;
    if (options & BIAS) shape.bias = bias;
    if (options & STRIDES) shape.bias_head = tokens * tokens, shape.bias_batch = heads * shape.bias_head;
    if (options & RELATIVE_BIAS) shape.relative = mask, shape.window_h = h, shape.window_w = w;
    check_shape(shape, 1, threads);
    test_release(mask), test_release(bias);
}

/* Sixteen combinations in which any three options are there in each of their eight ways: an orthogonal array. */
static bool is_of_the_sixteen(int options)
{
    const int a = options & 1, b = options >> 1 & 1, c = options >> 2 & 1, d = options >> 3 & 1;
    return options >> 4 == ((a ^ b ^ c) | (a ^ b ^ d) << 1 | (a ^ c ^ d) << 2);
}

static void every_combination_of_options(void **state)
{
    (void)state;
    for (int options = 0; options < OPTIONS; options++) {
        if (test_brief() && !is_of_the_sixteen(options)) continue;
        check_options(options, 3, 3, 4, 2, 12, 3);
        check_options(options, 1, 1, 1, 3, 8, 2);
        check_options(options, 3, 5, 19, 1, 16, 2); /* two tiles of keys; window rows of more than sixteen */
    }
    const int beit[] = {OPTIONS - 1, OPTIONS - 1 - BF16 - CAUSAL, RELATIVE_BIAS, RELATIVE_BIAS | BF16};
    for (size_t i = 0; i < TEST_SHAPES(beit, 1); i++) check_options(beit[i], 3, 14, 14, 2, 32, 2);
}

/* The table's gradient must be the former gradient plus the sum, or with `fresh` the sum alone, rounded once. */
static void gradient_of_the_table_adds(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        const sluice_dtype gradient = dtypes[variant / 2];
        slc_attention_shape shape = {.dtype = dtypes[variant % 2],
                                     .batch = 2,
                                     .tokens = 13,
                                     .heads = 3,
                                     .head_size = 16,
                                     .relative = names,
                                     .window_h = 4,
                                     .window_w = 3};
        problem p = problem_create(shape, 1);
        sluice_stream stream = test_stream(2);
        answer a = attention(&p, 2);
        float *workspace = test_floats(slc_attention_workspace_bytes(&stream, &p.shape) / sizeof *workspace);
        float *before = test_uniform_floats(p.table, -1, 1, 11), *table = test_floats(p.table);
        for (int fresh = 0; fresh < 2; fresh++) {
            for (uint64_t i = 0; i < p.table; i++) put(gradient, table, i, before[i]);
            slc_attention_backward_args args = backward_of(&p, &a, workspace);
            args.gradient = gradient, args.drelative = table, args.fresh = fresh;
            assert_int_equal(slc_attention_backward(&stream, &args), SLUICE_OK);
            for (uint64_t i = 0; i < p.table; i++) {
                float sum = (float)a.got[DRELATIVE][i];
                if (!fresh) sum = rounded(gradient, before[i]) + sum;
                assert_true(get(gradient, table, i) == (double)rounded(gradient, sum));
            }
        }
        test_release(workspace), test_release(before), test_release(table);
        answer_destroy(&a), problem_destroy(&p);
        slc_stream_destroy(&stream);
    }
}

/* With scores up to several hundred the running maximum matters, and most weights vanish. A score's rounding is a
 * relative error of its weight. */
static void large_scores(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        slc_attention_shape shape = {.dtype = dtypes[variant / 2],
                                     .batch = 1,
                                     .tokens = test_brief() ? 150 : 300,
                                     .heads = 1,
                                     .head_size = 32,
                                     .causal = variant % 2};
        problem p = problem_create(shape, 10);
        problem_solve(&p);
        TEST_EACH_WAY(way)
        {
            answer a = attention(&p, 1);
            assert_true(nrmse(p.all, a.got[OUT], p.want[OUT], 0) <= (shape.dtype == SLUICE_BF16 ? 2.5e-3 : 1e-4));
            /* A score's gradient is p (dp - D), and one key has nearly all the weight of most queries, so that dp is
             * nearly D: what rounds either to bf16 (by 2^-9) is one or two per cent of what is left. */
            for (int i = DQ; i <= DV; i++)
                assert_true(nrmse(p.all, a.got[i], p.want[i], 0) <= (shape.dtype == SLUICE_FP32 ? 1e-4
                                                                     : i == DV                  ? 1e-2
                                                                                                : 3e-2));
            answer_destroy(&a);
        }
        problem_destroy(&p);
    }
}

/* NaN in one query must reach that query's row only; NaN in k or v of a key must reach every query that sees the key
 * (and, in v, may reach queries shortly before it). */
static void nan_stays_visible(void **state)
{
    (void)state;
    const uint64_t tokens = 150, size = 16, marked = 37;
    slc_attention_shape shape = {.batch = 1, .tokens = tokens, .heads = 1, .head_size = size, .causal = true};
    TEST_EACH_WAY(way)
    for (int which = Q; which <= V; which++) {
        problem p = problem_create(shape, 1);
        put(shape.dtype, p.given[which], marked * size + 3, NAN);
        answer a = attention(&p, 1);
        for (uint64_t t = 0; t < tokens; t++) {
            bool reached = which == Q ? t == marked : t >= marked;
            if (which == V && t < marked && t + 8 > marked) continue;
            assert_int_equal(isnan(a.got[OUT][t * size + 3]) != 0, reached);
            if (which != V) assert_int_equal(isnan(a.got[LOGSUMEXP][t]) != 0, reached);
        }
        assert_true(isnan(a.got[DQ][(which == Q ? marked : tokens - 1) * size]));
        answer_destroy(&a), problem_destroy(&p);
    }
}

/* A grid of a GPU has few blocks along y and z. An emulated one has even fewer here, so that few heads show it. */
static void any_number_of_heads_fits_a_grid(void **state)
{
    (void)state;
    setenv("SLUICE_EMULATED_GRID", "8", 1);
    for (int variant = 0; variant < 2; variant++)
        check_shape((slc_attention_shape){.dtype = dtypes[variant],
                                          .batch = 3,
                                          .tokens = 21,
                                          .heads = 3,
                                          .head_size = 8,
                                          .relative = names,
                                          .window_h = 5,
                                          .window_w = 4},
                    1, 1);
    unsetenv("SLUICE_EMULATED_GRID");
}

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    const slc_attention_shape good = {.batch = 1, .tokens = 7, .heads = 2, .head_size = 4};
    const slc_dropout certain = {.probability = 1};
    slc_attention_shape bad[6] = {good, good, good, good, good, good};
    bad[0].heads = 0;
    bad[1].row_stride = 7;
    bad[2].out_stride = 7;
    bad[3].relative = names, bad[3].window_h = 2, bad[3].window_w = 2;
    bad[4].dtype = (sluice_dtype)7;
    bad[5].dropout = &certain;
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) {
        const slc_attention_forward_args forward = {.shape = bad[i]};
        const slc_attention_backward_args backward = {.shape = bad[i]};
        assert_int_equal(slc_attention_forward(&stream, &forward), SLUICE_ERR_ARGUMENT);
        assert_int_equal(slc_attention_backward(&stream, &backward), SLUICE_ERR_ARGUMENT);
    }
    float table;
    const slc_attention_backward_args tableless = {.shape = good, .drelative = &table};
    assert_int_equal(slc_attention_backward(&stream, &tableless), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(errs_no_more_than_the_naive_way),
        cmocka_unit_test(every_combination_of_options),
        cmocka_unit_test(gradient_of_the_table_adds),
        cmocka_unit_test(large_scores),
        cmocka_unit_test(nan_stays_visible),
        cmocka_unit_test(any_number_of_heads_fits_a_grid),
        cmocka_unit_test(bad_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
