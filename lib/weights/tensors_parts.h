/* The readers of formats fill a set of tensors through these functions. Private to lib/weights. */
#pragma once

#include "lib/base/file/file.h"
#include "lib/weights/tensor.h"

typedef struct slc_tensors slc_tensors;

struct slc_tensors {
    slc_file *files;
    uint32_t file_count;
    slc_tensor *tensors; /* their names are allocated */
    size_t count;
    const slc_tensor **by_name; /* set by slc_tensors_finish */
};

sluice_status slc_tensors_create(slc_tensors **out);
sluice_status slc_tensors_add_file(slc_tensors *tensors, const char *path, uint32_t *index);

/* Adds a tensor; copies the name and counts the elements. The caller has checked that dtype, shape and place agree
 * (slc_tensor_measure helps). Errors: MEMORY. */
sluice_status slc_tensors_add(slc_tensors *tensors, const slc_tensor *tensor);

/* Computes the product of the shape, and its bytes; returns false if either is beyond 2^63. */
bool slc_tensor_measure(slc_tensor_dtype dtype, uint32_t rank, const uint64_t *shape, uint64_t *elements,
                        uint64_t *bytes);

/* Sorts the names; to be called once all tensors are added. Errors: FORMAT for a name that comes twice, MEMORY. */
sluice_status slc_tensors_finish(slc_tensors *tensors);
