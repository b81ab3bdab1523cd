/* The part of cublasLt that this project calls, for builds without the toolkit, as cuda_runtime_api.h. */
#pragma once

#include <stdint.h>

#include <cuda_runtime_api.h>

#define EMULATED_CUBLASLT_CONSTANTS(X)                                                                                 \
    X(cublasStatus_t, CUBLAS_STATUS_SUCCESS, 0)                                                                        \
    X(cublasStatus_t, CUBLAS_STATUS_ALLOC_FAILED, 3)                                                                   \
    X(cublasStatus_t, CUBLAS_STATUS_INVALID_VALUE, 7)                                                                  \
    X(cublasStatus_t, CUBLAS_STATUS_EXECUTION_FAILED, 13)                                                              \
    X(cublasStatus_t, CUBLAS_STATUS_NOT_SUPPORTED, 15)                                                                 \
    X(cudaDataType, CUDA_R_32F, 0)                                                                                     \
    X(cudaDataType, CUDA_R_16BF, 14)                                                                                   \
    X(cublasOperation_t, CUBLAS_OP_N, 0)                                                                               \
    X(cublasOperation_t, CUBLAS_OP_T, 1)                                                                               \
    X(cublasComputeType_t, CUBLAS_COMPUTE_32F, 68)                                                                     \
    X(cublasLtMatmulDescAttributes_t, CUBLASLT_MATMUL_DESC_TRANSA, 3)                                                  \
    X(cublasLtMatmulDescAttributes_t, CUBLASLT_MATMUL_DESC_TRANSB, 4)                                                  \
    X(cublasLtMatmulDescAttributes_t, CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                                                \
    X(cublasLtMatmulDescAttributes_t, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                                            \
    X(cublasLtMatmulDescAttributes_t, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26)                                         \
    X(cublasLtEpilogue_t, CUBLASLT_EPILOGUE_DEFAULT, 1)                                                                \
    X(cublasLtEpilogue_t, CUBLASLT_EPILOGUE_BIAS, 4)                                                                   \
    X(cublasLtMatmulPreferenceAttributes_t, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                               \
    X(cublasLtMatmulPreferenceAttributes_t, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)                             \
    X(cublasLtMatmulPreferenceAttributes_t, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                             \
    X(cublasLtMatmulPreferenceAttributes_t, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)                             \
    X(cublasLtMatmulPreferenceAttributes_t, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)

#if defined(__cplusplus)
extern "C" {
#endif

#if !defined(EMULATED_CUBLASLT_TYPES_GIVEN)
typedef int cublasStatus_t;
typedef int cudaDataType;
typedef int cublasOperation_t;
typedef int cublasComputeType_t;
typedef int cublasLtMatmulDescAttributes_t;
typedef int cublasLtMatmulPreferenceAttributes_t;
typedef int cublasLtEpilogue_t;
#define EMULATED_CUBLASLT_CONSTANT(type, name, value) name = value,
/* clang-format off */
enum { EMULATED_CUBLASLT_CONSTANTS(EMULATED_CUBLASLT_CONSTANT) };
/* clang-format on */
#undef EMULATED_CUBLASLT_CONSTANT
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct emulated_matmul *cublasLtMatmulDesc_t;
typedef struct emulated_matrix *cublasLtMatrixLayout_t;
typedef struct emulated_preference *cublasLtMatmulPreference_t;
typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmul, cublasComputeType_t compute, cudaDataType scale);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes);
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t stride);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *found);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream);

#if defined(__cplusplus)
}
#endif
