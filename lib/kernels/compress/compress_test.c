/* The two passes of a rank's compression and the server's must agree with float64, error feedback included, in fp32 and
 * bf16, for 1 to 8 ranks and lengths up to 10^6, with equal bits for every instruction set, on a GPU, for every thread
 * count and cut. */
#include "tests/support/kernels/compress_ranks.h"

typedef struct {
    uint32_t ranks;
    uint64_t count, scale_elements;
    sluice_dtype gradient, momentum;
} exchange_case;

/* Runs several steps, so that errors feed back. The final state must have the bits of `first`. */
static void check_steps(const exchange_case *c, uint64_t steps, uint32_t threads, uint64_t piece, float **first)
{
    exchange e = compress_ranks_create(c->ranks, c->count, c->scale_elements, threads, c->gradient, c->momentum);
    parameter p = frozen_parameter_create(c->count);
    for (uint64_t step = 0; step < steps; step++) {
        compress_ranks_draw(&e, step);
        for (uint32_t r = 0; r < c->ranks; r++) compress_and_check(&e, r);
        for (uint32_t k = 0; k < c->ranks; k++) serve_and_check(&e, k, piece);
        apply_and_check(&e, &p, step % 2);
        compress_ranks_forget(&e);
    }
    check_exchange_bits(&e, &p, first);
    frozen_parameter_destroy(&p);
    compress_ranks_destroy(&e);
}

static void check_case(const exchange_case *c)
{
    float *first = NULL;
    const uint32_t most_threads = c->count < 10000 ? 1 : 2; /* a shorter tensor is not split */
    TEST_EACH_WAY_OF(way, c->ranks * c->count)
    for (uint32_t threads = 1; threads <= (test_on_gpu() ? 1 : most_threads); threads++)
        check_steps(c, 3, threads, way % 2 ? 1000 : UINT64_C(1) << 40, &first);
    test_release(first);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t counts[] = {0, 1, 7, 17, 100, 1003, 8, 15, 63, 64, 197, 4099, 20011};
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (size_t i = 0; i < TEST_SHAPES(counts, 6); i++) {
            uint32_t odd = ranks + (uint32_t)i;
            check_case(&(exchange_case){ranks, counts[i], 0, odd % 2, odd / 2 % 2});
            check_case(&(exchange_case){ranks, counts[i], odd % 3 ? 16 : 256, odd % 2, odd / 2 % 2});
        }
}

/* Lengths are from 1 to 10^6, evenly over the magnitudes, on the best instruction set. */
static void drawn_lengths(void **state)
{
    (void)state;
    uint64_t chance = 6;
    const float digits = test_brief() ? 4 : 6;
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (uint32_t i = 0; i < 6; i++) {
            uint64_t count = (uint64_t)pow(10, (double)test_uniform(&chance, 0, digits));
            uint64_t scale_elements = test_random(&chance) % 3 ? 0 : 16 * (1 + test_random(&chance) % 300);
            uint64_t types = test_random(&chance), steps = count < 100000 ? 6 : 3;
            float *first = NULL;
            check_steps(&(exchange_case){ranks, count, scale_elements, types % 2, types / 2 % 2}, steps, 2, 4000,
                        &first);
            test_release(first);
        }
}

static void many_elements(void **state)
{
    (void)state;
    const uint64_t count = test_brief() ? 40000 : 1000000; /* in either case several pieces and parts */
    TEST_EACH_DTYPE(momentum)
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks += 3) {
        float *first = NULL;
        check_steps(&(exchange_case){ranks, count - momentum * 17, 0, momentum, momentum}, 2, 1 + ranks % 2, 32768,
                    &first);
        test_release(first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(drawn_lengths),
        cmocka_unit_test(many_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
