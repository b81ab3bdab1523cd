/* Unfolding must be exact; the embedding of patches must agree with float64, with and without masks and positions. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/patches/patches.h"

static void unfolds(void **state)
{
    (void)state;
    const slc_patch_shape shapes[] = {
        {1, 1, 1, 1, 1},    {0, 3, 16, 16, 16}, {3, 1, 28, 42, 14}, {2, 3, 15, 21, 3},    {1, 3, 34, 17, 17},
        {2, 3, 96, 96, 16}, {2, 3, 32, 48, 16}, {1, 2, 64, 64, 32}, {2, 3, 224, 224, 16},
    };
    TEST_EACH_DTYPE(dtype)
    for (size_t i = 0; i < TEST_SHAPES(shapes, 6); i++) {
        const slc_patch_shape *s = &shapes[i];
        uint64_t count = s->batch * s->image_channels * s->height * s->width;
        float *pixels = test_uniform_floats(count, -2, 2, i), *first = NULL;
        float *rounded = test_floats(count);
        for (uint64_t k = 0; k < count; k++)
            rounded[k] = dtype == SLUICE_BF16 ? sluice_bf16_to_float(sluice_bf16_from_float(pixels[k])) : pixels[k];
        double *wide = test_widen(count, rounded), *want = test_doubles(count);
        slc_patches_unfold_ref(&(slc_patches_unfold_args){.shape = *s, .pixels = wide, .columns = want});
        TEST_EACH_WAY_OF(way, count)
        for (uint32_t threads = 1; threads <= 3; threads++) {
            sluice_stream stream = test_stream(threads);
            void *columns = test_floats(count);
            const slc_patches_unfold_args args = {.dtype = dtype, .shape = *s, .pixels = pixels, .columns = columns};
            assert_int_equal(slc_patches_unfold(&stream, &args), SLUICE_OK);
            test_close_typed("columns", dtype, count, columns, want, 0, 0);
            test_same_bits_typed("columns", dtype, count, columns, &first);
            test_release(columns);
            slc_stream_destroy(&stream);
        }
        test_release(pixels), test_release(first), test_release(rounded), test_release(wide), test_release(want);
    }
}

static void sizes_must_divide(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    const slc_patch_shape bad[] = {{1, 1, 16, 17, 16}, {1, 1, 17, 16, 16}, {1, 1, 16, 16, 0}};
    float x[17 * 17] = {0}, out[17 * 17];
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) {
        const slc_patches_unfold_args args = {.shape = bad[i], .pixels = x, .columns = out};
        assert_int_equal(slc_patches_unfold(&stream, &args), SLUICE_ERR_ARGUMENT);
    }
    slc_stream_destroy(&stream);
}

typedef struct {
    uint64_t batch, patches, channels;
    bool masks, positions, fresh;
    sluice_dtype dtype, gradient;
} test_case;

static uint8_t *draw_mask(const test_case *t)
{
    uint64_t seed = 3, count = t->batch * t->patches;
    uint8_t *masked = test_bytes(count + 1);
    for (uint64_t i = 0; i < count; i++) masked[i] = test_random(&seed) % 5 < 2 ? (uint8_t)(1 + i % 3) : 0;
    if (t->masks) return masked;
    test_release(masked);
    return NULL;
}

static void check_forward(const test_case *t, const uint8_t *masked)
{
    uint64_t rows = 1 + t->patches, out_count = t->batch * rows * t->channels;
    uint64_t counts[] = {t->batch * t->patches * t->channels, t->channels, t->channels, rows * t->channels};
    void *in[4];
    double *wide[4], *want = test_doubles(out_count);
    for (int i = 0; i < 4; i++) {
        in[i] = test_uniform_typed(t->dtype, counts[i], -1, 1, 1 + (uint64_t)i);
        wide[i] = test_widen_typed(t->dtype, counts[i], in[i]);
    }
    slc_patch_embedding_forward_args args = {.batch = t->batch,
                                             .patches = t->patches,
                                             .channels = t->channels,
                                             .x = wide[0],
                                             .cls = wide[1],
                                             .masked = masked,
                                             .mask_token = masked ? wide[2] : NULL,
                                             .position = t->positions ? wide[3] : NULL,
                                             .out = want};
    slc_patch_embedding_forward_ref(&args);
    args.dtype = t->dtype, args.x = in[0], args.cls = in[1];
    args.mask_token = masked ? in[2] : NULL, args.position = t->positions ? in[3] : NULL;
    float *first = NULL;
    TEST_EACH_WAY_OF(way, out_count)
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sluice_stream stream = test_stream(threads);
        void *out = test_floats(out_count);
        args.out = out;
        assert_int_equal(slc_patch_embedding_forward(&stream, &args), SLUICE_OK);
        test_close_typed("out", t->dtype, out_count, out, want, 1e-6, 2e-3);
        test_same_bits_typed("out", t->dtype, out_count, out, &first);
        test_release(out);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < 4; i++) test_release(in[i]), test_release(wide[i]);
    test_release(want), test_release(first);
}

enum { DCLS, DMASK, DPOSITION, GRADIENTS };

static void check_backward(const test_case *t, const uint8_t *masked)
{
    static const char *const names[GRADIENTS] = {"dcls", "dmask_token", "dposition"};
    uint64_t rows = 1 + t->patches, dout_count = t->batch * rows * t->channels;
    uint64_t dx_count = t->batch * t->patches * t->channels;
    uint64_t counts[GRADIENTS] = {t->channels, masked ? t->channels : 0, t->positions ? rows * t->channels : 0};
    void *dout = test_uniform_typed(t->dtype, dout_count, -1, 1, 7), *before[GRADIENTS] = {0};
    double *dout64 = test_widen_typed(t->dtype, dout_count, dout), *dx64 = test_doubles(dx_count);
    double *terms64 = test_magnitudes(dout_count, dout64), *want[GRADIENTS] = {0}, *terms[GRADIENTS] = {0};
    for (int i = 0; i < GRADIENTS; i++) {
        if (!counts[i]) continue;
        before[i] = test_uniform_typed(t->gradient, counts[i], -1, 1, 8 + (uint64_t)i);
        want[i] = t->fresh ? test_doubles(counts[i]) : test_widen_typed(t->gradient, counts[i], before[i]);
        terms[i] = test_magnitudes(counts[i], want[i]);
    }
    slc_patch_embedding_backward_args args = {.batch = t->batch,
                                              .patches = t->patches,
                                              .channels = t->channels,
                                              .dout = terms64,
                                              .masked = masked,
                                              .dx = dx64,
                                              .dcls = terms[DCLS],
                                              .dmask_token = terms[DMASK],
                                              .dposition = terms[DPOSITION]};
    slc_patch_embedding_backward_ref(&args);
    args.dout = dout64, args.dcls = want[DCLS], args.dmask_token = want[DMASK], args.dposition = want[DPOSITION];
    slc_patch_embedding_backward_ref(&args);
    args.dtype = t->dtype, args.gradient = t->gradient, args.dout = dout, args.fresh = t->fresh;
    float *first[GRADIENTS + 1] = {0};
    TEST_EACH_WAY_OF(way, dout_count)
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sluice_stream stream = test_stream(threads);
        void *dx = test_floats(dx_count), *got[GRADIENTS] = {0};
        for (int i = 0; i < GRADIENTS; i++)
            if (counts[i]) got[i] = test_copy_typed(t->gradient, counts[i], before[i]);
        args.dx = dx, args.dcls = got[DCLS], args.dmask_token = got[DMASK], args.dposition = got[DPOSITION];
        assert_int_equal(slc_patch_embedding_backward(&stream, &args), SLUICE_OK);
        test_close_typed("dx", t->dtype, dx_count, dx, dx64, 0, 0);
        test_same_bits_typed("dx", t->dtype, dx_count, dx, &first[GRADIENTS]);
        for (int i = 0; i < GRADIENTS; i++) {
            if (!counts[i]) continue;
            test_close_sums(names[i], t->gradient, counts[i], got[i], want[i], terms[i]);
            test_same_bits_typed(names[i], t->gradient, counts[i], got[i], &first[i]);
            test_release(got[i]);
        }
        test_release(dx);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < GRADIENTS; i++)
        test_release(before[i]), test_release(want[i]), test_release(terms[i]), test_release(first[i]);
    test_release(terms64), test_release(dout), test_release(dout64), test_release(dx64), test_release(first[GRADIENTS]);
}

static void embedding_agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t patches[] = {0, 1, 9, 196, 576}, channels[] = {1, 100, 1100, 16, 192};
    TEST_EACH_DTYPE(dtype)
    TEST_EACH_DTYPE(gradient)
    for (size_t p = 0; p < TEST_SHAPES(patches, 3); p++)
        for (size_t c = 0; c < TEST_SHAPES(channels, 3); c++)
            for (unsigned variant = 0; variant < 8; variant++) {
                if (patches[p] * channels[c] > (test_brief() ? 500 : 50000) && variant % 3)
                    continue; /* 0, 3 and 6: each option both ways */
                test_case t = {3, patches[p], channels[c], variant & 1, variant & 2, variant & 4, dtype, gradient};
                uint8_t *masked = draw_mask(&t);
                if (gradient == SLUICE_FP32) check_forward(&t, masked);
                check_backward(&t, masked);
                test_release(masked);
            }
}

static void mask_and_token_come_together(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    float x[2] = {0}, cls[1] = {0}, out[3];
    uint8_t masked[2] = {0};
    slc_patch_embedding_forward_args forward = {
        .batch = 1, .patches = 2, .channels = 1, .x = x, .cls = cls, .masked = masked, .out = out};
    const slc_patch_embedding_backward_args backward = {
        .batch = 1, .patches = 2, .channels = 1, .dout = out, .masked = masked, .dx = x, .dcls = cls, .fresh = true};
    assert_int_equal(slc_patch_embedding_forward(&stream, &forward), SLUICE_ERR_ARGUMENT);
    forward.masked = NULL, forward.mask_token = cls;
    assert_int_equal(slc_patch_embedding_forward(&stream, &forward), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_patch_embedding_backward(&stream, &backward), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);
}

/* Large results, which are stored past the cache, must equal those of the images one by one. */
static void large_results(void **state)
{
    (void)state;
    enum { BATCH = 60, PATCHES = 196, CHANNELS = 768, SIDE = 224 };
    const uint64_t image = (1 + PATCHES) * CHANNELS, pixels = 3 * SIDE * SIDE, shorter = PATCHES * CHANNELS;
    slc_patch_shape shape = {BATCH, 3, SIDE, SIDE, 16}, single = {1, 3, SIDE, SIDE, 16};
    float *x = test_repeated_typed(SLUICE_FP32, BATCH * image, -1, 1, 1), gradient[CHANNELS];
    unsigned char *out = (unsigned char *)test_floats(BATCH * image), *one = (unsigned char *)test_floats(image);
    sluice_stream stream = test_stream(2);
    unsigned char *typed[] = {test_repeated_typed(SLUICE_FP32, BATCH * image, -1, 1, 2),
                              test_repeated_typed(SLUICE_BF16, BATCH * image, -1, 1, 2)};
    TEST_EACH_DTYPE(dtype)
    TEST_EACH_ISA(isa)
    {
        const uint64_t bytes = sluice_dtype_bytes(dtype);
        const unsigned char *in = typed[dtype];
        slc_patches_unfold_args unfold = {.dtype = dtype, .shape = shape, .pixels = x, .columns = out};
        assert_int_equal(slc_patches_unfold(&stream, &unfold), SLUICE_OK);
        unfold.shape = single, unfold.columns = one;
        for (uint64_t b = 0; b < BATCH; b++) {
            unfold.pixels = x + b * pixels;
            slc_patches_unfold(&stream, &unfold);
            assert_memory_equal(out + b * pixels * bytes, one, pixels * bytes);
        }
        slc_patch_embedding_forward_args forward = {.dtype = dtype,
                                                    .batch = BATCH,
                                                    .patches = PATCHES,
                                                    .channels = CHANNELS,
                                                    .x = in,
                                                    .cls = in,
                                                    .position = in,
                                                    .out = out};
        slc_patch_embedding_forward(&stream, &forward);
        forward.batch = 1, forward.out = one;
        for (uint64_t b = 0; b < BATCH; b++) {
            forward.x = in + b * shorter * bytes;
            slc_patch_embedding_forward(&stream, &forward);
            assert_memory_equal(out + b * image * bytes, one, image * bytes);
        }
        const slc_patch_embedding_backward_args backward = {.dtype = dtype,
                                                            .gradient = dtype,
                                                            .batch = BATCH,
                                                            .patches = PATCHES,
                                                            .channels = CHANNELS,
                                                            .dout = in,
                                                            .dx = out,
                                                            .dcls = gradient,
                                                            .fresh = true};
        slc_patch_embedding_backward(&stream, &backward);
        for (uint64_t b = 0; b < BATCH; b++)
            assert_memory_equal(out + b * shorter * bytes, in + (b * image + CHANNELS) * bytes, shorter * bytes);
    }
    slc_stream_destroy(&stream);
    test_release(x), test_release(out), test_release(one), test_release(typed[0]), test_release(typed[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_results),
        cmocka_unit_test(unfolds),
        cmocka_unit_test(sizes_must_divide),
        cmocka_unit_test(embedding_agrees_with_float64),
        cmocka_unit_test(mask_and_token_come_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
