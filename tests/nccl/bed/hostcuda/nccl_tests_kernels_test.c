/* The host's forms of nccl-tests' kernels: what they expect is what their inputs reduce to, exactly, in each type; and
 * they find a wrong element. The kernels are launched as nvcc's code does it, by a stub and a mangled name. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

void __cudaRegisterFunction(void **image, const char *stub, char *function, const char *name, int threads, void *,
                            void *, dim3 *, dim3 *, int *);

#define ok(call) assert_int_equal(call, 0)
enum { RANKS = 5, COUNT = 300, SEED = 33, FIRST = 1000 };

static const struct {
    const char *code, *word; /* the type, and the unsigned integer of its size, as compilers mangle them */
    size_t bytes;
    int exponent_bits, mantissa_bits; /* 0: an integer */
    bool is_signed;
} types[] = {
    {"a", "h", 1, 0, 0, true},
    {"h", "h", 1, 0, 0, false},
    {"i", "j", 4, 0, 0, true},
    {"j", "j", 4, 0, 0, false},
    {"l", "m", 8, 0, 0, true},
    {"m", "m", 8, 0, 0, false},
    {"f", "j", 4, 8, 23, true},
    {"d", "m", 8, 11, 52, true},
    {"6__half", "t", 2, 5, 10, true},
    {"13__nv_bfloat16", "t", 2, 8, 7, true},
    {"13__nv_fp8_e4m3", "h", 1, 4, 3, true},
    {"13__nv_fp8_e5m2", "h", 1, 5, 2, true},
};
enum { TYPES = sizeof types / sizeof *types };
static const char *const operators[] = {"9ReduceSum", "10ReduceProd", "9ReduceMin",
                                        "9ReduceMax", "9ReduceAvg",   "15ReducePreMulSum"};
enum { SUM, PROD, MIN, MAX, AVG, PRE_MUL_SUM, OPERATORS };

/* The number that an element is. */
static double number(int type, const char *elements, int at)
{
    uint64_t bits = 0;
    memcpy(&bits, elements + (size_t)at * types[type].bytes, types[type].bytes);
    const int width = 8 * (int)types[type].bytes, mantissa = types[type].mantissa_bits;
    const bool negative = types[type].is_signed && bits >> (width - 1);
    if (!mantissa) return negative ? (double)(int64_t)(bits | (width < 64 ? ~0ull << width : 0)) : (double)bits;
    const int exponent = (int)(bits >> mantissa & ((1u << types[type].exponent_bits) - 1));
    const int bias = (1 << (types[type].exponent_bits - 1)) - 1;
    const uint64_t fraction = (bits & ((1ull << mantissa) - 1)) | (uint64_t)(exponent > 0) << mantissa;
    const double value = ldexp((double)fraction, (exponent ? exponent : 1) - bias - mantissa);
    return negative ? -value : value;
}

static void launch(const char *name, void **arguments)
{
    char *kept = strdup(name); /* also the stub's address; the runtime keeps both */
    __cudaRegisterFunction(NULL, kept, NULL, kept, -1, NULL, NULL, NULL, NULL, NULL);
    ok(cudaLaunchKernel(kept, (dim3){1, 1, 1}, (dim3){512, 1, 1}, arguments, 0, NULL));
    ok(cudaDeviceSynchronize());
}

static char *make_elements(void)
{
    char *at;
    ok(cudaMallocManaged((void **)&at, COUNT * 8, cudaMemAttachGlobal));
    return at;
}

static void prepare_input(int type, int op, char *elements, int rank)
{
    char name[160], operator_object = 0;
    int64_t count = COUNT, first = FIRST;
    uint64_t seed = SEED;
    int ranks = RANKS;
    snprintf(name, sizeof name, "_ZN1_13prepareInput2I%sNS_%sEEEvPT_lT0_iiml", types[type].code, operators[op]);
    launch(name, (void *[]){&elements, &count, &operator_object, &ranks, &rank, &seed, &first});
}

static void prepare_expected(int type, int op, char *elements)
{
    char name[160], operator_object = 0;
    int64_t count = COUNT, first = FIRST;
    uint64_t seed = SEED;
    int ranks = RANKS;
    snprintf(name, sizeof name, "_ZN1_16prepareExpected2I%sNS_%sEEEvPT_lT0_iml", types[type].code, operators[op]);
    launch(name, (void *[]){&elements, &count, &operator_object, &ranks, &seed, &first});
}

static int wrong_by_rule(int type, int op, char *results)
{
    char name[160], operator_object = 0;
    int64_t count = COUNT, first = FIRST, *wrong = (int64_t *)make_elements();
    uint64_t seed = SEED;
    unsigned tolerance = 0;
    int ranks = RANKS;
    *wrong = 0;
    snprintf(name, sizeof name, "_ZN1_13verifyInline2I%s%sNS_%sEEEvPKT_lT1_imljPl", types[type].code, types[type].word,
             operators[op]);
    launch(name, (void *[]){&results, &count, &operator_object, &ranks, &seed, &first, &tolerance, &wrong});
    const int found = (int)*wrong;
    ok(cudaFree(wrong));
    return found;
}

static int wrong_by_comparison(int type, char *results, char *expected)
{
    char name[160];
    int64_t count = COUNT, *wrong = (int64_t *)make_elements();
    unsigned tolerance = 0;
    *wrong = 0;
    snprintf(name, sizeof name, "_ZN1_14verifyPreparedI%sEEvPKT_S3_ljPl", types[type].word);
    launch(name, (void *[]){&results, &expected, &count, &tolerance, &wrong});
    const int found = (int)*wrong;
    ok(cudaFree(wrong));
    return found;
}

static double reduce(int op, int type, char *const *inputs, int at)
{
    double all = 0;
    for (int rank = RANKS - 1; rank >= 0; rank--) {
        const double own = number(type, inputs[rank], at) * (op == PRE_MUL_SUM && rank % 2 ? 2 : 1);
        if (rank == RANKS - 1)
            all = own;
        else if (op == PROD)
            all *= own;
        else if (op == MIN || op == MAX)
            all = op == MIN ? fmin(all, own) : fmax(all, own);
        else
            all += own;
    }
    if (op != AVG) return all;
    return types[type].mantissa_bits ? all / RANKS : trunc(all / RANKS);
}

static void expected_is_what_inputs_reduce_to(void **state)
{
    (void)state;
    char *inputs[RANKS], *expected = make_elements();
    for (int r = 0; r < RANKS; r++) inputs[r] = make_elements();
    for (int type = 0; type < TYPES; type++) {
        for (int op = 0; op < OPERATORS; op++) {
            double most = 0;
            for (int r = 0; r < RANKS; r++) prepare_input(type, op, inputs[r], r);
            prepare_expected(type, op, expected);
            for (int i = 0; i < COUNT; i++) {
                const double right = reduce(op, type, inputs, i), said = number(type, expected, i);
                const double unit = op == AVG ? ldexp(fabs(right), -types[type].mantissa_bits - 1) : 0;
                if (fabs(said - right) > unit)
                    fail_msg("type %s, %s, element %d: %g, not %g", types[type].code, operators[op], i, said, right);
                most = fmax(most, fabs(said));
            }
            assert_true(most > 0); /* not all are the same nothing */
            assert_int_equal(wrong_by_rule(type, op, expected), 0);
            assert_int_equal(wrong_by_comparison(type, expected, expected), 0);
        }
    }
    for (int r = 0; r < RANKS; r++) ok(cudaFree(inputs[r]));
    ok(cudaFree(expected));
}

static void wrong_elements_are_counted(void **state)
{
    (void)state;
    char *results = make_elements(), *expected = make_elements();
    for (int type = 0; type < TYPES; type++) {
        prepare_expected(type, SUM, results);
        memcpy(expected, results, COUNT * 8);
        results[0] ^= 1;
        results[(COUNT - 1) * types[type].bytes] ^= 2;
        assert_int_equal(wrong_by_rule(type, SUM, results), 2);
        assert_int_equal(wrong_by_comparison(type, results, expected), 2);
    }
    ok(cudaFree(results));
    ok(cudaFree(expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_is_what_inputs_reduce_to),
        cmocka_unit_test(wrong_elements_are_counted),
    };
    setenv("HOSTCUDA_KERNELS", HOSTCUDA_NCCL_TESTS, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
