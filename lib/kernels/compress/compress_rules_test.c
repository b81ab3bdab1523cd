/* The rules of compress.h other than the arithmetic: padding, folded errors, zeros, non-finite numbers, words,
 * wrong arguments; and the update without compression. */
#include "tests/support/kernels/compress_ranks.h"

static void padding_is_the_rule_s(void **state)
{
    (void)state;
    const struct {
        uint32_t ranks;
        uint64_t unit;
    } rows[] = {{1, 8}, {2, 16}, {3, 72}, {4, 32}, {5, 200}, {6, 144}, {7, 392}, {8, 64}, {16, 256}};
    for (size_t i = 0; i < TEST_COUNT_OF(rows); i++)
        for (uint64_t count = 0; count < 900; count += 89) {
            slc_compress_shape shape = {count, 0, rows[i].ranks};
            uint64_t unit = rows[i].unit, all = (count + unit - 1) / unit * unit;
            assert_int_equal(slc_compress_chunk(&shape) * rows[i].ranks, all);
            assert_int_equal(slc_compress_packet_bytes(&shape), 4 + all / rows[i].ranks / 8);
        }
}

static void whole_step(exchange *e, uint64_t seed)
{
    compress_ranks_draw(e, seed);
    for (uint32_t r = 0; r < e->shape.ranks; r++) compress_rank(e, r);
    for (uint32_t k = 0; k < e->shape.ranks; k++) serve_chunk(e, k, 4096);
    compress_ranks_forget(e);
}

static void folded_errors_go_on_to_the_same_bits(void **state)
{
    (void)state;
    enum { COUNT = 5003, RANKS = 3 };
    for (uint64_t scale_elements = 0; scale_elements < 100; scale_elements += 64) {
        float *first = NULL;
        parameter p = frozen_parameter_create(COUNT);
        TEST_EACH_WAY(way)
        for (int folds = 0; folds < 2; folds++) {
            exchange e = compress_ranks_create(RANKS, COUNT, scale_elements, 1, SLUICE_FP32, SLUICE_FP32);
            for (uint64_t step = 0; step < 4; step++) {
                whole_step(&e, step);
                for (uint32_t r = 0; folds && r < RANKS; r++) {
                    double *error = residue_errors(&e, &e.worker[r], RANKS);
                    assert_int_equal(slc_compress_fold(&e.stream, &e.shape, RANKS, &e.worker[r]), SLUICE_OK);
                    assert_int_equal(slc_compress_fold(&e.stream, &e.shape, 1, &e.server[r]), SLUICE_OK);
                    test_close("error", RANKS * e.chunk, e.worker[r].sum, error, 1e-6);
                    for (uint64_t i = 0; i < e.scales; i++) assert_true(e.server[r].scale[i] == 0);
                    test_release(error);
                }
            }
            compress_ranks_draw(&e, 9);
            for (uint32_t r = 0; r < RANKS; r++) compress_rank(&e, r);
            for (uint32_t k = 0; k < RANKS; k++) serve_chunk(&e, k, 4096);
            compress_ranks_forget(&e);
            check_exchange_bits(&e, &p, &first);
            compress_ranks_destroy(&e);
        }
        test_release(first);
        frozen_parameter_destroy(&p);
    }
}

static void zeros_have_scale_zero(void **state)
{
    (void)state;
    enum { COUNT = 77, RANKS = 2 };
    TEST_EACH_WAY(way)
    {
        exchange e = compress_ranks_create(RANKS, COUNT, 0, 1, SLUICE_FP32, SLUICE_FP32);
        parameter p = frozen_parameter_create(COUNT);
        compress_ranks_draw(&e, 1);
        for (int i = 0; i < COUNT; i++) ((float *)e.momentum)[i] = -0.0f;
        for (int r = 0; r < RANKS; r++) memset(e.gradient[r], 0, COUNT * sizeof(float));
        for (uint32_t r = 0; r < RANKS; r++) compress_and_check(&e, r);
        for (uint32_t k = 0; k < RANKS; k++) serve_and_check(&e, k, 4096);
        apply_and_check(&e, &p, true);
        for (int i = 0; i < COUNT; i++) assert_true(((float *)e.momentum)[i] == 0);
        for (uint64_t i = 0; i < e.chunk; i++) assert_true(packet_sign(&e, e.packets[1], i) == 1);
        compress_ranks_forget(&e);
        frozen_parameter_destroy(&p);
        compress_ranks_destroy(&e);
    }
}

static bool all_finite(uint64_t count, const float *x)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* One bad element on one rank must fail the exchange for all ranks and move nothing; the next exchange must be
 * whole. */
static void what_is_not_finite_is_skipped(void **state)
{
    (void)state;
    enum { COUNT = 2003, RANKS = 3 };
    const float bad[] = {INFINITY, -INFINITY, NAN, 3e38f};
    TEST_EACH_WAY(way)
    for (size_t b = 0; b < TEST_COUNT_OF(bad); b++) {
        exchange e = compress_ranks_create(RANKS, COUNT, 0, 1, SLUICE_FP32, SLUICE_FP32);
        parameter p = frozen_parameter_create(COUNT);
        whole_step(&e, 1);
        compress_ranks_draw(&e, 2);
        ((float *)e.gradient[1])[COUNT - 2] = bad[b];
        if (isfinite(bad[b])) e.worker[1].sum[COUNT - 2] = 3.4e38f, ((float *)e.momentum)[COUNT - 2] = 3.4e38f;
        for (uint32_t r = 0; r < RANKS; r++) compress_rank(&e, r);
        for (uint32_t k = 0; k < RANKS; k++) serve_chunk(&e, k, 4096);
        assert_true(isinf(e.worker[1].scale[0]) && isfinite(e.worker[0].scale[0]));

        float *value = test_copy(COUNT, p.value), *momentum = test_copy(COUNT, e.momentum);
        *e.finite = true;
        slc_frozen_range range = frozen_range_of(&e, &p, e.momentum, false);
        for (uint32_t k = 0; k < RANKS; k++) assert_true(isinf(packet_scale(&e, e.result + k * e.stride, 0)));
        const slc_compress_results results = {&e.shape, e.result, e.stride, 0, COUNT};
        slc_compress_apply(&e.stream, &settings, &results, &range, e.finite);
        assert_false(*e.finite);
        assert_memory_equal(p.value, value, sizeof *value * COUNT);
        assert_memory_equal(e.momentum, momentum, sizeof *momentum * COUNT);
        compress_ranks_forget(&e);

        ((float *)e.momentum)[COUNT - 2] = 0;
        compress_ranks_draw(&e, 3);
        for (uint32_t r = 0; r < RANKS; r++) compress_and_check(&e, r);
        for (uint32_t k = 0; k < RANKS; k++) serve_and_check(&e, k, 4096);
        apply_and_check(&e, &p, true);
        assert_true(all_finite(COUNT, p.value) && all_finite(RANKS * e.chunk, e.worker[1].sum));
        compress_ranks_forget(&e);
        test_release(value), test_release(momentum);
        frozen_parameter_destroy(&p);
        compress_ranks_destroy(&e);
    }
}

static void frozen_update_agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 16, 197, 50021};
    TEST_EACH_DTYPE(gradient)
    TEST_EACH_DTYPE(momentum)
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++) {
        float *first = NULL;
        TEST_EACH_WAY_OF(way, counts[c])
        for (uint32_t threads = 1; threads <= 2; threads++) {
            exchange e = compress_ranks_create(1, counts[c], 0, threads, gradient, momentum);
            parameter p = frozen_parameter_create(counts[c]);
            float *before = test_copy(counts[c], p.value);
            compress_ranks_draw(&e, 5);
            double *m64 = test_widen_typed(momentum, counts[c], e.momentum);
            double *g64 = test_widen_typed(gradient, counts[c], e.gradient[0]);
            for (uint64_t i = 0; i < counts[c]; i++) m64[i] = 0.9 * m64[i] + 0.1 * 0.7 * g64[i];
            slc_frozen_range range = frozen_range_of(&e, &p, e.momentum, true);
            assert_int_equal(slc_frozen_update(&e.stream, &settings, gradient, e.gradient[0], &range), SLUICE_OK);
            check_frozen_update(&e, &p, e.momentum, before, m64, true, 1e-6);
            check_exchange_bits(&e, &p, &first);
            test_release(before), test_release(m64), test_release(g64);
            compress_ranks_forget(&e);
            frozen_parameter_destroy(&p);
            compress_ranks_destroy(&e);
        }
        test_release(first);
    }
}

/* Words must say what is to be done with a tensor, and kernels must heed them. */
static void packets_are_looked_at(void **state)
{
    (void)state;
    enum { COUNT = 2003, RANKS = 3 };
    TEST_EACH_WAY(way)
    for (int bad = 0; bad < 3; bad++)
        for (int given = 0; given < 3; given++) {
            exchange e = compress_ranks_create(RANKS, COUNT, bad == 2 ? 64 : 0, 1, SLUICE_FP32, SLUICE_FP32);
            sluice_step_words *words = test_bytes(2 * sizeof *words), *told = words + 1;
            uint32_t *lowest = test_bytes(sizeof *lowest);
            const float infinite = -INFINITY;
            *words = (sluice_step_words){0.25, given == 2};
            *told = (sluice_step_words){7, 7};
            *lowest = 9;
            whole_step(&e, 1);
            for (int i = 0; i < 5; i++) e.bins[i] = 7;
            if (bad) memcpy(e.result + 2 * e.stride + 4 * (e.scales - 1), &infinite, sizeof infinite);
            const slc_compress_look_args args = {&e.shape, e.result,   e.stride, given ? words : NULL, told, lowest,
                                                 5,        e.bins + 1, 3};
            assert_int_equal(slc_compress_look(&e.stream, &args), SLUICE_OK);
            assert_true(told->gradient_factor == (given ? 0.25 : 1));
            assert_int_equal(told->skip, given == 2 ? 1 : bad ? SLC_EXCHANGE_FAILED : 0);
            assert_int_equal(*lowest, bad && given < 2 ? 5 : 9);
            for (int i = 0; i < 5; i++) assert_int_equal(e.bins[i], i % 4 ? 0 : 7);
            *lowest = 3;
            assert_int_equal(slc_compress_look(&e.stream, &args), SLUICE_OK);
            assert_int_equal(*lowest, 3);
            test_release(words), test_release(lowest);
            compress_ranks_destroy(&e);
        }
}

/* A factor in the words must count as one in the input, and a skipped step must change nothing. */
static void words_are_heeded(void **state)
{
    (void)state;
    enum { COUNT = 1003, RANKS = 2 };
    for (uint32_t skip = 0; skip < 2; skip++) {
        float *first = NULL;
        TEST_EACH_WAY(way)
        for (int told = 0; told < 2; told++) {
            exchange e = compress_ranks_create(RANKS, COUNT, 0, 1, SLUICE_FP32, SLUICE_FP32);
            parameter p = frozen_parameter_create(COUNT);
            sluice_step_words *words = test_bytes(sizeof *words);
            *words = (sluice_step_words){clip, skip};
            whole_step(&e, 1);
            compress_ranks_draw(&e, 2);
            slc_adamw_settings adam = settings;
            slc_compress_input input = {.gradient = e.gradient[0],
                                        .momentum = e.momentum,
                                        .gradient_factor = told ? 3 : clip,
                                        .factor = factor,
                                        .rest = rest,
                                        .words = told ? words : NULL};
            if (told) adam.words = words, adam.gradient_factor = 3;
            if (told || !skip) {
                const void *packets[] = {e.packets[0], e.packets[1]};
                slc_frozen_range range = frozen_range_of(&e, &p, e.momentum, true);
                const slc_compress_results results = {&e.shape, e.packets[0], e.stride, 0, COUNT};
                const slc_compress_served chunk = {&e.shape, packets, &e.server[0], e.bins, e.result, input.words};
                memset(e.bins, 0, SLC_NORM_BINS * sizeof *e.bins);
                assert_false(slc_compress_worker(&e.stream, &e.shape, &input, &e.worker[0], e.packets[0], e.stride));
                assert_false(slc_compress_server(&e.stream, &chunk, 0, e.chunk));
                assert_false(slc_compress_server_end(&e.stream, &chunk));
                assert_false(slc_compress_apply(&e.stream, &adam, &results, &range, e.finite));
                assert_false(slc_frozen_update(&e.stream, &adam, SLUICE_FP32, e.gradient[1], &range));
            }
            check_exchange_bits(&e, &p, &first);
            compress_ranks_forget(&e), test_release(words);
            frozen_parameter_destroy(&p);
            compress_ranks_destroy(&e);
        }
        test_release(first);
    }
}

/* ---- Many tensors in one call ---- */

/* More than are handed over at a time, some of them empty, the last ones of another type. */
enum { TENSORS = 21, NARROW_FROM = 18, TOGETHER_RANKS = 2 };

typedef struct {
    exchange e;
    parameter p;
    slc_compress_results results;
} one_of_many;

static void create_many(one_of_many *all)
{
    static const uint64_t counts[] = {1, 700, 0, 17, 4099, 64, 2500};
    for (uint32_t i = 0; i < TENSORS; i++) {
        one_of_many *one = &all[i];
        const sluice_dtype dtype = i < NARROW_FROM ? SLUICE_FP32 : SLUICE_BF16;
        one->e = compress_ranks_create(TOGETHER_RANKS, counts[i % TEST_COUNT_OF(counts)], i % 5 == 4 ? 64 : 0, 1, dtype,
                                       dtype);
        one->p = frozen_parameter_create(one->e.shape.count);
        one->results = (slc_compress_results){&one->e.shape, one->e.packets[0], one->e.stride, 0, one->e.shape.count};
        compress_ranks_draw(&one->e, i);
    }
}

static void destroy_many(one_of_many *all)
{
    for (uint32_t i = 0; i < TENSORS; i++) {
        compress_ranks_forget(&all[i].e);
        frozen_parameter_destroy(&all[i].p);
        compress_ranks_destroy(&all[i].e);
    }
}

static slc_frozen_range range_of_one(const one_of_many *one)
{
    return frozen_range_of(&one->e, &one->p, one->e.momentum, true);
}

static void run_each(one_of_many *all)
{
    for (uint32_t i = 0; i < TENSORS; i++) {
        exchange *e = &all[i].e;
        const slc_frozen_range range = range_of_one(&all[i]);
        compress_rank(e, 0);
        assert_false(slc_compress_apply(&e->stream, &settings, &all[i].results, &range, NULL));
        if (i < NARROW_FROM)
            assert_false(slc_frozen_update(&e->stream, &settings, SLUICE_FP32, e->gradient[1], &range));
    }
}

static void run_together(one_of_many *all)
{
    slc_compress_tensor tensors[TENSORS];
    slc_compress_update updates[TENSORS];
    slc_frozen_range ranges[TENSORS];
    const void *gradients[TENSORS];
    for (uint32_t i = 0; i < TENSORS; i++) {
        exchange *e = &all[i].e;
        const slc_compress_input input = {.gradient_dtype = e->gradient_dtype,
                                          .momentum_dtype = e->momentum_dtype,
                                          .gradient = e->gradient[0],
                                          .momentum = e->momentum,
                                          .gradient_factor = clip,
                                          .factor = factor,
                                          .rest = rest};
        ranges[i] = range_of_one(&all[i]);
        gradients[i] = e->gradient[1];
        tensors[i] = (slc_compress_tensor){&e->shape, input, &e->worker[0], e->packets[0], e->stride};
        updates[i] = (slc_compress_update){settings, all[i].results, ranges[i]};
    }
    sluice_stream *stream = &all[0].e.stream;
    assert_false(slc_compress_worker_many(stream, TENSORS, tensors));
    assert_false(slc_compress_apply_many(stream, TENSORS, updates));
    assert_false(slc_frozen_update_many(stream, &settings, NARROW_FROM, SLUICE_FP32, gradients, ranges));
}

static void many_tensors_have_the_bits_of_each(void **state)
{
    (void)state;
    TEST_EACH_WAY(way)
    {
        one_of_many each[TENSORS], together[TENSORS];
        create_many(each), create_many(together);
        run_each(each), run_together(together);
        for (uint32_t i = 0; i < TENSORS; i++) {
            float *first = NULL;
            check_exchange_bits(&each[i].e, &each[i].p, &first);
            check_exchange_bits(&together[i].e, &together[i].p, &first);
            test_release(first);
        }
        destroy_many(each), destroy_many(together);
    }
}

static void wrong_arguments(void **state)
{
    (void)state;
    exchange e = compress_ranks_create(2, 1000, 64, 1, SLUICE_FP32, SLUICE_FP32);
    parameter p = frozen_parameter_create(1000);
    const slc_compress_shape bad[] = {{1000, 0, 0}, {1000, 24, 2}, {1000, 0, 5000}};
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) assert_int_equal(slc_compress_check(&bad[i]), SLUICE_ERR_ARGUMENT);
    int64_t bins[SLC_NORM_BINS] = {0};
    const void *packets[] = {e.packets[0], e.packets[1]};
    assert_int_equal(e.chunk, 504);
    const uint64_t pieces[][2] = {{16, 64}, {0, 100}, {64, 1024}, {1024, 64}, {64, 448}, {448, 64}, {64, 504}};
    const slc_compress_served chunk = {&e.shape, packets, &e.server[0], bins, e.result, NULL};
    for (size_t i = 0; i < TEST_COUNT_OF(pieces); i++)
        assert_int_equal(slc_compress_server(&e.stream, &chunk, pieces[i][0], pieces[i][1]), SLUICE_ERR_ARGUMENT);
    slc_frozen_range range = frozen_range_of(&e, &p, e.momentum, false);
    bool finite = true;
    slc_compress_results results = {&e.shape, e.result, e.stride, 8, 992};
    assert_int_equal(slc_compress_apply(&e.stream, &settings, &results, &range, &finite), SLUICE_ERR_ARGUMENT);
    range.count = results.count = 999;
    results.first = 0;
    assert_int_equal(slc_compress_apply(&e.stream, &settings, &results, &range, &finite), SLUICE_ERR_ARGUMENT);
    frozen_parameter_destroy(&p);
    compress_ranks_destroy(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_is_the_rule_s),
        cmocka_unit_test(folded_errors_go_on_to_the_same_bits),
        cmocka_unit_test(zeros_have_scale_zero),
        cmocka_unit_test(what_is_not_finite_is_skipped),
        cmocka_unit_test(frozen_update_agrees_with_float64),
        cmocka_unit_test(packets_are_looked_at),
        cmocka_unit_test(words_are_heeded),
        cmocka_unit_test(many_tensors_have_the_bits_of_each),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
