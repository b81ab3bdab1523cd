/* cublasLt knows matrices by columns: a product of ours by rows, C = A B, is C' = B' A' there, so the operands change
 * places and nothing is transposed. gemm_test.c covers this file. */
#include "lib/kernels/gemm/gemm_cuda.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/device/cuda.h"
#include "lib/device/settings.h"
#include "lib/kernels/gemm/cublaslt_cuda.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The library ---- */

#define EACH_FUNCTION(X)                                                                                               \
    X(Create)                                                                                                          \
    X(Matmul)                                                                                                          \
    X(MatmulAlgoGetHeuristic)                                                                                          \
    X(MatmulDescCreate)                                                                                                \
    X(MatmulDescDestroy)                                                                                               \
    X(MatmulDescSetAttribute)                                                                                          \
    X(MatrixLayoutCreate)                                                                                              \
    X(MatrixLayoutDestroy)                                                                                             \
    X(MatmulPreferenceCreate)                                                                                          \
    X(MatmulPreferenceDestroy)                                                                                         \
    X(MatmulPreferenceSetAttribute)

static struct {
#define DECLARE(name) __typeof__(cublasLt##name) *name;
    EACH_FUNCTION(DECLARE)
    bool loaded;
    cublasLtHandle_t handle;
} lt;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of lt and of the list of algorithms */

/* Finds cublasLt; *out is the handle that dlsym takes. Returns false if there is none. */
static bool open_library(void **out)
{
    const char *folder = slc_setting_text(&slc_device_settings, "SLUICE_CUDA_LIBRARIES");
    int driver = 0;
    *out = RTLD_DEFAULT;
    if (dlsym(RTLD_DEFAULT, "cublasLtMatmul")) return true;
    if (cudaDriverGetVersion(&driver)) driver = 0;
    *out = slc_gemm_open_cublaslt("", driver);
    if (!*out && *folder) *out = slc_gemm_open_cublaslt(folder, driver);
    return *out;
}

/* Loads cublasLt's functions. The caller holds the lock. */
static sluice_status load_library(void)
{
    if (lt.loaded) return SLUICE_OK;
    void *library;
    const char *missing = open_library(&library) ? NULL : dlerror();
#define FIND(name)                                                                                                     \
    if (!missing && !(*(void **)&lt.name = dlsym(library, "cublasLt" #name))) missing = "cublasLt" #name;
    EACH_FUNCTION(FIND)
    if (missing)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "kernel gemm: cublasLt not found (%s); set SLUICE_CUDA_LIBRARIES to the folder of "
                         "libcublasLt.so, of a version that the driver runs",
                         missing);
    if (lt.Create(&lt.handle)) return slc_error(SLUICE_ERR_SYSTEM, "kernel gemm: cublasLtCreate failed");
    lt.loaded = true;
    return SLUICE_OK;
}

/* ---- Products ---- */

/* The workspace begins at a multiple of 256 bytes, because cublasLt asks for that; callers promise 64 only. */
enum { WORKSPACE_ALIGNMENT = 256 };
#if defined(EMULATED_CUDA)
enum { WORKSPACE_BYTES = 4096 }; /* tests with thousands of products allocate it each time */
#else
enum { WORKSPACE_BYTES = 32 << 20 };
#endif

/* cublasLt adds a bias to a result of the operands' type. */
static bool joins_bias(const slc_gemm_shape *shape)
{
    return shape->bias && shape->out == shape->dtype;
}

/* Returns the bytes at the beginning of the workspace for the bias, which is multiplied by the factor there. That is
 * done for a factor of 1 too, so that the kernels are the same in every step and the first step has launched them
 * all. */
static uint64_t scaled_bias_bytes(const slc_gemm_shape *shape)
{
    const uint64_t bytes = shape->n * sluice_dtype_bytes(shape->dtype);
    return shape->factor && joins_bias(shape) ? slc_round_up(bytes, WORKSPACE_ALIGNMENT) : 0;
}

uint64_t slc_gemm_cuda_bytes(const slc_gemm_shape *shape)
{
    return scaled_bias_bytes(shape) + WORKSPACE_BYTES + WORKSPACE_ALIGNMENT;
}

static char *align_workspace(void *workspace)
{
    return (char *)(((uintptr_t)workspace + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT * WORKSPACE_ALIGNMENT);
}

typedef struct {
    slc_gemm_shape shape; /* its row distances are never 0 */
    bool bias;            /* cublasLt adds it */
    uint32_t alignment[4];
} product_key;

/* An algorithm is kept for each shape, until the process ends. */
typedef struct chosen {
    product_key key;
    cublasLtMatmulAlgo_t algorithm;
    struct chosen *next;
} chosen;
static chosen *algorithms;

/* The descriptors that cublasLt takes for one product; its first operand is our B. */
typedef struct {
    cublasLtMatmulDesc_t matmul;
    cublasLtMatrixLayout_t b, a, c;
} descriptors;

static void descriptors_destroy(descriptors *d)
{
    if (d->matmul) lt.MatmulDescDestroy(d->matmul);
    if (d->b) lt.MatrixLayoutDestroy(d->b);
    if (d->a) lt.MatrixLayoutDestroy(d->a);
    if (d->c) lt.MatrixLayoutDestroy(d->c);
}

static cudaDataType type_of(sluice_dtype dtype)
{
    return dtype == SLUICE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* A matrix that is stored as rows x columns by rows is columns x rows by columns. */
static int make_layout(cublasLtMatrixLayout_t *out, sluice_dtype dtype, uint64_t rows, uint64_t columns,
                       uint64_t stride)
{
    return lt.MatrixLayoutCreate(out, type_of(dtype), columns, rows, (int64_t)stride);
}

static int set_int(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t attribute, int value)
{
    const int32_t word = value;
    return lt.MatmulDescSetAttribute(matmul, attribute, &word, sizeof word);
}

static sluice_status descriptors_create(const product_key *key, const void *bias, descriptors *d)
{
    const slc_gemm_shape *s = &key->shape;
    *d = (descriptors){0};
    int failed = lt.MatmulDescCreate(&d->matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!failed) failed = set_int(d->matmul, CUBLASLT_MATMUL_DESC_TRANSA, s->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (!failed) failed = set_int(d->matmul, CUBLASLT_MATMUL_DESC_TRANSB, s->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (!failed && key->bias) {
        failed = set_int(d->matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
        if (!failed) failed = set_int(d->matmul, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, (int)type_of(s->dtype));
        if (!failed)
            failed = lt.MatmulDescSetAttribute(d->matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    }
    if (!failed)
        failed = make_layout(&d->b, s->dtype, s->transpose_b ? s->n : s->k, s->transpose_b ? s->k : s->n, s->ldb);
    if (!failed)
        failed = make_layout(&d->a, s->dtype, s->transpose_a ? s->k : s->m, s->transpose_a ? s->m : s->k, s->lda);
    if (!failed) failed = make_layout(&d->c, s->out, s->m, s->n, s->ldc);
    return failed ? slc_error(SLUICE_ERR_SYSTEM, "kernel gemm: cublasLt refuses the shape (error %d)", failed)
                  : SLUICE_OK;
}

static sluice_status ask_for_algorithm(const product_key *key, const descriptors *d, cublasLtMatmulAlgo_t *out)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[4] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint64_t bytes = WORKSPACE_BYTES;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int found = 0, failed = lt.MatmulPreferenceCreate(&preference);
    if (failed) return slc_error(SLUICE_ERR_SYSTEM, "kernel gemm: cublasLt error %d", failed);
    failed =
        lt.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    for (int i = 0; i < 4 && !failed; i++)
        failed = lt.MatmulPreferenceSetAttribute(preference, alignments[i], &key->alignment[i], sizeof(uint32_t));
    if (!failed)
        failed =
            lt.MatmulAlgoGetHeuristic(lt.handle, d->matmul, d->b, d->a, d->c, d->c, preference, 1, &result, &found);
    lt.MatmulPreferenceDestroy(preference);
    if (failed || !found)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "kernel gemm: cublasLt has no algorithm for %llu x %llu x %llu (error %d)",
                         (unsigned long long)key->shape.m, (unsigned long long)key->shape.n,
                         (unsigned long long)key->shape.k, failed);
    *out = result.algo;
    return SLUICE_OK;
}

/* Finds the algorithm that is kept for a product, or chooses one and keeps it. The caller holds the lock. */
static sluice_status find_algorithm(const product_key *key, const descriptors *d, cublasLtMatmulAlgo_t *out)
{
    for (const chosen *c = algorithms; c; c = c->next)
        if (!memcmp(&c->key, key, sizeof *key)) {
            *out = c->algorithm;
            return SLUICE_OK;
        }
    chosen *c = calloc(1, sizeof *c);
    if (!c) return slc_error(SLUICE_ERR_MEMORY, "kernel gemm");
    sluice_status status = ask_for_algorithm(key, d, &c->algorithm);
    if (status) {
        free(c);
        return status;
    }
    c->key = *key;
    c->next = algorithms;
    algorithms = c;
    *out = c->algorithm;
    return SLUICE_OK;
}

/* Returns the largest power of two, at most 16, that an array's rows all begin at. */
static uint32_t alignment_of(sluice_dtype dtype, const void *at, uint64_t stride)
{
    const uint64_t all = (uintptr_t)at | stride * sluice_dtype_bytes(dtype) | 16;
    return (uint32_t)(all & (~all + 1));
}

/* Fills in every byte, so that keys may be compared as bytes. */
static void make_key(const slc_gemm_shape *s, bool bias, const void *a, const void *b, const void *from, const void *c,
                     product_key *key)
{
    memset(key, 0, sizeof *key);
    slc_gemm_shape *k = &key->shape;
    k->dtype = s->dtype, k->out = s->out;
    k->transpose_a = s->transpose_a, k->transpose_b = s->transpose_b;
    k->accumulate = s->accumulate, k->residual = s->residual;
    k->m = s->m, k->n = s->n, k->k = s->k;
    k->lda = s->lda ? s->lda : s->transpose_a ? s->m : s->k;
    k->ldb = s->ldb ? s->ldb : s->transpose_b ? s->k : s->n;
    k->ldc = s->ldc ? s->ldc : s->n;
    key->bias = bias;
    key->alignment[0] = alignment_of(s->dtype, b, k->ldb);
    key->alignment[1] = alignment_of(s->dtype, a, k->lda);
    key->alignment[2] = alignment_of(s->out, from, k->ldc);
    key->alignment[3] = alignment_of(s->out, c, k->ldc);
}

sluice_status slc_gemm_cuda(sluice_stream *stream, const slc_gemm_shape *shape, const slc_gemm_operands *operands,
                            void *workspace)
{
    const void *a = operands->a, *b = operands->b, *bias = operands->bias, *residual = operands->residual;
    void *c = operands->c;
    const bool joined = joins_bias(shape);
    const void *from = residual ? residual : c;
    const float factor = shape->factor ? operands->factor : 1, rest = shape->accumulate || residual ? 1 : 0;
    const uint64_t in_front = scaled_bias_bytes(shape);
    char *const aligned = align_workspace(workspace);
    product_key key;
    descriptors d = {0};
    cublasLtMatmulAlgo_t algorithm;
    cudaStream_t handle = slc_cuda_stream(stream);
    sluice_status status = SLUICE_OK;
    if (shape->accumulate && residual)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "kernel gemm: accumulation with a residual is not for a GPU");
    if (in_front) {
        status = slc_gemm_scale_bias_cuda(stream, shape->dtype, shape->n, bias, factor, aligned);
        bias = aligned;
    }
    if (status) return status;
    make_key(shape, joined, a, b, from, c, &key);

    pthread_mutex_lock(&lock);
    status = load_library();
    if (!status) status = descriptors_create(&key, bias, &d);
    if (!status) status = find_algorithm(&key, &d, &algorithm);
    pthread_mutex_unlock(&lock);
    if (!status) {
        int failed = lt.Matmul(lt.handle, d.matmul, &factor, b, d.b, a, d.a, &rest, from, d.c, c, d.c, &algorithm,
                               aligned + in_front, WORKSPACE_BYTES, handle);
        if (failed) status = slc_error(SLUICE_ERR_SYSTEM, "kernel gemm: cublasLt error %d", failed);
    }
    if (!status) status = slc_cuda_launched(stream, "gemm");
    if (!status && bias && !joined)
        status = slc_gemm_add_bias_cuda(stream, shape->m, shape->n, bias, factor, c, key.shape.ldc);
    descriptors_destroy(&d);
    return status;
}
