/* Writes safetensors: tensors are declared, laid out at the first write (wide elements first, so that each tensor is
 * aligned to its element size), and streamed. safetensors_test.c covers this file. */
#include "lib/weights/safetensors/safetensors_parts.h"

#include "lib/base/file/draft.h"
#include "lib/base/file/path_error.h"
#include "lib/base/file/sync_folder.h"
#include "lib/base/status.h"

#include "lib/weights/tensors_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sluice/dtype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_ELEMENTS = 2048, LENGTH_BYTES = 8 };

struct slc_safetensors_writer {
    char *path;
    slc_draft draft;
    bool laid_out, committed;
    slc_tensors *tensors; /* offsets count in the file, once laid out */
    uint64_t *written;    /* number of elements written of each tensor */
    json_t *names;        /* names of the declared tensors */
};

/* Opens the draft. A path that is a device or a pipe is refused, because renaming would put a file in its place. */
static sluice_status open_draft(slc_safetensors_writer *writer)
{
    struct stat info;
    if (stat(writer->path, &info) == 0 && !S_ISREG(info.st_mode))
        return slc_error(SLUICE_ERR_PATH, "cannot write %s: it is there and no regular file", writer->path);
    return slc_draft_open(writer->path, &writer->draft);
}

sluice_status slc_safetensors_create(const char *path, slc_safetensors_writer **out)
{
    slc_safetensors_writer *writer = calloc(1, sizeof *writer);
    if (!writer) return slc_error(SLUICE_ERR_MEMORY, "writer of %s", path);
    writer->draft = SLC_DRAFT_NONE;
    writer->names = json_object();
    writer->path = strdup(path);
    sluice_status status = slc_tensors_create(&writer->tensors);
    if (!status && (!writer->path || !writer->names)) status = slc_error(SLUICE_ERR_MEMORY, "writer of %s", path);
    if (!status) status = open_draft(writer);
    if (status) {
        slc_safetensors_destroy(writer);
        return status;
    }
    *out = writer;
    return SLUICE_OK;
}

void slc_safetensors_destroy(slc_safetensors_writer *writer)
{
    if (!writer) return;
    slc_draft_drop(&writer->draft);
    slc_tensors_close(writer->tensors);
    json_decref(writer->names);
    free(writer->written);
    free(writer->path);
    free(writer);
}

/* ---- Declaring ---- */

sluice_status slc_safetensors_declare(slc_safetensors_writer *writer, const char *name, slc_tensor_dtype dtype,
                                      uint32_t rank, const uint64_t *shape, uint32_t *index)
{
    slc_tensor tensor = {.name = name, .dtype = dtype, .rank = rank};
    uint64_t bytes;
    if (writer->laid_out)
        return slc_error(SLUICE_ERR_ORDER, "%s: tensor \"%s\" is declared after the first write", writer->path, name);
    if (!slc_tensor_name_valid(name, strlen(name)) || !strcmp(name, "__metadata__"))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: \"%.1023s\" cannot name a tensor", writer->path, name);
    if (rank > SLC_TENSOR_RANK_MAX || !slc_tensor_measure(dtype, rank, shape, &tensor.elements, &bytes))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: tensor \"%s\" has more than %d dimensions, or its shape overflows",
                         writer->path, name, SLC_TENSOR_RANK_MAX);
    if (json_object_get(writer->names, name))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: tensor \"%s\" is declared twice", writer->path, name);
    if (json_object_set_new(writer->names, name, json_true()))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: the name \"%s\" is no UTF-8", writer->path, name);
    if (rank) memcpy(tensor.shape, shape, rank * sizeof *shape);
    *index = (uint32_t)writer->tensors->count;
    return slc_tensors_add(writer->tensors, &tensor);
}

/* ---- Layout ---- */

static json_t *sizes(const uint64_t *values, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(array, json_integer((json_int_t)values[i]));
    return array;
}

static sluice_status place(slc_safetensors_writer *writer, slc_tensor *tensor, uint64_t *end, json_t *root)
{
    uint64_t bytes = tensor->elements * slc_tensor_dtype_bytes(tensor->dtype), offsets[2] = {*end};
    if (__builtin_add_overflow(*end, bytes, end) || *end > INT64_MAX / 2)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: its tensors are larger than a file can be", writer->path);
    offsets[1] = *end;
    tensor->offset = offsets[0];
    json_t *entry = json_pack("{s:s, s:o, s:o}", "dtype", slc_tensor_dtype_name(tensor->dtype), "shape",
                              sizes(tensor->shape, tensor->rank), "data_offsets", sizes(offsets, 2));
    if (!entry || json_object_set_new(root, tensor->name, entry))
        return slc_error(SLUICE_ERR_MEMORY, "header of %s", writer->path);
    return SLUICE_OK;
}

static sluice_status write_at(slc_safetensors_writer *writer, uint64_t offset, size_t count, const void *data)
{
    errno = slc_write_at(writer->draft.fd, data, count, offset);
    return errno ? slc_path_error("cannot write", writer->path, errno) : SLUICE_OK;
}

/* Writes the header, filled up with spaces so that the data begin at a multiple of eight. */
static sluice_status write_header(slc_safetensors_writer *writer, const json_t *root, uint64_t *data_offset)
{
    char *text = json_dumps(root, JSON_COMPACT);
    if (!text) return slc_error(SLUICE_ERR_MEMORY, "header of %s", writer->path);
    size_t length = strlen(text);
    uint64_t padded = (length + 7) / 8 * 8;
    sluice_status status = write_at(writer, 0, LENGTH_BYTES, &padded);
    if (!status) status = write_at(writer, LENGTH_BYTES, length, text);
    if (!status) status = write_at(writer, LENGTH_BYTES + length, padded - length, "        ");
    free(text);
    *data_offset = LENGTH_BYTES + padded;
    return status;
}

static sluice_status lay_out(slc_safetensors_writer *writer)
{
    slc_tensors *tensors = writer->tensors;
    uint64_t end = 0, data_offset = 0;
    sluice_status status = SLUICE_OK;
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    free(writer->written); /* it may be left from a layout that failed */
    writer->written = calloc(tensors->count + 1, sizeof *writer->written);
    if (!root || !writer->written) status = slc_error(SLUICE_ERR_MEMORY, "header of %s", writer->path);
    for (size_t size = 8; size && !status; size /= 2)
        for (size_t i = 0; i < tensors->count && !status; i++)
            if (slc_tensor_dtype_bytes(tensors->tensors[i].dtype) == size)
                status = place(writer, &tensors->tensors[i], &end, root);
    if (!status) status = write_header(writer, root, &data_offset);
    for (size_t i = 0; i < tensors->count; i++) tensors->tensors[i].offset += data_offset;
    if (!status && ftruncate(writer->draft.fd, (off_t)(data_offset + end)))
        status = slc_path_error("cannot write", writer->path, errno);
    json_decref(root);
    writer->laid_out = !status;
    return status;
}

/* ---- Streaming ---- */

static sluice_status begin_write(slc_safetensors_writer *writer, uint32_t index, uint64_t count)
{
    sluice_status status = writer->laid_out ? SLUICE_OK : lay_out(writer);
    if (status) return status;
    const slc_tensor *tensor = &writer->tensors->tensors[index];
    if (count > tensor->elements - writer->written[index])
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: tensor \"%s\" has %llu elements; more are written", writer->path,
                         tensor->name, (unsigned long long)tensor->elements);
    if (!slc_tensor_dtype_is_real(tensor->dtype) || tensor->dtype == SLC_TENSOR_F16)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: tensor \"%s\" is of dtype %s, which is not written from float",
                         writer->path, tensor->name, slc_tensor_dtype_name(tensor->dtype));
    return SLUICE_OK;
}

static void reals_into(slc_tensor_dtype dtype, size_t count, const float *values, void *piece)
{
    for (size_t i = 0; i < count; i++) {
        if (dtype == SLC_TENSOR_F64)
            ((double *)piece)[i] = values[i];
        else if (dtype == SLC_TENSOR_F32)
            ((float *)piece)[i] = values[i];
        else
            ((uint16_t *)piece)[i] = sluice_bf16_from_float(values[i]);
    }
}

sluice_status slc_safetensors_write_float(slc_safetensors_writer *writer, uint32_t index, uint64_t count,
                                          const float *values)
{
    double piece[PIECE_ELEMENTS];
    sluice_status status = begin_write(writer, index, count);
    const slc_tensor *tensor = &writer->tensors->tensors[index];
    size_t size = slc_tensor_dtype_bytes(tensor->dtype);
    for (uint64_t done = 0; done < count && !status;) {
        size_t take = count - done < PIECE_ELEMENTS ? (size_t)(count - done) : PIECE_ELEMENTS;
        reals_into(tensor->dtype, take, values + done, piece);
        status = write_at(writer, tensor->offset + writer->written[index] * size, take * size, piece);
        if (!status) writer->written[index] += take;
        done += take;
    }
    return status;
}

/* ---- Committing ---- */

sluice_status slc_safetensors_commit(slc_safetensors_writer *writer)
{
    if (writer->committed) return slc_error(SLUICE_ERR_ORDER, "%s is committed already", writer->path);
    sluice_status status = writer->laid_out ? SLUICE_OK : lay_out(writer);
    for (size_t i = 0; i < writer->tensors->count && !status; i++) {
        const slc_tensor *tensor = &writer->tensors->tensors[i];
        if (writer->written[i] != tensor->elements)
            status =
                slc_error(SLUICE_ERR_ORDER, "%s: tensor \"%s\" has %llu of its %llu elements", writer->path,
                          tensor->name, (unsigned long long)writer->written[i], (unsigned long long)tensor->elements);
    }
    if (status) return status;
    if (fsync(writer->draft.fd)) return slc_path_error("cannot write", writer->path, errno);
    writer->committed = true;
    status = slc_draft_keep(&writer->draft, writer->path);
    return status ? status : slc_sync_parent(writer->path); /* so that the new name survives a crash */
}
