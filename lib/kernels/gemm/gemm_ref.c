/* GEMM as three loops. gemm_test.c covers this file. */
#include "lib/kernels/gemm/gemm.h"

void slc_gemm_ref(const slc_gemm_shape *s, const slc_gemm_operands *operands)
{
    const double *a = operands->a, *b = operands->b, *bias = operands->bias, *residual = operands->residual;
    double *c = operands->c;
    const uint64_t lda = s->lda ? s->lda : s->transpose_a ? s->m : s->k;
    const uint64_t ldb = s->ldb ? s->ldb : s->transpose_b ? s->k : s->n;
    const uint64_t ldc = s->ldc ? s->ldc : s->n;
    for (uint64_t i = 0; i < s->m; i++)
        for (uint64_t j = 0; j < s->n; j++) {
            double sum = s->bias ? bias[j] : 0.0;
            for (uint64_t l = 0; l < s->k; l++)
                sum += (s->transpose_a ? a[l * lda + i] : a[i * lda + l]) *
                       (s->transpose_b ? b[j * ldb + l] : b[l * ldb + j]);
            if (s->factor) sum *= (double)operands->factor;
            if (s->residual) sum += residual[i * ldc + j];
            c[i * ldc + j] = s->accumulate ? c[i * ldc + j] + sum : sum;
        }
}
