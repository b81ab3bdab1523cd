/* The embedding is exact forward; backward adds equal tokens in the order of their positions, for any thread count. */
#include "lib/kernels/embedding/embedding.h"
#include "lib/kernels/embedding/embedding_ref.h"
#include "lib/kernels/kernel_test.h"

enum { BATCH = 3, VOCABULARY = 23 };

static void check(uint64_t length, uint64_t channels)
{
    uint64_t rows = BATCH * length, seed = 9;
    int32_t *tokens = malloc(rows * sizeof *tokens);
    assert_non_null(tokens);
    for (uint64_t i = 0; i < rows; i++) tokens[i] = (int32_t)(test_random(&seed) % VOCABULARY);
    float *table = test_uniform_floats(VOCABULARY * channels, -1, 1, 1),
          *position = test_uniform_floats(length * channels, -1, 1, 2);
    float *dout = test_uniform_floats(rows * channels, -1, 1, 3), *out = test_floats(rows * channels);
    double *table64 = test_widen(VOCABULARY * channels, table), *position64 = test_widen(length * channels, position);
    double *dout64 = test_widen(rows * channels, dout), *out64 = test_doubles(rows * channels);
    slc_embedding_forward_ref(BATCH, length, channels, tokens, table64, position64, out64);
    slc_embedding_backward_ref(BATCH, length, channels, tokens, dout64, table64, position64);

    float *first[2] = {0};
    TEST_EACH_ISA(isa)
    for (uint32_t threads = 1; threads <= 3; threads++) {
        slc_stream stream = test_stream(threads);
        float *dtable = test_copy(VOCABULARY * channels, table), *dposition = test_copy(length * channels, position);
        assert_int_equal(slc_embedding_forward(&stream, BATCH, length, channels, tokens, table, position, out),
                         SLUICE_OK);
        for (uint64_t i = 0; i < rows * channels; i++) assert_true(out[i] == (float)out64[i]);
        assert_int_equal(slc_embedding_backward(&stream, BATCH, length, channels, tokens, dout, dtable, dposition),
                         SLUICE_OK);
        test_close("dtable", VOCABULARY * channels, dtable, table64, 1e-5);
        test_close("dposition", length * channels, dposition, position64, 1e-5);
        test_same_bits("dtable", VOCABULARY * channels, dtable, &first[0]);
        test_same_bits("dposition", length * channels, dposition, &first[1]);
        free(dtable), free(dposition);
        slc_stream_destroy(&stream);
    }
    free(tokens), free(table), free(position), free(dout), free(out), free(first[0]), free(first[1]);
    free(table64), free(position64), free(dout64), free(out64);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t lengths[] = {1, 8, 64, 197, 512}, channels[] = {1, 16, 48, 100, 200};
    for (size_t l = 0; l < TEST_COUNT_OF(lengths); l++)
        for (size_t c = 0; c < TEST_COUNT_OF(channels); c++) check(lengths[l], channels[c]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_float64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
