/* A named tensor in a file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    SLC_TENSOR_F64,
    SLC_TENSOR_F32,
    SLC_TENSOR_F16,
    SLC_TENSOR_BF16,
    SLC_TENSOR_I64,
    SLC_TENSOR_I32,
    SLC_TENSOR_I16,
    SLC_TENSOR_I8,
    SLC_TENSOR_U8,
    SLC_TENSOR_BOOL, /* one byte each, 0 or 1 */
    SLC_TENSOR_DTYPES
} slc_tensor_dtype;

enum { SLC_TENSOR_RANK_MAX = 8 };

typedef struct {
    const char *name; /* owned by the set */
    slc_tensor_dtype dtype;
    uint32_t rank; /* 0: a single element */
    uint64_t shape[SLC_TENSOR_RANK_MAX];
    uint64_t elements; /* product of the shape; may be 0 */
    /* The tensor's place in the files, for the set's own use. */
    uint32_t file;
    uint64_t offset;
    bool transposed; /* rank 2; the file holds shape[1] x shape[0] */
} slc_tensor;
