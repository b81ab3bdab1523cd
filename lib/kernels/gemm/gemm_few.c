/* The limits below were measured beside oneDNN, with more weights than the cache holds (`sluice-lab gemm --rows` has
 * them in the cache). gemm_test.c covers this file. */
#include "lib/kernels/gemm/gemm_few.h"

#include "lib/base/integer.h"
#include "lib/kernels/host.h"
#include "lib/kernels/isa_bf16.h"

#include <string.h>

enum {
    MOST_ROWS = 16,    /* of A, for sums by row */
    MOST_DOTS = 8,     /* for dot products */
    LONG = 1024,       /* several rows of A longer than this do not stay in the first cache beside dot products */
    LEAST_B = 1 << 12, /* below this many elements of B a call of oneDNN costs less */
    GRAIN = 128        /* least columns for a thread */
};

bool slc_gemm_few_takes(const slc_gemm_shape *s)
{
    if (s->transpose_a || s->factor || s->n * s->k < LEAST_B) return false;
    if (!s->transpose_b) return s->m <= MOST_ROWS;
    return s->m == 1 || (s->m <= MOST_DOTS && s->k <= LONG);
}

static uint64_t a_bytes(const slc_gemm_shape *s)
{
    return s->dtype == SLUICE_BF16 ? slc_round_up(s->m * s->k * sizeof(float), 64) : 0;
}

static uint64_t sums_stride(const slc_gemm_shape *s)
{
    return slc_round_up(s->n, SLC_GEMM_FEW_UNIT);
}

uint64_t slc_gemm_few_bytes(const slc_gemm_shape *s)
{
    return a_bytes(s) + (s->transpose_b ? 0 : s->m * sums_stride(s) * sizeof(float));
}

/* Widens a row. If a pair of registers loads 32 elements of B as those at even and those at odd places, A is put
 * into that order. */
static void widen_row(const uint16_t *row, uint64_t count, bool paired, float *to)
{
    enum { PAIR = 32 };
    const uint64_t whole = paired ? count / PAIR * PAIR : 0;
    for (uint64_t i = 0; i < whole; i++)
        to[i / PAIR * PAIR + i % 2 * (PAIR / 2) + i % PAIR / 2] = sluice_bf16_to_float(row[i]);
    for (uint64_t i = whole; i < count; i++) to[i] = sluice_bf16_to_float(row[i]);
}

static bool takes_pairs(const slc_gemm_shape *s)
{
    return s->dtype == SLUICE_BF16 && !s->transpose_b && slc_isa_has_bf16();
}

static slc_range_kernel *kernel_for(const slc_gemm_shape *s)
{
#if defined(__x86_64__)
    if (takes_pairs(s)) return slc_gemm_few_pairs_avx512;
#endif
    return s->transpose_b ? SLC_ISA_PICK(slc_gemm_few_dots) : SLC_ISA_PICK(slc_gemm_few_sums);
}

void slc_gemm_few(const sluice_stream *stream, const slc_gemm_shape *s, const slc_gemm_operands *operands,
                  void *workspace)
{
    slc_gemm_few_args args = {.dtype = s->dtype, .shape = s, .operands = operands, .a = operands->a, .lda = s->lda};
    if (s->dtype == SLUICE_BF16 && !takes_pairs(s)) {
        float *wide = workspace;
        for (uint64_t row = 0; row < s->m; row++)
            widen_row((const uint16_t *)operands->a + row * s->lda, s->k, s->transpose_b, wide + row * s->k);
        args.a = wide, args.lda = s->k;
    }
    if (!s->transpose_b) args.sums = (float *)((char *)workspace + a_bytes(s));
    slc_host_run(stream, s->n, GRAIN, SLC_GEMM_FEW_UNIT, kernel_for(s), &args);
}
