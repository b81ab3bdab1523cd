/* A sequence that is computed a few tokens at a time, with a cache, must have the bits of the whole sequence computed
 * at once: for every instruction set, type and thread count, wherever the pieces end in the kernel's tiles. */
#include "lib/kernels/attention/attention.h"
#include "tests/support/kernels/arrays.h"

typedef struct {
    uint64_t heads, head_size, tokens, pieces[8]; /* the last piece that is not 0 is repeated up to the end */
} trial;

typedef struct {
    slc_attention_shape shape; /* of the whole sequence; q, k and v lie next to each other */
    void *qkv, *out;
} sequence;

static const void *part_of(const sequence *s, uint64_t token, uint64_t part)
{
    const uint64_t channels = s->shape.heads * s->shape.head_size;
    return (const char *)s->qkv + (token * 3 + part) * channels * sluice_dtype_bytes(s->shape.dtype);
}

static sequence sequence_create(const trial *t, sluice_dtype dtype, uint32_t threads)
{
    const uint64_t channels = t->heads * t->head_size;
    sequence s = {.shape = {.dtype = dtype,
                            .batch = 1,
                            .tokens = t->tokens,
                            .heads = t->heads,
                            .head_size = t->head_size,
                            .row_stride = 3 * channels,
                            .causal = true}};
    sluice_stream stream = test_stream(threads);
    s.qkv = test_uniform_typed(dtype, t->tokens * 3 * channels, -3, 3, t->tokens);
    s.out = test_floats(t->tokens * channels);
    float *logsumexp = test_floats(t->tokens * t->heads);
    void *workspace = test_bytes(slc_attention_workspace_bytes(&stream, &s.shape));
    const slc_attention_forward_args args = {.shape = s.shape,
                                             .q = part_of(&s, 0, 0),
                                             .k = part_of(&s, 0, 1),
                                             .v = part_of(&s, 0, 2),
                                             .out = s.out,
                                             .logsumexp = logsumexp,
                                             .workspace = workspace};
    assert_int_equal(slc_attention_forward(&stream, &args), SLUICE_OK);
    test_release(workspace), test_release(logsumexp);
    slc_stream_destroy(&stream);
    return s;
}

/* The cache is filled with NaN: what the kernel reads must be what it has written. */
static void by_pieces(const trial *t, const sequence *s, uint32_t threads)
{
    const uint64_t channels = t->heads * t->head_size, width = sluice_dtype_bytes(s->shape.dtype);
    const uint64_t bytes = slc_attention_cache_bytes(t->heads, t->head_size, t->tokens);
    slc_attention_cache cache = {.memory = test_bytes(bytes), .room = t->tokens};
    sluice_stream stream = test_stream(threads);
    memset(cache.memory, 0xff, bytes);
    uint64_t piece = 0;
    for (uint64_t i = 0; cache.tokens < t->tokens; cache.tokens += piece, i += i < 7) {
        if (i < 8 && t->pieces[i]) piece = t->pieces[i];
        if (piece > t->tokens - cache.tokens) piece = t->tokens - cache.tokens;
        slc_attention_shape shape = s->shape;
        shape.tokens = piece;
        void *out = test_bytes(piece * channels * width);
        void *workspace = test_bytes(slc_attention_extend_workspace_bytes(&stream, &shape));
        const slc_attention_forward_args args = {.shape = shape,
                                                 .q = part_of(s, cache.tokens, 0),
                                                 .k = part_of(s, cache.tokens, 1),
                                                 .v = part_of(s, cache.tokens, 2),
                                                 .out = out,
                                                 .cache = cache,
                                                 .workspace = workspace};
        assert_int_equal(slc_attention_extend(&stream, &args), SLUICE_OK);
        if (memcmp(out, (const char *)s->out + cache.tokens * channels * width, piece * channels * width))
            fail_msg("%s, %u threads: heads %llu x %llu: tokens %llu to %llu of %llu differ", test_way_name(), threads,
                     (unsigned long long)t->heads, (unsigned long long)t->head_size, (unsigned long long)cache.tokens,
                     (unsigned long long)(cache.tokens + piece), (unsigned long long)t->tokens);
        test_release(workspace), test_release(out);
    }
    test_release(cache.memory);
    slc_stream_destroy(&stream);
}

static void pieces_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    static const trial trials[] = {
        {1, 1, 5, {1}},          {3, 10, 40, {7, 1}},      {2, 16, 130, {127, 1}},     {2, 64, 300, {128, 128, 1}},
        {1, 33, 200, {3, 17}},   {4, 8, 260, {16, 1, 40}}, {5, 7, 129, {1, 2, 4, 50}}, {1, 80, 131, {131}},
        {2, 20, 257, {15, 120}}, {1, 128, 140, {1}},
    };
    TEST_EACH_ISA(isa)
    TEST_EACH_DTYPE(dtype)
    for (size_t i = 0; i < TEST_COUNT_OF(trials); i++)
        for (uint32_t threads = 1; threads <= 2; threads++) {
            sequence s = sequence_create(&trials[i], dtype, threads);
            by_pieces(&trials[i], &s, threads);
            test_release(s.qkv), test_release(s.out);
        }
}

static void bad_extensions_are_refused(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    static const uint8_t mask[4];
    const slc_attention_shape good = {.batch = 1, .tokens = 4, .heads = 1, .head_size = 4, .causal = true};
    slc_attention_shape bad[5] = {good, good, good, good, good};
    bad[0].batch = 2;
    bad[1].causal = false;
    bad[2].key_mask = mask;
    bad[3].heads = 0;
    bad[4].tokens = 9;
    const slc_attention_forward_args full = {.shape = good, .cache = {.room = 8, .tokens = 5}};
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) {
        const slc_attention_forward_args args = {.shape = bad[i], .cache = {.room = 8}};
        assert_int_equal(slc_attention_extend(&stream, &args), SLUICE_ERR_ARGUMENT);
    }
    assert_int_equal(slc_attention_extend(&stream, &full), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_bits_of_the_whole),
        cmocka_unit_test(bad_extensions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
