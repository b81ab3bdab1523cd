/* Fits against synthetic links: exact data give the link back, noise and outliers of the size that is seen only move
 * it a little, and nonsense gives legal figures. */
#include "lib/plan/measured/fit_link.h"
#include "tests/support/seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SIZES = 9, TRIALS = 400 };

typedef struct {
    uint64_t state;
} chance;

static double uniform(chance *c, double low, double high)
{
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double)(c->state >> 11) / 0x1p53;
}

static double log_uniform(chance *c, double low, double high)
{
    return exp(uniform(c, log(low), log(high)));
}

static void measure(chance *c, uint32_t world, const slc_link_line *link, double noise, slc_link_sample *samples)
{
    double n = world;
    for (int i = 0; i < SIZES; i++) {
        uint64_t bytes = UINT64_C(65536) << i;
        double exact = link->latency_s * (n - 1) + (double)bytes * (n - 1) / (n * link->bytes_per_s);
        samples[i] = (slc_link_sample){bytes, exact * (1 + uniform(c, -noise, noise)), 0};
    }
}

static slc_link_line random_link(chance *c, uint32_t *world)
{
    *world = 2 + (uint32_t)uniform(c, 0, 1023);
    return (slc_link_line){log_uniform(c, 1e-6, 1e-3), log_uniform(c, 1e7, 1e11)};
}

static void exact_data_give_the_link_back(void **state)
{
    (void)state;
    chance c = {test_seed(1)};
    for (int trial = 0; trial < TRIALS; trial++) {
        uint32_t world;
        slc_link_line link = random_link(&c, &world);
        slc_link_sample samples[SIZES];
        measure(&c, world, &link, 0, samples);
        slc_link_line fit = slc_fit_line(world, samples, SIZES);
        /* Either term may be drowned by the other at all sizes: then only the sum can be seen. */
        for (int i = 0; i < SIZES; i++) {
            double n = world;
            double t = fit.latency_s * (n - 1) + (double)samples[i].bytes * (n - 1) / (n * fit.bytes_per_s);
            assert_true(fabs(t / samples[i].seconds - 1) < 1e-6);
        }
        assert_true(fabs(fit.latency_s - link.latency_s) < 1e-4 * link.latency_s + 1e-6 * samples[0].seconds);
    }
}

static void noise_moves_it_a_little(void **state)
{
    (void)state;
    chance c = {test_seed(2)};
    for (int trial = 0; trial < TRIALS; trial++) {
        uint32_t world;
        slc_link_line link = random_link(&c, &world);
        slc_link_sample samples[SIZES], clean[SIZES];
        measure(&c, world, &link, 0, clean);
        measure(&c, world, &link, 0.1, samples);
        slc_link_line fit = slc_fit_line(world, samples, SIZES);
        assert_true(fit.latency_s >= 0 && fit.bytes_per_s > 0);
        for (int i = 0; i < SIZES; i++) {
            double n = world;
            double t = fit.latency_s * (n - 1) + (double)clean[i].bytes * (n - 1) / (n * fit.bytes_per_s);
            assert_true(fabs(t / clean[i].seconds - 1) < 0.15);
        }
    }
}

/* A size that was measured ten times as long moves the line ten times as much. */
static void a_weight_counts_as_so_many_samples(void **state)
{
    (void)state;
    chance c = {test_seed(8)};
    for (int trial = 0; trial < TRIALS; trial++) {
        slc_link_sample weighted[3], many[30];
        size_t count = 0;
        for (int i = 0; i < 3; i++) {
            weighted[i] = (slc_link_sample){UINT64_C(65536) << 2 * i, uniform(&c, 1, 2) * (1 << 2 * i),
                                            1 + (int)uniform(&c, 0, 9)};
            for (int k = 0; k < (int)weighted[i].weight; k++)
                many[count++] = (slc_link_sample){weighted[i].bytes, weighted[i].seconds, 0};
        }
        const slc_link_line one = slc_fit_line(2, weighted, 3), other = slc_fit_line(2, many, count);
        assert_true(fabs(one.latency_s - other.latency_s) <= 1e-9 * (1 + other.latency_s));
        assert_true(fabs(one.bytes_per_s / other.bytes_per_s - 1) <= 1e-9);
    }
}

static void odd_data_give_legal_figures(void **state)
{
    (void)state;
    const slc_link_sample one = {1 << 20, 1e-3, 0};
    slc_link_line fit = slc_fit_line(2, &one, 1);
    assert_true(fit.latency_s == 0 && fabs(fit.bytes_per_s - (1 << 20) / 2.0 / 1e-3) < 1);

    const slc_link_sample falling[] = {{1 << 16, 2e-3, 0}, {1 << 20, 1e-3, 0}}; /* the longer one is faster */
    fit = slc_fit_line(4, falling, 2);
    assert_true(fit.latency_s > 0 && isfinite(fit.bytes_per_s) && fit.bytes_per_s > 0);

    const slc_link_sample steep[] = {{1 << 16, 1e-6, 0}, {1 << 20, 1e-3, 0}}; /* worse than in proportion: caches */
    fit = slc_fit_line(4, steep, 2);
    assert_true(fit.latency_s == 0 && isfinite(fit.bytes_per_s) && fit.bytes_per_s > 0);

    const slc_link_sample same[] = {{1 << 16, 1e-3, 0}, {1 << 16, 1e-3, 0}};
    fit = slc_fit_line(2, same, 2);
    assert_true(fit.latency_s >= 0 && isfinite(fit.bytes_per_s) && fit.bytes_per_s > 0);
}

/* A bucket that holds `burst` bytes lets operations of `bytes` pass at `peak`, then at `rate`. Completions are late by
 * up to `late_s`; before operation `pause` the sender does nothing for `pause_s`, while the bucket fills again. */
typedef struct {
    double burst, peak, rate, bytes, late_s, pause_s;
    size_t count, pause;
} bucket;

static void complete(chance *c, const bucket *b, double *at_s)
{
    double now = 0, tokens = b->burst;
    at_s[0] = 0;
    for (size_t i = 1; i <= b->count; i++) {
        if (i == b->pause) {
            now += b->pause_s;
            tokens = fmin(tokens + b->rate * b->pause_s, b->burst);
        }
        double fast_s = fmin(b->bytes / b->peak, tokens / (b->peak - b->rate)); /* until the bucket is empty */
        double took = fast_s + (b->bytes - fast_s * b->peak) / b->rate;
        tokens = fmax(tokens - (b->peak - b->rate) * fast_s, 0);
        now += took;
        at_s[i] = now + uniform(c, 0, b->late_s);
    }
}

static void expect_rate(chance *c, const bucket *b, double within)
{
    double at_s[600];
    complete(c, b, at_s);
    assert_true(fabs(slc_fit_steady(at_s, b->count + 1) * b->rate / b->bytes - 1) < within);
}

static void a_bucket_hides_no_rate(void **state)
{
    (void)state;
    chance c = {test_seed(5)};
    for (int trial = 0; trial < TRIALS; trial++) {
        double rate = log_uniform(&c, 1e7, 1e9);
        bucket b = {.rate = rate, .peak = rate * uniform(&c, 1.3, 20), .bytes = log_uniform(&c, 3e4, 1e6)};
        b.count = 8 + (size_t)uniform(&c, 0, 505);
        b.burst = uniform(&c, 0, 0.4) * (double)b.count * b.bytes * (1 - rate / b.peak); /* empty before the middle */
        expect_rate(&c, &b, 1e-6);
        b.count += 24;
        b.late_s = 0.05 * b.bytes / rate;
        expect_rate(&c, &b, 0.02);

        /* A pause in the tail, as when another program has the core, and what the bucket gathers meanwhile. It counts
         * as far as it made the whole train longer. */
        b.count = 128 + (size_t)uniform(&c, 0, 384);
        b.pause = (size_t)(uniform(&c, 0.6, 0.9) * (double)b.count);
        b.burst = uniform(&c, 0, 6) * b.bytes;
        b.pause_s = uniform(&c, 0, 6) * b.bytes / rate;
        expect_rate(&c, &b, 0.02 + b.pause_s * rate / b.bytes / (double)b.count);
    }
}

/* A program that has the core seldom finds many operations complete at a time, and the second half may come at once. */
static void lumps_hide_no_rate(void **state)
{
    (void)state;
    chance c = {test_seed(6)};
    for (int trial = 0; trial < TRIALS; trial++) {
        const size_t count = 8 + (size_t)uniform(&c, 0, 250), lumps = 1 + (size_t)uniform(&c, 0, 6);
        double at_s[300] = {0};
        for (size_t i = 1; i <= count; i++) at_s[i] = (double)((i * lumps + count - 1) / count * count / lumps);
        const double pace = slc_fit_steady(at_s, count + 1);
        assert_true(pace >= 1 - 1e-9 && pace < 2.5);
    }
}

static void short_trains_have_a_pace(void **state)
{
    (void)state;
    assert_true(slc_fit_steady((double[]){1, 3}, 2) == 2);
    assert_true(slc_fit_steady((double[]){0, 1, 3}, 3) == 2);
    double pairs[33]; /* two operations end together, then none for twice as long */
    for (int i = 0; i <= 32; i++) pairs[i] = i / 2 * 2;
    assert_true(slc_fit_steady(pairs, 33) == 1);
}

static void run_reaches_its_share_and_no_shorter_one_does(void **state)
{
    (void)state;
    chance c = {test_seed(3)};
    for (int trial = 0; trial < TRIALS; trial++) {
        uint32_t world;
        slc_link_line link = random_link(&c, &world);
        double n = world, operation_s = uniform(&c, 0, 1e-4);
        uint64_t bytes = slc_fit_run_bytes(world, &link, operation_s, 0.95);
        for (int less = 0; less < 2; less++) {
            double v = less ? (double)bytes * 0.99 - 2 : (double)bytes, wire = v * (n - 1) / (n * link.bytes_per_s);
            double share = wire / (operation_s + link.latency_s * (n - 1) + wire);
            assert_true(less ? share < 0.95 : share >= 0.95 - 1e-9);
        }
    }
    const slc_link_line free_of_latency = {0, 1e9};
    assert_int_equal(slc_fit_run_bytes(2, &free_of_latency, 0, 0.95), 0);
}

/* The figures must be found again in times made by the model itself: while both run, compute advances at 1 - kappa /
 * sigma and communication at 1 / sigma of its speed. */
static void overlap_is_what_the_model_says(void **state)
{
    (void)state;
    chance c = {test_seed(4)};
    for (int trial = 0; trial < TRIALS; trial++) {
        double sigma = uniform(&c, 1, 3), kappa = uniform(&c, 0, sigma), alone = log_uniform(&c, 1e-3, 1);
        slc_overlap_sample sample = {alone, sigma * alone, (1 - kappa / sigma) * sigma * alone};
        double fit_kappa, fit_sigma;
        slc_fit_overlap(&sample, &fit_kappa, &fit_sigma);
        assert_true(fabs(fit_kappa - kappa) < 1e-9 && fabs(fit_sigma - sigma) < 1e-9);
    }
    double kappa, sigma;
    slc_fit_overlap(&(slc_overlap_sample){1, 0.9, 1.2}, &kappa, &sigma); /* noise: faster together than alone */
    assert_true(kappa == 0 && sigma == 1);
    slc_fit_overlap(&(slc_overlap_sample){1, 1.5, 0}, &kappa, &sigma); /* nothing ran at the same time */
    assert_true(kappa == 1.5 && sigma == 1.5);
}

static void median_of_odd_and_even(void **state)
{
    (void)state;
    assert_true(slc_fit_median((double[]){3, 1, 2}, 3) == 2);
    assert_true(slc_fit_median((double[]){4, 1, 3, 2}, 4) == 2.5);
    assert_true(slc_fit_median(NULL, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_data_give_the_link_back),
        cmocka_unit_test(noise_moves_it_a_little),
        cmocka_unit_test(a_weight_counts_as_so_many_samples),
        cmocka_unit_test(odd_data_give_legal_figures),
        cmocka_unit_test(a_bucket_hides_no_rate),
        cmocka_unit_test(lumps_hide_no_rate),
        cmocka_unit_test(short_trains_have_a_pace),
        cmocka_unit_test(run_reaches_its_share_and_no_shorter_one_does),
        cmocka_unit_test(overlap_is_what_the_model_says),
        cmocka_unit_test(median_of_odd_and_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
