/* GEMM as three loops. */
#include "lib/kernels/gemm/gemm_ref.h"

#include <math.h>

/* GELU: Hendrycks & Gimpel, arXiv 1606.08415. */
static double epilogue(slc_epilogue kind, double x)
{
    switch (kind) {
    case SLC_EPILOGUE_NONE: return x;
    case SLC_EPILOGUE_GELU_TANH: return x / 2 * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case SLC_EPILOGUE_GELU_ERF: return x / 2 * (1 + erf(x * 0.70710678118654752440));
    }
    return NAN;
}

void slc_gemm_ref(const slc_gemm_shape *s, const double *a, const double *b, const double *bias, const double *residual,
                  double *c)
{
    const uint64_t lda = s->lda ? s->lda : s->transpose_a ? s->m : s->k;
    const uint64_t ldb = s->ldb ? s->ldb : s->transpose_b ? s->k : s->n;
    const uint64_t ldc = s->ldc ? s->ldc : s->n;
    for (uint64_t i = 0; i < s->m; i++)
        for (uint64_t j = 0; j < s->n; j++) {
            double sum = s->bias ? bias[j] : 0.0;
            for (uint64_t l = 0; l < s->k; l++)
                sum += (s->transpose_a ? a[l * lda + i] : a[i * lda + l]) *
                       (s->transpose_b ? b[j * ldb + l] : b[l * ldb + j]);
            double value = epilogue(s->epilogue, sum);
            if (s->residual) value += residual[i * ldc + j];
            c[i * ldc + j] = s->accumulate ? c[i * ldc + j] + value : value;
        }
}
