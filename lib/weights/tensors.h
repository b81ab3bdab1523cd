/* Named tensors in files: one interface for Hugging Face's safetensors (one file, or shards next to their index) and
 * llm.c's checkpoints. Opening reads and checks the headers; elements stay in the files until they are read.
 *
 * An open set does not change, and any thread reads it. Errors name the file and the tensor: PATH (missing, no
 * permission), IO (unreadable, shorter than it was), FORMAT (the contents contradict the header), ARGUMENT (not this
 * dtype, or beyond the tensor), MEMORY. */
#pragma once

#include "lib/weights/fingerprint.h"
#include "lib/weights/tensor.h"

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

const char *slc_tensor_dtype_name(slc_tensor_dtype dtype); /* as in safetensors: "F32", "BOOL"; static */
size_t slc_tensor_dtype_bytes(slc_tensor_dtype dtype);
static inline bool slc_tensor_dtype_is_real(slc_tensor_dtype dtype)
{
    return dtype <= SLC_TENSOR_BF16;
}

typedef struct slc_tensors slc_tensors;

void slc_tensors_close(slc_tensors *tensors); /* NULL is allowed */

size_t slc_tensors_count(const slc_tensors *tensors);
const slc_tensor *slc_tensors_at(const slc_tensors *tensors, size_t index);         /* in order of files and offsets */
const slc_tensor *slc_tensors_find(const slc_tensors *tensors, const char *name);   /* NULL if there is none */
const char *slc_tensors_path(const slc_tensors *tensors, const slc_tensor *tensor); /* path of its file */

/* Continues an FNV hash with the identity of the files (slc_file_identity, with its errors), by which processes see
 * that they have opened the same files, unchanged. */
sluice_status slc_tensors_identity(const slc_tensors *tensors, uint64_t *hash);

/* Writes "[2, 3]", for messages; cuts a text that is too long. */
void slc_tensor_shape_text(uint32_t rank, const uint64_t *shape, char *out, size_t room);

/* Read and convert elements [first, first + count), row-major. They need a few ten KiB of the stack besides `out`. A
 * transposed tensor (a matrix of an llm.c checkpoint) needs up to 1 MiB, and one read of the file for each of its
 * shape[1] columns, so take many rows at a time.
 *
 * float: from F64 (rounded), F32, F16, BF16. int32: from the whole numbers and BOOL; a value beyond int32 is a FORMAT
 * error. bytes: from the same, 0 to 255. A dtype of the wrong kind is an ARGUMENT error that names both. */
sluice_status slc_tensors_read_float(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first,
                                     uint64_t count, float *out);
sluice_status slc_tensors_read_int32(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first,
                                     uint64_t count, int32_t *out);
sluice_status slc_tensors_read_bytes(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first,
                                     uint64_t count, uint8_t *out);

/* Reads the whole tensor (F64 to BF16), 64 KiB at a time, and refuses it if an element is NaN or infinite, or would be
 * so in fp32. *fingerprint (NULL: nobody asks) goes on with the values in fp32, as they lie in the file, and ends a
 * block with them. Besides the errors above: NON_FINITE, which names the element. */
sluice_status slc_tensors_check_finite(const slc_tensors *tensors, const slc_tensor *tensor,
                                       slc_fingerprint *fingerprint);
