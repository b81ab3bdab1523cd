/* Attention and its gradients against float64, with equal bits for every instruction set and thread count. */
#include "lib/kernels/attention/attention.h"
#include "lib/kernels/attention/attention_ref.h"
#include "lib/kernels/kernel_test.h"

typedef struct {
    slc_attention_shape shape;
    uint64_t in, out, rows; /* elements of qkv, of out, of logsumexp */
    float *qkv, *dout;
    double *qkv64, *dout64, *out64, *logsumexp64, *dqkv64;
} problem;

static problem problem_create(slc_attention_shape shape, float range)
{
    problem p = {.shape = shape, .rows = shape.batch * shape.heads * shape.tokens};
    p.out = p.rows * shape.head_size, p.in = 3 * p.out;
    p.qkv = test_uniform_floats(p.in, -range, range, 1), p.dout = test_uniform_floats(p.out, -1, 1, 2);
    p.qkv64 = test_widen(p.in, p.qkv), p.dout64 = test_widen(p.out, p.dout);
    p.out64 = test_doubles(p.out), p.logsumexp64 = test_doubles(p.rows), p.dqkv64 = test_doubles(p.in);
    double *weights = test_doubles(shape.tokens);
    slc_attention_forward_ref(&p.shape, p.qkv64, p.out64, p.logsumexp64, weights);
    slc_attention_backward_ref(&p.shape, p.qkv64, p.out64, p.logsumexp64, p.dout64, p.dqkv64);
    free(weights);
    return p;
}

static void problem_destroy(problem *p)
{
    free(p->qkv), free(p->dout), free(p->qkv64), free(p->dout64), free(p->out64), free(p->logsumexp64), free(p->dqkv64);
}

/* dq, dk and dv apart: they differ in size. */
static void check_gradient(const problem *p, const float *dqkv)
{
    static const char *const names[] = {"dq", "dk", "dv"};
    uint64_t all = p->shape.heads * p->shape.head_size, tokens = p->shape.batch * p->shape.tokens;
    for (uint64_t part = 0; part < 3; part++) {
        double error = 0, size = 0;
        for (uint64_t t = 0; t < tokens; t++)
            for (uint64_t i = 0; i < all; i++) {
                uint64_t at = (3 * t + part) * all + i;
                double difference = (double)dqkv[at] - p->dqkv64[at];
                error += difference * difference, size += p->dqkv64[at] * p->dqkv64[at];
            }
        /* a single key has weight 1 whatever its score: dq and dk are zero but for rounding */
        double rounding = p->shape.tokens == 1 ? 1e-6 * sqrt((double)(tokens * all)) : 0;
        if (!(sqrt(error) <= 1e-5 * sqrt(size) + rounding))
            fail_msg("%s: error %g of size %g is above 1e-5", names[part], sqrt(error), sqrt(size));
    }
}

static void check(const problem *p, uint32_t threads, float *first[3])
{
    slc_stream stream = test_stream(threads);
    float *out = test_floats(p->out), *logsumexp = test_floats(p->rows), *dqkv = test_floats(p->in);
    uint64_t floats = slc_attention_workspace_bytes(&stream, &p->shape) / sizeof(float);
    float *workspace = test_uniform_floats(floats + 1, NAN, NAN, 3); /* its content must not matter */
    workspace[floats] = 42;
    assert_int_equal(slc_attention_forward(&stream, &p->shape, p->qkv, out, logsumexp, workspace), SLUICE_OK);
    test_close("out", p->out, out, p->out64, 3e-6);
    test_close("logsumexp", p->rows, logsumexp, p->logsumexp64, 1e-6);
    for (uint64_t i = 0; i < floats; i++) workspace[i] = NAN;
    assert_int_equal(slc_attention_backward(&stream, &p->shape, p->qkv, out, logsumexp, p->dout, dqkv, workspace),
                     SLUICE_OK);
    check_gradient(p, dqkv);
    assert_true(workspace[floats] == 42);
    test_same_bits("out", p->out, out, &first[0]);
    test_same_bits("logsumexp", p->rows, logsumexp, &first[1]);
    test_same_bits("dqkv", p->in, dqkv, &first[2]);
    free(out), free(logsumexp), free(dqkv), free(workspace);
    slc_stream_destroy(&stream);
}

static void check_shape(slc_attention_shape shape, float range)
{
    problem p = problem_create(shape, range);
    float *first[3] = {0};
    TEST_EACH_ISA(isa)
    for (uint32_t threads = 1; threads <= 2; threads++) check(&p, threads, first);
    for (int i = 0; i < 3; i++) free(first[i]);
    problem_destroy(&p);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t shapes[][2] = {
        {1, 16},   {8, 16},  {64, 16},  {197, 16}, {1, 64},   {8, 64},  {64, 64},
        {197, 64}, {8, 128}, {64, 128}, {33, 1},   {130, 24}, {33, 80}, {70, 100}}; /* tokens, head size */
    for (size_t i = 0; i < TEST_COUNT_OF(shapes); i++)
        for (int causal = 0; causal < 2; causal++)
            check_shape(
                (slc_attention_shape){
                    .batch = 2, .tokens = shapes[i][0], .heads = 2, .head_size = shapes[i][1], .causal = causal},
                1);
}

static void long_sequences(void **state)
{
    (void)state;
    check_shape((slc_attention_shape){.batch = 1, .tokens = 512, .heads = 1, .head_size = 64, .causal = true}, 1);
    check_shape((slc_attention_shape){.batch = 1, .tokens = 300, .heads = 1, .head_size = 32, .causal = false}, 1);
}

/* Scores up to several hundred: the running maximum matters, and most weights vanish. */
static void large_scores(void **state)
{
    (void)state;
    const uint64_t tokens = 300, size = 32;
    slc_attention_shape shape = {.batch = 1, .tokens = tokens, .heads = 1, .head_size = size, .causal = true};
    problem p = problem_create(shape, 10);
    slc_stream stream = test_stream(1);
    float *out = test_floats(p.out), *logsumexp = test_floats(p.rows);
    float *workspace = test_floats(slc_attention_workspace_bytes(&stream, &shape) / sizeof(float));
    TEST_EACH_ISA(isa)
    {
        assert_int_equal(slc_attention_forward(&stream, &shape, p.qkv, out, logsumexp, workspace), SLUICE_OK);
        test_close("out", p.out, out, p.out64, 1e-4); /* a score's rounding is a relative error of its weight */
    }
    free(out), free(logsumexp), free(workspace);
    problem_destroy(&p);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(long_sequences),
        cmocka_unit_test(large_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
