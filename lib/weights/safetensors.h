/* Hugging Face's safetensors: https://github.com/huggingface/safetensors (README, "Format"). A file is
 *   8 bytes: N, little endian; N bytes of JSON {"NAME": {"dtype", "shape", "data_offsets": [begin, end]}, ...,
 *   "__metadata__": {text: text}}; the elements, row-major, little endian, from byte 8 + N with no hole and no overlap.
 * A checkpoint in several files has model.safetensors.index.json beside them: {"weight_map": {"NAME": "FILE", ...}}. */
#ifndef SLC_WEIGHTS_SAFETENSORS_H
#define SLC_WEIGHTS_SAFETENSORS_H

#include "lib/weights/tensors.h"

/* A file, an index (its name ends with .json), or a folder that has model.safetensors or, failing that,
 * model.safetensors.index.json. The caller closes. Refused, with file and tensor: a header longer than the file or than
 * 100 MB, what is no JSON, dtypes not in the table of tensors.h, more than 8 dimensions, sizes that do not agree,
 * offsets with holes, overlaps or beyond the file, a name that comes twice, is empty or longer than 1023 bytes or has
 * control characters; in an index, a file that is not beside it, a tensor that is not in the file that is named, one in
 * a file that the index does not name. */
sluice_status slc_safetensors_open(const char *path, slc_tensors **out);

/* Writing: all tensors are declared, then their elements are streamed, tensors in any order, each from its first
 * element to its last. Data goes to PATH.part, which takes the place of `path` when all is there and on the disk;
 * what is there and no regular file is refused.
 * One thread at a time. {"format": "pt"} is the metadata, so transformers reads it. Errors: IO, MEMORY; ORDER for calls
 * out of turn; ARGUMENT for names that come twice, sizes that overflow, and elements that are too many. */
typedef struct slc_safetensors_writer slc_safetensors_writer;

sluice_status slc_safetensors_create(const char *path, slc_safetensors_writer **out);

/* *index: for the calls below, 0 for the first. */
sluice_status slc_safetensors_declare(slc_safetensors_writer *writer, const char *name, slc_tensor_dtype dtype,
                                      uint32_t rank, const uint64_t *shape, uint32_t *index);

/* The next `count` elements of a tensor. float: into F64, F32 or BF16 (rounded to nearest even); int32: into the whole
 * dtypes and BOOL, each value within them. */
sluice_status slc_safetensors_write_float(slc_safetensors_writer *writer, uint32_t index, uint64_t count,
                                          const float *values);
sluice_status slc_safetensors_write_int32(slc_safetensors_writer *writer, uint32_t index, uint64_t count,
                                          const int32_t *values);

/* Refused (ORDER) if elements are missing, naming the tensor. */
sluice_status slc_safetensors_commit(slc_safetensors_writer *writer);

/* After commit, or instead of it: then nothing is left behind. NULL is allowed. */
void slc_safetensors_destroy(slc_safetensors_writer *writer);

#endif
