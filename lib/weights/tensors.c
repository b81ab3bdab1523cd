/* The set itself: files, tensors in their order, and tensors in the order of their names.
 * golden_weights_test.c covers this file. */
#include "lib/weights/tensors.h"

#include "lib/base/array.h"
#include "lib/base/status.h"
#include "lib/weights/tensors_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[SLC_TENSOR_DTYPES] = {
    [SLC_TENSOR_F64] = {"F64", 8},   [SLC_TENSOR_F32] = {"F32", 4}, [SLC_TENSOR_F16] = {"F16", 2},
    [SLC_TENSOR_BF16] = {"BF16", 2}, [SLC_TENSOR_I64] = {"I64", 8}, [SLC_TENSOR_I32] = {"I32", 4},
    [SLC_TENSOR_I16] = {"I16", 2},   [SLC_TENSOR_I8] = {"I8", 1},   [SLC_TENSOR_U8] = {"U8", 1},
    [SLC_TENSOR_BOOL] = {"BOOL", 1},
};

const char *slc_tensor_dtype_name(slc_tensor_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t slc_tensor_dtype_bytes(slc_tensor_dtype dtype)
{
    return dtypes[dtype].bytes;
}

void slc_tensor_shape_text(uint32_t rank, const uint64_t *shape, char *out, size_t room)
{
    size_t used = (size_t)snprintf(out, room, "[");
    for (uint32_t i = 0; i < rank && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%llu", i ? ", " : "", (unsigned long long)shape[i]);
    if (used < room) snprintf(out + used, room - used, "]");
}

bool slc_tensor_measure(slc_tensor_dtype dtype, uint32_t rank, const uint64_t *shape, uint64_t *elements,
                        uint64_t *bytes)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(product, shape[i], &product)) return false;
    *elements = product;
    return !__builtin_mul_overflow(product, slc_tensor_dtype_bytes(dtype), bytes) && *bytes <= INT64_MAX;
}

/* ---- Building ---- */

sluice_status slc_tensors_create(slc_tensors **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "set of tensors");
}

void slc_tensors_close(slc_tensors *tensors)
{
    if (!tensors) return;
    for (uint32_t i = 0; i < tensors->file_count; i++) slc_file_close(&tensors->files[i]);
    for (size_t i = 0; i < tensors->count; i++) free((char *)tensors->tensors[i].name);
    free(tensors->files);
    free(tensors->tensors);
    free(tensors->by_name);
    free(tensors);
}

sluice_status slc_tensors_add_file(slc_tensors *tensors, const char *path, uint32_t *index)
{
    if (!SLC_ROOM_FOR_ONE(tensors->files, tensors->file_count))
        return slc_error(SLUICE_ERR_MEMORY, "list of files of tensors");
    sluice_status status = slc_file_open(path, &tensors->files[tensors->file_count]);
    if (!status) *index = tensors->file_count++;
    return status;
}

sluice_status slc_tensors_identity(const slc_tensors *tensors, uint64_t *hash)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < tensors->file_count; i++) status = slc_file_identity(&tensors->files[i], hash);
    return status;
}

sluice_status slc_tensors_add(slc_tensors *tensors, const slc_tensor *tensor)
{
    if (!SLC_ROOM_FOR_ONE(tensors->tensors, tensors->count)) return slc_error(SLUICE_ERR_MEMORY, "list of tensors");
    slc_tensor added = *tensor;
    uint64_t bytes;
    slc_tensor_measure(added.dtype, added.rank, added.shape, &added.elements, &bytes);
    added.name = strdup(tensor->name);
    if (!added.name) return slc_error(SLUICE_ERR_MEMORY, "name of a tensor");
    tensors->tensors[tensors->count++] = added;
    return SLUICE_OK;
}

static int compare_names(const void *a, const void *b)
{
    const slc_tensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

sluice_status slc_tensors_finish(slc_tensors *tensors)
{
    tensors->by_name = calloc(tensors->count + 1, sizeof *tensors->by_name);
    if (!tensors->by_name) return slc_error(SLUICE_ERR_MEMORY, "list of names of tensors");
    for (size_t i = 0; i < tensors->count; i++) tensors->by_name[i] = &tensors->tensors[i];
    qsort(tensors->by_name, tensors->count, sizeof *tensors->by_name, compare_names);
    for (size_t i = 1; i < tensors->count; i++) {
        const slc_tensor *before = tensors->by_name[i - 1], *tensor = tensors->by_name[i];
        if (!strcmp(before->name, tensor->name))
            return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is in %s too", slc_tensors_path(tensors, tensor),
                             tensor->name, slc_tensors_path(tensors, before));
    }
    return SLUICE_OK;
}

/* ---- Access ---- */

size_t slc_tensors_count(const slc_tensors *tensors)
{
    return tensors->count;
}

const slc_tensor *slc_tensors_at(const slc_tensors *tensors, size_t index)
{
    return &tensors->tensors[index];
}

const slc_tensor *slc_tensors_find(const slc_tensors *tensors, const char *name)
{
    slc_tensor wanted = {.name = name};
    const slc_tensor *key = &wanted;
    const slc_tensor **found = bsearch(&key, tensors->by_name, tensors->count, sizeof *tensors->by_name, compare_names);
    return found ? *found : NULL;
}

const char *slc_tensors_path(const slc_tensors *tensors, const slc_tensor *tensor)
{
    return tensors->files[tensor->file].path;
}
