/* Forward must be exact but for one rounding; backward must add the rows of equal tokens in the order of their places,
 * with one rounding, for any thread count. */
#include "lib/kernels/embedding/embedding.h"
#include "tests/support/kernels/arrays.h"

enum { TYPES = 2, TABLES = 3 };

typedef struct {
    uint64_t batch, length, channels, vocabulary;
    bool position, type, type_numbers, padded;
    sluice_dtype dtype, gradient;
} test_case;

typedef struct {
    uint64_t rows, counts[TABLES]; /* number of elements of each table; 0: none */
    int32_t *tokens, *types;
    uint32_t *token_order, *type_order;
} inputs;

/* Every place must be there once; keys go up, and places of one key too. */
static uint32_t *make_order(uint64_t rows, const int32_t *keys)
{
    uint32_t *order = test_bytes(rows * sizeof *order), *scratch = test_bytes(rows * sizeof *scratch);
    slc_embedding_order(rows, keys, order, scratch);
    for (uint64_t i = 0; i < rows; i++) {
        assert_in_range(order[i], 0, rows - 1);
        if (i && keys[order[i]] == keys[order[i - 1]])
            assert_true(order[i] > order[i - 1]);
        else if (i)
            assert_true(keys[order[i]] > keys[order[i - 1]]);
    }
    test_release(scratch);
    return order;
}

static inputs make_inputs(const test_case *t)
{
    uint64_t seed = 9, rows = t->batch * t->length;
    inputs in = {.rows = rows, .counts = {t->vocabulary * t->channels}};
    if (t->position) in.counts[1] = t->length * t->channels;
    if (t->type) in.counts[2] = TYPES * t->channels;
    in.tokens = test_bytes(rows * sizeof *in.tokens);
    in.types = test_bytes(rows * sizeof *in.types);
    assert_non_null(in.tokens);
    assert_non_null(in.types);
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t draw = test_random(&seed); /* half of them are from a few tokens, as in text, including the last */
        in.tokens[i] =
            (int32_t)(draw & 1 ? (draw >> 1) % t->vocabulary : t->vocabulary - 1 - (draw >> 1) % 3 % t->vocabulary);
        in.types[i] = (int32_t)(test_random(&seed) % TYPES);
    }
    in.token_order = make_order(rows, in.tokens);
    in.type_order = make_order(rows, in.types);
    return in;
}

static void free_inputs(inputs *in)
{
    test_release(in->tokens), test_release(in->types), test_release(in->token_order), test_release(in->type_order);
}

static void forward_is_rounded_once(const test_case *t, const inputs *in)
{
    uint64_t elements = in->rows * t->channels;
    const int32_t *types = t->type_numbers ? in->types : NULL;
    void *table[TABLES] = {0};
    double *wide[TABLES] = {0}, *want = test_doubles(elements);
    for (int i = 0; i < TABLES; i++)
        if (in->counts[i]) {
            table[i] = test_uniform_typed(t->dtype, in->counts[i], -1, 1, 1 + (uint64_t)i);
            wide[i] = test_widen_typed(t->dtype, in->counts[i], table[i]);
        }
    slc_embedding_forward_args args = {.dtype = t->dtype,
                                       .batch = t->batch,
                                       .length = t->length,
                                       .channels = t->channels,
                                       .tokens = in->tokens,
                                       .types = types,
                                       .tables = {wide[0], wide[1], wide[2]},
                                       .out = want};
    slc_embedding_forward_ref(&args);
    args.tables = (slc_embedding_tables){table[0], table[1], table[2]};
    float *first = NULL;
    TEST_EACH_WAY_OF(way, elements)
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sluice_stream stream = test_stream(threads);
        void *out = test_floats(elements);
        args.out = out;
        assert_int_equal(slc_embedding_forward(&stream, &args), SLUICE_OK);
        test_close_typed("out", t->dtype, elements, out, want, 1e-6, 2e-3);
        test_same_bits_typed("out", t->dtype, elements, out, &first);
        test_release(out);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < TABLES; i++) test_release(table[i]), test_release(wide[i]);
    test_release(want), test_release(first);
}

static void backward_agrees(const test_case *t, const inputs *in)
{
    static const char *const names[TABLES] = {"dtoken", "dposition", "dtype"};
    uint64_t elements = in->rows * t->channels;
    void *dout = test_uniform_typed(t->dtype, elements, -1, 1, 3), *before[TABLES] = {0};
    double *want[TABLES] = {0}, *dout64 = test_widen_typed(t->dtype, elements, dout);
    for (int i = 0; i < TABLES; i++)
        if (in->counts[i]) {
            before[i] = test_uniform_typed(t->gradient, in->counts[i], -1, 1, 4 + (uint64_t)i);
            want[i] = test_widen_typed(t->gradient, in->counts[i], before[i]);
        }
    slc_embedding_backward_args args = {
        .dtype = t->dtype,
        .gradient = t->gradient,
        .batch = t->batch,
        .length = t->length,
        .channels = t->channels,
        .tokens = in->tokens,
        .types = t->type_numbers ? in->types : NULL,
        .dout = dout64,
        .gradients = {
            .token = want[0], .position = want[1], .type = want[2], .padded = t->padded, .padding = in->tokens[0]}};
    slc_embedding_backward_ref(&args);
    args.dout = dout;
    float *first[TABLES] = {0};
    TEST_EACH_WAY_OF(way, elements)
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sluice_stream stream = test_stream(threads);
        void *got[TABLES] = {0};
        const bool ordered = test_on_gpu() || threads == 3; /* the host may sort for itself */
        void *workspace = test_bytes(slc_embedding_backward_workspace_bytes(&stream, t->batch, t->length, t->channels));
        for (int i = 0; i < TABLES; i++)
            if (before[i]) got[i] = test_copy_typed(t->gradient, in->counts[i], before[i]);
        args.gradients.token = got[0], args.gradients.position = got[1], args.gradients.type = got[2];
        args.gradients.token_order = ordered ? in->token_order : NULL;
        args.gradients.type_order = ordered ? in->type_order : NULL;
        args.workspace = workspace;
        assert_int_equal(slc_embedding_backward(&stream, &args), SLUICE_OK);
        for (int i = 0; i < TABLES; i++) {
            if (!got[i]) continue;
            test_close_typed(names[i], t->gradient, in->counts[i], got[i], want[i], 1e-5, 3e-3);
            test_same_bits_typed(names[i], t->gradient, in->counts[i], got[i], &first[i]);
            test_release(got[i]);
        }
        test_release(workspace);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < TABLES; i++) test_release(before[i]), test_release(want[i]), test_release(first[i]);
    test_release(dout), test_release(dout64);
}

static void check(const test_case *t)
{
    inputs in = make_inputs(t);
    forward_is_rounded_once(t, &in);
    backward_agrees(t, &in);
    free_inputs(&in);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t lengths[] = {1, 8, 197}, channels[] = {1, 200, 16, 100};
    TEST_EACH_DTYPE(dtype)
    TEST_EACH_DTYPE(gradient)
    for (size_t l = 0; l < TEST_SHAPES(lengths, 2); l++)
        for (size_t c = 0; c < TEST_SHAPES(channels, 2); c++)
            for (unsigned tables = 0; tables < 8; tables++) {
                if (test_brief() && dtype != gradient && tables != l + 2 * c) continue;
                check(&(test_case){.batch = 3,
                                   .length = lengths[l],
                                   .channels = channels[c],
                                   .vocabulary = 23,
                                   .position = tables & 1,
                                   .type = tables & 2,
                                   .type_numbers = tables & 4,
                                   .padded = (tables + c) % 2,
                                   .dtype = dtype,
                                   .gradient = gradient});
            }
}

static void large_vocabulary(void **state)
{
    (void)state;
    const uint64_t lengths[] = {512, 1000, 1024};
    TEST_EACH_DTYPE(dtype)
    for (size_t l = 0; l < TEST_SHAPES(lengths, 1); l++)
        check(&(test_case){.batch = 2,
                           .length = lengths[l],
                           .channels = 72,
                           .vocabulary = test_brief() ? 3001 : 50257, /* of two digits in either case */
                           .position = true,
                           .type = true,
                           .type_numbers = true,
                           .dtype = dtype,
                           .gradient = dtype});
    check(&(test_case){.batch = 1, .length = 5, .channels = 2100, .vocabulary = 300, .gradient = SLUICE_BF16});
}

/* 1 is added to 256 three hundred times: with rounding after each addition, bf16 would stay at 256. */
static void a_row_is_rounded_once(void **state)
{
    (void)state;
    enum { LENGTH = 300, CHANNELS = 20 };
    int32_t *tokens = test_bytes(LENGTH * sizeof *tokens);
    float ones[LENGTH * CHANNELS], start[CHANNELS];
    memset(tokens, 0, LENGTH * sizeof *tokens);
    uint32_t *order = make_order(LENGTH, tokens);
    for (int i = 0; i < LENGTH * CHANNELS; i++) ones[i] = 1;
    for (int i = 0; i < CHANNELS; i++) start[i] = 256;
    void *dout = test_typed(SLUICE_BF16, LENGTH * CHANNELS, ones);
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        uint64_t bytes = slc_embedding_backward_workspace_bytes(&stream, 1, LENGTH, CHANNELS);
        assert_int_equal(bytes, test_on_gpu() ? 0 : 2 * LENGTH * sizeof(uint32_t));
        uint32_t *workspace = test_bytes(bytes);
        uint16_t *table = test_typed(SLUICE_BF16, CHANNELS, start);
        const slc_embedding_backward_args args = {.dtype = SLUICE_BF16,
                                                  .gradient = SLUICE_BF16,
                                                  .batch = 1,
                                                  .length = LENGTH,
                                                  .channels = CHANNELS,
                                                  .tokens = tokens,
                                                  .dout = dout,
                                                  .gradients = {.token = table, .token_order = order},
                                                  .workspace = workspace};
        assert_int_equal(slc_embedding_backward(&stream, &args), SLUICE_OK);
        for (int i = 0; i < CHANNELS; i++) assert_true(sluice_bf16_to_float(table[i]) == 556);
        test_release(table), test_release(workspace);
        slc_stream_destroy(&stream);
    }
    test_release(dout), test_release(tokens), test_release(order);
}

/* In fp32 1 is lost next to 2^24, and 2 is not: so the rows that belong to one are summed before the table's is added.
 */
static void a_call_is_summed_from_zero(void **state)
{
    (void)state;
    enum { CHANNELS = 20, PLACES = 4, LENGTH = 2 };
    const int32_t tokens[PLACES] = {0, 0, 1, 1}, types[PLACES] = {1, 1, 1, 1};
    float ones[PLACES * CHANNELS], start[TABLES][2 * CHANNELS];
    const float want[TABLES][2] = {{2, 2}, {2, 2}, {0, 4}};
    uint32_t *token_order = make_order(PLACES, tokens), *type_order = make_order(PLACES, types);
    for (int i = 0; i < PLACES * CHANNELS; i++) ones[i] = 1;
    for (int i = 0; i < TABLES; i++)
        for (int c = 0; c < 2 * CHANNELS; c++) start[i][c] = 16777216;
    void *dout = test_typed(SLUICE_FP32, PLACES * CHANNELS, ones);
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        uint32_t *workspace =
            test_bytes(slc_embedding_backward_workspace_bytes(&stream, PLACES / LENGTH, LENGTH, CHANNELS));
        float *table[TABLES];
        for (int i = 0; i < TABLES; i++) table[i] = test_typed(SLUICE_FP32, 2 * (uint64_t)CHANNELS, start[i]);
        const slc_embedding_backward_args args = {
            .batch = PLACES / LENGTH,
            .length = LENGTH,
            .channels = CHANNELS,
            .tokens = tokens,
            .types = types,
            .dout = dout,
            .gradients = {table[0], table[1], table[2], .token_order = token_order, .type_order = type_order},
            .workspace = workspace};
        assert_int_equal(slc_embedding_backward(&stream, &args), SLUICE_OK);
        for (int i = 0; i < TABLES; i++)
            for (int row = 0; row < 2; row++)
                for (int c = 0; c < CHANNELS; c++) assert_true(table[i][row * CHANNELS + c] == 16777216 + want[i][row]);
        for (int i = 0; i < TABLES; i++) test_release(table[i]);
        test_release(workspace);
        slc_stream_destroy(&stream);
    }
    test_release(dout), test_release(token_order), test_release(type_order);
}

static void no_rows_and_too_many(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    float table = 1, out = 2;
    const slc_embedding_forward_args forward = {.channels = 1, .tables = {.token = &table}, .out = &out};
    slc_embedding_backward_args backward = {.channels = 1, .dout = &out, .gradients = {.token = &table}};
    assert_int_equal(slc_embedding_forward(&stream, &forward), SLUICE_OK);
    assert_int_equal(slc_embedding_backward(&stream, &backward), SLUICE_OK);
    backward.batch = backward.length = 1 << 20;
    assert_int_equal(slc_embedding_backward(&stream, &backward), SLUICE_ERR_UNSUPPORTED);
    assert_true(table == 1 && out == 2);
    slc_stream_destroy(&stream);
}

/* Large results, which are stored past the cache, must equal those of the rows one by one. */
static void large_results(void **state)
{
    (void)state;
    enum { ROWS = 12000, CHANNELS = 768, VOCABULARY = 50 };
    const uint64_t elements = (uint64_t)ROWS * CHANNELS;
    static int32_t tokens[ROWS];
    for (int i = 0; i < ROWS; i++) tokens[i] = i * 7 % VOCABULARY;
    TEST_EACH_DTYPE(dtype)
    {
        void *table = test_uniform_typed(dtype, VOCABULARY * CHANNELS, -1, 1, 1);
        unsigned char *out = (unsigned char *)test_floats(elements), *row = (unsigned char *)test_floats(CHANNELS);
        const slc_embedding_forward_args whole = {.dtype = dtype,
                                                  .batch = 1,
                                                  .length = ROWS,
                                                  .channels = CHANNELS,
                                                  .tokens = tokens,
                                                  .tables = {.token = table, .type = table},
                                                  .out = out};
        const uint64_t bytes = CHANNELS * sluice_dtype_bytes(dtype);
        TEST_EACH_ISA(isa)
        for (uint32_t threads = 1; threads <= 2; threads++) {
            sluice_stream stream = test_stream(threads);
            memset(out, 0xff, ROWS * bytes);
            assert_int_equal(slc_embedding_forward(&stream, &whole), SLUICE_OK);
            for (int i = 0; i < ROWS; i++) {
                slc_embedding_forward_args single = whole;
                single.length = 1, single.tokens = tokens + i, single.out = row;
                slc_embedding_forward(&stream, &single);
                assert_memory_equal(out + (uint64_t)i * bytes, row, bytes);
            }
            slc_stream_destroy(&stream);
        }
        test_release(table), test_release(out), test_release(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_results),        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(large_vocabulary),     cmocka_unit_test(a_row_is_rounded_once),
        cmocka_unit_test(no_rows_and_too_many), cmocka_unit_test(a_call_is_summed_from_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
