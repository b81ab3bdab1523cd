/* The calls of cublasLt that gemm_cuda.c makes: D = alpha op(A) op(B) + beta C, plus a bias for each row, in the
 * column-major order of BLAS. Operands are read into rows of floats and the result is stored where sanitizers see it
 * (this file is compiled with them); the product between is a plain loop that they do not slow down.
 *
 * A call is refused if the real library promises nothing for it: operands, bias and workspace that are not as aligned
 * as the preference of the algorithm said (256 bytes if it said nothing), a workspace that is smaller than the
 * algorithm's, and with SLUICE_EMULATED_PRODUCTS=0 the heuristic knows no algorithm. Each shape counts as a kernel that
 * is loaded when it is first launched. */
#include "tests/cuda_emulated/streams.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <vector>

struct cublasLtContext {
    int unused;
};
struct emulated_matmul {
    bool transpose[2];
    int epilogue;
    const void *bias;
    int bias_type;
};
struct emulated_matrix {
    int type;
    uint64_t rows, columns, stride;
};
enum { OPERANDS = 4, ALIGNED_AT = 256, BIAS_ALIGNED_AT = 16 };
struct emulated_preference {
    uint64_t workspace_bytes;
    uint32_t alignments[OPERANDS]; /* of A, B, C and D, in bytes */
};
/* The conditions of an algorithm, which lie in the words of cublasLtMatmulAlgo_t. */
struct emulated_algorithm {
    uint64_t magic, workspace_bytes;
    uint32_t alignments[OPERANDS];
};
static_assert(sizeof(emulated_algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm fits");
constexpr uint64_t MAGIC = 0x656d756c61746564ull, WORKSPACE_BYTES = 4096;

/* ---- Descriptors ---- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = new cublasLtContext();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmul, cublasComputeType_t compute, cudaDataType scale)
{
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    *matmul = new emulated_matmul{{false, false}, CUBLASLT_EPILOGUE_DEFAULT, NULL, -1};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul)
{
    delete matmul;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    if (bytes != (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof(void *) : sizeof(int)))
        return CUBLAS_STATUS_INVALID_VALUE;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: matmul->transpose[0] = *(const int *)value == CUBLAS_OP_T; break;
    case CUBLASLT_MATMUL_DESC_TRANSB: matmul->transpose[1] = *(const int *)value == CUBLAS_OP_T; break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: matmul->epilogue = *(const int *)value; break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: matmul->bias = *(const void *const *)value; break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: matmul->bias_type = *(const int *)value; break;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t stride)
{
    if ((type != CUDA_R_32F && type != CUDA_R_16BF) || stride < (int64_t)rows) return CUBLAS_STATUS_INVALID_VALUE;
    *layout = new emulated_matrix{type, rows, columns, (uint64_t)stride};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = new emulated_preference{0, {ALIGNED_AT, ALIGNED_AT, ALIGNED_AT, ALIGNED_AT}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes)
{
    const bool workspace = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
    if (bytes != (workspace ? sizeof(uint64_t) : sizeof(uint32_t))) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace) {
        preference->workspace_bytes = *(const uint64_t *)value;
        return CUBLAS_STATUS_SUCCESS;
    }
    const int operand = (int)attribute - (int)CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (operand < 0 || operand >= OPERANDS) return CUBLAS_STATUS_NOT_SUPPORTED;
    preference->alignments[operand] = *(const uint32_t *)value;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- The product ---- */

namespace {
struct product {
    emulated_matmul matmul;
    emulated_matrix a, b, c, d;
    const void *a_at, *b_at, *c_at;
    void *d_at;
    float alpha, beta;
    uint64_t m, n, k;
};
} // namespace

static float get(int type, const void *at, uint64_t i)
{
    return type == CUDA_R_16BF ? __uint_as_float((uint32_t)((const uint16_t *)at)[i] << 16) : ((const float *)at)[i];
}

static void put(int type, void *at, uint64_t i, float value)
{
    if (type == CUDA_R_32F) {
        ((float *)at)[i] = value;
        return;
    }
    const uint32_t bits = __float_as_uint(value);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    ((uint16_t *)at)[i] = (uint16_t)((nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Adds a times b to the columns of `sums`; `a` holds rows of k, b columns of k. Sums of 64 products are joined, so that
 * rounding grows slowly with k. Nothing in here is the program's memory. */
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O3")))
#endif
__attribute__((no_sanitize("address", "thread", "undefined"))) static void
multiply(const float *a, const float *b, float *sums, uint64_t m, uint64_t n, uint64_t k)
{
    constexpr uint64_t TOGETHER = 64;
    float part[TOGETHER]; /* of TOGETHER neighbouring elements of a column */
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i0 = 0; i0 < m; i0 += TOGETHER)
            for (uint64_t k0 = 0; k0 < k; k0 += TOGETHER) {
                const uint64_t rows = m - i0 < TOGETHER ? m - i0 : TOGETHER;
                const uint64_t last = k - k0 < TOGETHER ? k : k0 + TOGETHER;
                for (uint64_t i = 0; i < TOGETHER; i++) part[i] = 0;
                for (uint64_t at = k0; at < last; at++)
                    for (uint64_t i = 0; i < rows; i++) part[i] += a[at * m + i0 + i] * b[j * k + at];
                for (uint64_t i = 0; i < rows; i++) sums[j * m + i0 + i] += part[i];
            }
}

static void compute(const product *p)
{
    std::vector<float> a(p->m * p->k), b(p->n * p->k), sums(p->m * p->n);
    for (uint64_t at = 0; at < p->k; at++)
        for (uint64_t i = 0; i < p->m; i++)
            a[at * p->m + i] =
                get(p->a.type, p->a_at, p->matmul.transpose[0] ? i * p->a.stride + at : at * p->a.stride + i);
    for (uint64_t j = 0; j < p->n; j++)
        for (uint64_t at = 0; at < p->k; at++)
            b[j * p->k + at] =
                get(p->b.type, p->b_at, p->matmul.transpose[1] ? at * p->b.stride + j : j * p->b.stride + at);
    multiply(a.data(), b.data(), sums.data(), p->m, p->n, p->k);
    for (uint64_t j = 0; j < p->n; j++)
        for (uint64_t i = 0; i < p->m; i++) {
            float value = p->alpha * sums[j * p->m + i];
            if (p->matmul.epilogue == CUBLASLT_EPILOGUE_BIAS) value += get(p->matmul.bias_type, p->matmul.bias, i);
            if (p->beta != 0) value += p->beta * get(p->c.type, p->c_at, j * p->c.stride + i);
            put(p->d.type, p->d_at, j * p->d.stride + i, value);
        }
}

static bool fits(const emulated_matmul *matmul, const emulated_matrix *a, const emulated_matrix *b,
                 const emulated_matrix *c, const emulated_matrix *d)
{
    const uint64_t m = matmul->transpose[0] ? a->columns : a->rows, k = matmul->transpose[0] ? a->rows : a->columns;
    const uint64_t n = matmul->transpose[1] ? b->rows : b->columns;
    return (matmul->transpose[1] ? b->columns : b->rows) == k && d->rows == m && d->columns == n && c->rows == m &&
           c->columns == n && a->type == b->type && c->type == d->type && (d->type == CUDA_R_32F || d->type == a->type);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
                                              int wanted, cublasLtMatmulHeuristicResult_t results[], int *found)
{
    *found = 0;
    if (!fits(matmul, a, b, c, d)) return CUBLAS_STATUS_INVALID_VALUE;
    if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    if (!emulated_option("SLUICE_EMULATED_PRODUCTS", 1)) return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0] = {};
    emulated_algorithm algorithm = {MAGIC, WORKSPACE_BYTES, {}};
    if (preference->workspace_bytes < WORKSPACE_BYTES) algorithm.workspace_bytes = preference->workspace_bytes;
    memcpy(algorithm.alignments, preference->alignments, sizeof algorithm.alignments);
    memcpy(&results[0].algo, &algorithm, sizeof algorithm);
    results[0].workspaceSize = algorithm.workspace_bytes;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static bool is_aligned(const void *at, uint64_t bytes)
{
    return (uintptr_t)at % bytes == 0;
}

/* Says on standard error what the library would not have borne. */
static cublasStatus_t check_memory(const emulated_algorithm *algorithm, const product *p, const void *workspace,
                                   size_t workspace_bytes)
{
    const void *operands[OPERANDS] = {p->a_at, p->b_at, p->beta != 0 ? p->c_at : p->d_at, p->d_at};
    const char *wrong = NULL;
    if (algorithm->magic != MAGIC) wrong = "the algorithm is not from the heuristic";
    for (int i = 0; i < OPERANDS && !wrong; i++)
        if (!is_aligned(operands[i], algorithm->alignments[i]))
            wrong = "an operand is less aligned than the preference";
    if (workspace_bytes < algorithm->workspace_bytes) wrong = "the workspace is smaller than the algorithm's";
    if (algorithm->workspace_bytes && !is_aligned(workspace, ALIGNED_AT)) wrong = "the workspace is not at 256 bytes";
    if (p->matmul.epilogue == CUBLASLT_EPILOGUE_BIAS && !is_aligned(p->matmul.bias, BIAS_ALIGNED_AT))
        wrong = "the bias is not at 16 bytes";
    if (!wrong) return CUBLAS_STATUS_SUCCESS;
    fprintf(stderr, "emulated CUDA: cublasLtMatmul: %s\n", wrong);
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* A number for all products that one kernel makes. */
static uint64_t kernel_of(const product *p, const emulated_algorithm *algorithm)
{
    const uint64_t words[] = {p->m,
                              p->n,
                              p->k,
                              (uint64_t)p->a.type,
                              (uint64_t)p->d.type,
                              (uint64_t)p->matmul.transpose[0] << 1 | (uint64_t)p->matmul.transpose[1],
                              (uint64_t)p->matmul.epilogue,
                              algorithm->alignments[0],
                              algorithm->alignments[1],
                              algorithm->alignments[2],
                              algorithm->alignments[3]};
    uint64_t number = MAGIC;
    for (uint64_t word : words) number = emulated_draw(&number) ^ word;
    return number;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t matmul, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    if (!algorithm || !fits(matmul, a_layout, b_layout, c_layout, d_layout)) return CUBLAS_STATUS_INVALID_VALUE;
    emulated_algorithm needs;
    memcpy(&needs, algorithm, sizeof needs);
    product p = {*matmul,
                 *a_layout,
                 *b_layout,
                 *c_layout,
                 *d_layout,
                 a,
                 b,
                 c,
                 d,
                 *(const float *)alpha,
                 *(const float *)beta,
                 d_layout->rows,
                 d_layout->columns,
                 0};
    p.k = matmul->transpose[0] ? a_layout->rows : a_layout->columns;
    if (p.matmul.bias_type < 0) p.matmul.bias_type = p.d.type;
    if (cublasStatus_t refused = check_memory(&needs, &p, workspace, workspace_bytes)) return refused;
    char name[96];
    snprintf(name, sizeof name, "gemm of %llu x %llu x %llu", (unsigned long long)p.m, (unsigned long long)p.n,
             (unsigned long long)p.k);
    emulated_load(stream, kernel_of(&p, &needs), name);
    cudaError_t error = emulated_enqueue(stream, true, [=] {
        emulated_set_bytes(workspace, 0xff, needs.workspace_bytes); /* it is the library's */
        compute(&p);
    });
    return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
