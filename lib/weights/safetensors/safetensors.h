/* Hugging Face's safetensors: https://github.com/huggingface/safetensors (README, "Format"). A file has
 *   8 bytes: N, little endian;
 *   N bytes of JSON {"NAME": {"dtype", "shape", "data_offsets": [begin, end]}, ..., "__metadata__": {text: text}};
 *   the elements, row-major, little endian, from byte 8 + N with no hole and no overlap.
 * A checkpoint in several files has model.safetensors.index.json next to them: {"weight_map": {"NAME": "FILE",
 * ...}}. */
#pragma once

#include "lib/weights/tensors.h"

/* Opens a file, an index (its name ends with .json), or a folder that has model.safetensors or, failing that,
 * model.safetensors.index.json. The caller closes *out. Refused, with the file and the tensor named: a header longer
 * than the file or than 100 MB, a header that is not JSON, a dtype that is not in the table of tensors.h, more than 8
 * dimensions, sizes that do not agree, offsets with holes or overlaps or beyond the file, and a name that comes twice,
 * is empty, is longer than 1023 bytes or has control characters; for an index also a file that is not next to it, a
 * tensor that is not in the file that the index names, and one in a file that the index does not name. */
sluice_status slc_safetensors_open(const char *path, slc_tensors **out);

/* Writing: all tensors are declared, then their elements are streamed. Tensors may come in any order, but each from its
 * first element to its last. Data goes to PATH.part, which takes the place of `path` when it is complete and on the
 * disk; a `path` that exists but is not a regular file is refused. One thread at a time. The metadata is {"format":
 * "pt"}, so transformers reads the file. Errors: PATH, IO, MEMORY; ORDER for calls out of turn; ARGUMENT for names that
 * come twice, sizes that overflow, and too many elements. */
typedef struct slc_safetensors_writer slc_safetensors_writer;

sluice_status slc_safetensors_create(const char *path, slc_safetensors_writer **out);

/* Declares a tensor; *index identifies it in the calls below (0: the first). */
sluice_status slc_safetensors_declare(slc_safetensors_writer *writer, const char *name, slc_tensor_dtype dtype,
                                      uint32_t rank, const uint64_t *shape, uint32_t *index);

/* Writes the next `count` elements of a tensor of F64, F32 or BF16 (rounded to nearest even). */
sluice_status slc_safetensors_write_float(slc_safetensors_writer *writer, uint32_t index, uint64_t count,
                                          const float *values);

/* Completes the file. If elements are missing it refuses (ORDER) and names the tensor. */
sluice_status slc_safetensors_commit(slc_safetensors_writer *writer);

/* Call it after commit, or instead of it: then no file is left. NULL is allowed. */
void slc_safetensors_destroy(slc_safetensors_writer *writer);
