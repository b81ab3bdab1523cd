/* Reads one file of safetensors. The header is not trusted: the tensors are taken in the order of their offsets, and
 * each must begin where the one before it ends. safetensors_test.c covers this file. */
#include "lib/weights/safetensors/safetensors_parts.h"

#include "lib/base/status.h"
#include "lib/weights/tensors_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES_MAX = 100000000, LENGTH_BYTES = 8, NAME_BYTES_MAX = 1023 };

typedef struct {
    slc_tensor tensor; /* its offset counts from the beginning of the data */
    uint64_t end;
} claim;

typedef struct {
    const char *path;
    uint64_t data_bytes;
    claim *claims;
    size_t count;
} header;

/* ---- One entry ---- */

static sluice_status fault(const header *head, const char *name, const char *what)
{
    return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\": %s", head->path, name, what);
}

bool slc_tensor_name_valid(const char *name, size_t length)
{
    if (!length || length > NAME_BYTES_MAX) return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f) return false;
    return true;
}

static bool read_dtype(const json_t *value, slc_tensor_dtype *out)
{
    for (int dtype = 0; json_is_string(value) && dtype < SLC_TENSOR_DTYPES; dtype++) {
        if (strcmp(json_string_value(value), slc_tensor_dtype_name(dtype)) != 0) continue;
        *out = dtype;
        return true;
    }
    return false;
}

/* Reads an array of at most `most` whole numbers, none below 0. */
static bool read_sizes(const json_t *array, size_t most, uint64_t *out, size_t *count)
{
    if (!json_is_array(array) || json_array_size(array) > most) return false;
    *count = json_array_size(array);
    for (size_t i = 0; i < *count; i++) {
        const json_t *value = json_array_get(array, i);
        if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
        out[i] = (uint64_t)json_integer_value(value);
    }
    return true;
}

static sluice_status read_claim(const header *head, const char *name, const json_t *entry, claim *out)
{
    slc_tensor *tensor = &out->tensor;
    uint64_t offsets[2], bytes;
    size_t rank, pair;
    tensor->name = name;
    if (!json_is_object(entry)) return fault(head, name, "is no {\"dtype\", \"shape\", \"data_offsets\"}");
    if (!read_dtype(json_object_get(entry, "dtype"), &tensor->dtype))
        return fault(head, name, "its dtype is none of F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL");
    if (!read_sizes(json_object_get(entry, "shape"), SLC_TENSOR_RANK_MAX, tensor->shape, &rank))
        return fault(head, name, "its shape is no list of at most 8 sizes");
    tensor->rank = (uint32_t)rank;
    if (!read_sizes(json_object_get(entry, "data_offsets"), 2, offsets, &pair) || pair != 2 || offsets[0] > offsets[1])
        return fault(head, name, "its data_offsets are no [begin, end]");
    if (json_object_size(entry) != 3) return fault(head, name, "has more than dtype, shape and data_offsets");
    if (!slc_tensor_measure(tensor->dtype, tensor->rank, tensor->shape, &tensor->elements, &bytes))
        return fault(head, name, "its shape overflows");
    if (bytes != offsets[1] - offsets[0])
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: tensor \"%s\": its shape and dtype take %" PRIu64 " bytes, its data_offsets %" PRIu64,
                         head->path, name, bytes, offsets[1] - offsets[0]);
    if (offsets[1] > head->data_bytes)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: tensor \"%s\": its data end at byte %" PRIu64 " of %" PRIu64 "; the file is cut short",
                         head->path, name, offsets[1], head->data_bytes);
    tensor->offset = offsets[0];
    out->end = offsets[1];
    return SLUICE_OK;
}

/* ---- All entries ---- */

static int compare_places(const void *a, const void *b)
{
    const claim *left = a, *right = b;
    if (left->tensor.offset != right->tensor.offset) return left->tensor.offset < right->tensor.offset ? -1 : 1;
    if (left->end != right->end) return left->end < right->end ? -1 : 1;
    return strcmp(left->tensor.name, right->tensor.name);
}

static sluice_status check_metadata(const header *head, const json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) return slc_error(SLUICE_ERR_FORMAT, "%s: __metadata__ is no {...}", head->path);
    json_object_foreach ((json_t *)metadata, key, value)
        if (!json_is_string(value))
            return slc_error(SLUICE_ERR_FORMAT, "%s: __metadata__ holds what is no text", head->path);
    return SLUICE_OK;
}

static sluice_status read_claims(header *head, json_t *root)
{
    const char *name;
    json_t *entry;
    json_object_foreach (root, name, entry) {
        sluice_status status = SLUICE_OK;
        if (!strcmp(name, "__metadata__"))
            status = check_metadata(head, entry);
        else if (!slc_tensor_name_valid(name, strlen(name)))
            status = slc_error(SLUICE_ERR_FORMAT,
                               "%s: the name of tensor %zu is empty, longer than %d bytes or has control characters",
                               head->path, head->count, NAME_BYTES_MAX);
        else
            status = read_claim(head, name, entry, &head->claims[head->count++]);
        if (status) return status;
    }
    return SLUICE_OK;
}

static sluice_status check_places(header *head)
{
    uint64_t end = 0;
    if (head->count) qsort(head->claims, head->count, sizeof *head->claims, compare_places);
    for (size_t i = 0; i < head->count; i++) {
        const claim *next = &head->claims[i];
        if (next->tensor.offset != end)
            return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\": begins at byte %" PRIu64 ", %s %" PRIu64,
                             head->path, next->tensor.name, next->tensor.offset,
                             next->tensor.offset > end ? "after a hole from" : "in what another holds up to", end);
        end = next->end;
    }
    if (end != head->data_bytes)
        return slc_error(SLUICE_ERR_FORMAT, "%s: %" PRIu64 " bytes after the last tensor belong to none", head->path,
                         head->data_bytes - end);
    return SLUICE_OK;
}

static sluice_status add_claims(header *head, json_t *root, slc_tensors *tensors, uint32_t file, uint64_t data_offset)
{
    head->claims = calloc(json_object_size(root) + 1, sizeof *head->claims);
    if (!head->claims) return slc_error(SLUICE_ERR_MEMORY, "%s: list of its tensors", head->path);
    sluice_status status = read_claims(head, root);
    if (!status) status = check_places(head);
    for (size_t i = 0; i < head->count && !status; i++) {
        slc_tensor *tensor = &head->claims[i].tensor;
        tensor->file = file;
        tensor->offset += data_offset;
        status = slc_tensors_add(tensors, tensor);
    }
    free(head->claims);
    return status;
}

/* ---- The file ---- */

static sluice_status parse(const slc_file *file, const char *text, size_t length, json_t **out)
{
    json_error_t error;
    *out = text[0] == '{' ? json_loadb(text, length, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (*out) return SLUICE_OK;
    if (text[0] != '{') return slc_error(SLUICE_ERR_FORMAT, "%s: its header does not begin with {", file->path);
    if (json_error_code(&error) == json_error_out_of_memory)
        return slc_error(SLUICE_ERR_MEMORY, "%s: its header", file->path);
    return slc_error(SLUICE_ERR_FORMAT, "%s: its header, byte %d: %s", file->path, error.position, error.text);
}

static sluice_status read_header(const slc_file *file, uint64_t *length, json_t **out)
{
    if (file->bytes < LENGTH_BYTES + 2)
        return slc_error(SLUICE_ERR_FORMAT, "%s: %" PRIu64 " bytes are too short for safetensors", file->path,
                         file->bytes);
    sluice_status status = slc_file_read(file, 0, LENGTH_BYTES, length);
    if (status) return status;
    if (*length < 2 || *length > HEADER_BYTES_MAX || *length > file->bytes - LENGTH_BYTES)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: says that its header has %" PRIu64 " bytes; it may have 2 to 100000000, and the file has "
                         "%" PRIu64 ": it is cut short or no safetensors",
                         file->path, *length, file->bytes);
    char *text = malloc(*length);
    if (!text) return slc_error(SLUICE_ERR_MEMORY, "%s: its header", file->path);
    status = slc_file_read(file, LENGTH_BYTES, *length, text);
    if (!status) status = parse(file, text, *length, out);
    free(text);
    return status;
}

sluice_status slc_safetensors_add(slc_tensors *tensors, const char *path)
{
    uint32_t file;
    uint64_t length = 0;
    json_t *root = NULL;
    sluice_status status = slc_tensors_add_file(tensors, path, &file);
    if (status) return status;
    status = read_header(&tensors->files[file], &length, &root);
    if (status) return status;
    header head = {.path = tensors->files[file].path, .data_bytes = tensors->files[file].bytes - LENGTH_BYTES - length};
    status = add_claims(&head, root, tensors, file, LENGTH_BYTES + length);
    json_decref(root);
    return status;
}
