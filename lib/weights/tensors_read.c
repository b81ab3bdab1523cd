/* Reads elements a piece at a time: the bytes are read, reordered if the file holds the transpose, and converted.
 * lib/weights/safetensors/safetensors_test.c covers this file. */
#include "lib/weights/tensors.h"

#include "lib/base/status.h"
#include "lib/weights/tensors_parts.h"

#include <math.h>
#include <stdbool.h>
#include <sluice/dtype.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the formats are little endian, and so must we be");

/* CHECKED_ELEMENTS are checked at a time: few enough to stay in the second-level cache until they have been checked,
 * and enough for the cost of the system call to be small beside reading them. */
enum { PIECE_ELEMENTS = 2048, CHECKED_ELEMENTS = 1 << 14, PANEL_BYTES = 1 << 20 };
_Static_assert(CHECKED_ELEMENTS % SLC_FINGERPRINT_BLOCK == 0, "a fingerprint goes over whole blocks");

static sluice_status check_range(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first, uint64_t count)
{
    if (first <= tensor->elements && count <= tensor->elements - first) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "%s: tensor \"%s\": elements %llu to %llu of %llu are asked for",
                     slc_tensors_path(tensors, tensor), tensor->name, (unsigned long long)first,
                     (unsigned long long)(first + count), (unsigned long long)tensor->elements);
}

/* ---- One piece: elements with the file's dtype, in the tensor's order ---- */

static sluice_status read_straight(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first, size_t count,
                                   void *out)
{
    size_t size = slc_tensor_dtype_bytes(tensor->dtype);
    return slc_file_read(&tensors->files[tensor->file], tensor->offset + first * size, count * size, out);
}

/* ---- Conversion ---- */

static float float_from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Converts to elements that lie `stride` apart in the result. */
static void floats_from(slc_tensor_dtype dtype, size_t count, const void *piece, float *out, uint64_t stride)
{
    const double *f64 = piece;
    const float *f32 = piece;
    const uint16_t *u16 = piece;
    switch (dtype) {
    case SLC_TENSOR_F64:
        for (size_t i = 0; i < count; i++) out[i * stride] = (float)f64[i];
        break;
    case SLC_TENSOR_F32:
        for (size_t i = 0; i < count; i++) out[i * stride] = f32[i];
        break;
    case SLC_TENSOR_F16:
        for (size_t i = 0; i < count; i++) out[i * stride] = float_from_half(u16[i]);
        break;
    default:
        for (size_t i = 0; i < count; i++) out[i * stride] = sluice_bf16_to_float(u16[i]);
    }
}

static int64_t whole_from(slc_tensor_dtype dtype, const void *piece, size_t i)
{
    switch (dtype) {
    case SLC_TENSOR_I64: return ((const int64_t *)piece)[i];
    case SLC_TENSOR_I32: return ((const int32_t *)piece)[i];
    case SLC_TENSOR_I16: return ((const int16_t *)piece)[i];
    case SLC_TENSOR_I8: return ((const int8_t *)piece)[i];
    default: return ((const uint8_t *)piece)[i];
    }
}

/* ---- Reals ---- */

/* Row i of the tensor is column i of the file. Reads rows [row, row + rows) of columns [column, column + columns) to
 * `out`, whose rows are `stride` apart. If all rows are wanted, runs of several columns are contiguous in the file, and
 * the panel holds as many as fit; else it holds one run. */
static sluice_status read_block(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t row, uint64_t rows,
                                uint64_t column, uint64_t columns, void *panel, float *out, uint64_t stride)
{
    size_t size = slc_tensor_dtype_bytes(tensor->dtype);
    uint64_t height = tensor->shape[0], panel_elements = PANEL_BYTES / size;
    uint64_t together = rows == height && rows <= panel_elements ? panel_elements / rows : 1;
    for (uint64_t c = 0; c < columns; c += together) {
        uint64_t taken = columns - c < together ? columns - c : together;
        for (uint64_t r = 0; r < rows; r += panel_elements) { /* repeats only for a column longer than the panel */
            uint64_t run = rows - r < panel_elements ? rows - r : panel_elements;
            sluice_status status =
                read_straight(tensors, tensor, (column + c) * height + row + r, (size_t)(taken * run), panel);
            if (status) return status;
            for (uint64_t k = 0; k < taken; k++)
                floats_from(tensor->dtype, (size_t)run, (char *)panel + k * run * size, out + r * stride + c + k,
                            stride);
        }
    }
    return SLUICE_OK;
}

/* Reads a range of a matrix that the file holds transposed, block by block: the end of one row, whole rows, and the
 * beginning of another row. */
static sluice_status read_transposed(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first,
                                     uint64_t count, float *out)
{
    uint64_t width = tensor->shape[1];
    void *panel = malloc(PANEL_BYTES);
    if (!panel) return slc_error(SLUICE_ERR_MEMORY, "transposing tensor \"%s\"", tensor->name);
    sluice_status status = SLUICE_OK;
    while (count && !status) {
        uint64_t row = first / width, column = first % width, rows = 1, columns = width - column;
        if (columns > count) columns = count;
        if (columns == width) rows = count / width;
        status = read_block(tensors, tensor, row, rows, column, columns, panel, out, width);
        first += rows * columns;
        out += rows * columns;
        count -= rows * columns;
    }
    free(panel);
    return status;
}

sluice_status slc_tensors_read_float(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first,
                                     uint64_t count, float *out)
{
    sluice_status status = check_range(tensors, tensor, first, count);
    if (!status && !slc_tensor_dtype_is_real(tensor->dtype))
        status = slc_error(SLUICE_ERR_ARGUMENT, "%s: tensor \"%s\" is of dtype %s; F32, BF16, F16 or F64 are needed",
                           slc_tensors_path(tensors, tensor), tensor->name, slc_tensor_dtype_name(tensor->dtype));
    if (status) return status;
    if (tensor->transposed) return read_transposed(tensors, tensor, first, count, out);
    if (tensor->dtype == SLC_TENSOR_F32) return read_straight(tensors, tensor, first, count, out);
    double piece[PIECE_ELEMENTS];
    while (count && !status) {
        size_t take = count < PIECE_ELEMENTS ? (size_t)count : PIECE_ELEMENTS;
        status = read_straight(tensors, tensor, first, take, piece);
        if (!status) floats_from(tensor->dtype, take, piece, out, 1);
        first += take;
        out += take;
        count -= take;
    }
    return status;
}

sluice_status slc_tensors_check_finite(const slc_tensors *tensors, const slc_tensor *tensor,
                                       slc_fingerprint *fingerprint)
{
    float piece[CHECKED_ELEMENTS];
    slc_tensor plain = *tensor; /* any order will do, and the file's own is cheaper */
    plain.transposed = false;
    for (uint64_t first = 0; first < tensor->elements; first += CHECKED_ELEMENTS) {
        uint64_t left = tensor->elements - first, take = left < CHECKED_ELEMENTS ? left : CHECKED_ELEMENTS;
        sluice_status status = slc_tensors_read_float(tensors, &plain, first, take, piece);
        if (status) return status;
        if (slc_fingerprint_add(fingerprint, piece, take)) continue;
        for (uint64_t i = 0; i < take; i++) {
            if (isfinite(piece[i])) continue;
            uint64_t at = first + i;
            if (tensor->transposed) at = at % tensor->shape[0] * tensor->shape[1] + at / tensor->shape[0];
            return slc_error(SLUICE_ERR_NON_FINITE, "%s: tensor \"%s\": element %llu of %llu is %s",
                             slc_tensors_path(tensors, tensor), tensor->name, (unsigned long long)at,
                             (unsigned long long)tensor->elements, isnan(piece[i]) ? "NaN" : "infinite in fp32");
        }
    }
    return SLUICE_OK;
}

/* ---- Whole numbers ---- */

static sluice_status check_whole(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first, size_t count,
                                 const void *piece, int64_t least, int64_t most)
{
    if (tensor->dtype == SLC_TENSOR_BOOL) most = 1;
    for (size_t i = 0; i < count; i++) {
        int64_t value = whole_from(tensor->dtype, piece, i);
        if (value < least || value > most)
            return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\": element %llu is %lld; it must be from %lld to %lld",
                             slc_tensors_path(tensors, tensor), tensor->name, (unsigned long long)(first + i),
                             (long long)value, (long long)least, (long long)most);
    }
    return SLUICE_OK;
}

/* Reads into `ints` or `bytes`, whichever is not NULL. */
static sluice_status read_whole(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first, uint64_t count,
                                int32_t *ints, uint8_t *bytes)
{
    int64_t piece[PIECE_ELEMENTS];
    sluice_status status = check_range(tensors, tensor, first, count);
    if (!status && slc_tensor_dtype_is_real(tensor->dtype))
        status = slc_error(SLUICE_ERR_ARGUMENT, "%s: tensor \"%s\" is of dtype %s; whole numbers or BOOL are needed",
                           slc_tensors_path(tensors, tensor), tensor->name, slc_tensor_dtype_name(tensor->dtype));
    for (uint64_t done = 0; done < count && !status;) {
        size_t take = count - done < PIECE_ELEMENTS ? (size_t)(count - done) : PIECE_ELEMENTS;
        status = read_straight(tensors, tensor, first + done, take, piece);
        if (!status)
            status = check_whole(tensors, tensor, first + done, take, piece, ints ? INT32_MIN : 0,
                                 ints ? INT32_MAX : UINT8_MAX);
        if (status) break;
        for (size_t i = 0; i < take; i++, done++) {
            if (ints)
                ints[done] = (int32_t)whole_from(tensor->dtype, piece, i);
            else
                bytes[done] = (uint8_t)whole_from(tensor->dtype, piece, i);
        }
    }
    return status;
}

sluice_status slc_tensors_read_int32(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first,
                                     uint64_t count, int32_t *out)
{
    return read_whole(tensors, tensor, first, count, out, NULL);
}

sluice_status slc_tensors_read_bytes(const slc_tensors *tensors, const slc_tensor *tensor, uint64_t first,
                                     uint64_t count, uint8_t *out)
{
    return read_whole(tensors, tensor, first, count, NULL, out);
}
