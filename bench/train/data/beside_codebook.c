/* Numbers are written by their bits, so that no run reads others than were written.
 * tests/command/data/visual_tokens_test.sh covers this file. */
#include "bench/train/data/beside_codebook.h"

#include "lib/base/status.h"
#include "lib/weights/safetensors/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 8, CODES_MOST = 1 << 16, ELEMENTS_MOST = 1 << 20 };

sluice_status slc_beside_add_codebook(json_t *beside, uint32_t codes, uint32_t elements, const float *values)
{
    const size_t count = (size_t)codes * elements;
    char *digits = malloc(count * DIGITS + 1);
    json_t *book = NULL;
    for (size_t i = 0; digits && i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        snprintf(digits + i * DIGITS, DIGITS + 1, "%08" PRIx32, bits);
    }
    if (digits)
        book = json_pack("{s:I, s:I, s:s%}", "codes", (json_int_t)codes, "elements", (json_int_t)elements, "values",
                         digits, count * DIGITS);
    free(digits);
    return json_object_set_new(beside, "codebook", book) ? slc_error(SLUICE_ERR_MEMORY, "codebook of %u patches", codes)
                                                         : SLUICE_OK;
}

static bool take_value(const char *digits, float *out)
{
    uint32_t bits = 0;
    for (int i = 0; i < DIGITS; i++) {
        const char *all = "0123456789abcdef", *at = digits[i] ? strchr(all, digits[i]) : NULL;
        if (!at) return false;
        bits = bits << 4 | (uint32_t)(at - all);
    }
    memcpy(out, &bits, sizeof *out);
    return true;
}

static sluice_status write_values(const char *path, const uint64_t shape[2], const float *values)
{
    slc_safetensors_writer *writer = NULL;
    uint32_t index;
    sluice_status status = slc_safetensors_create(path, &writer);
    if (!status) status = slc_safetensors_declare(writer, "codebook", SLC_TENSOR_F32, 2, shape, &index);
    if (!status) status = slc_safetensors_write_float(writer, index, shape[0] * shape[1], values);
    if (!status) status = slc_safetensors_commit(writer);
    slc_safetensors_destroy(writer);
    return status;
}

sluice_status slc_beside_codebook_write(const json_t *book, const char *path)
{
    const json_int_t codes = json_integer_value(json_object_get(book, "codes")),
                     elements = json_integer_value(json_object_get(book, "elements"));
    const char *digits = json_string_value(json_object_get(book, "values"));
    bool whole = digits && codes > 0 && codes <= CODES_MOST && elements > 0 && elements <= ELEMENTS_MOST;
    const uint64_t shape[2] = {whole ? (uint64_t)codes : 0, whole ? (uint64_t)elements : 0},
                   count = shape[0] * shape[1];
    whole = whole && strlen(digits) == count * DIGITS;
    float *values = malloc((count + 1) * sizeof *values);
    if (!values) return slc_error(SLUICE_ERR_MEMORY, "codebook of visual tokens");
    for (uint64_t i = 0; whole && i < count; i++) whole = take_value(digits + i * DIGITS, &values[i]);
    sluice_status status = whole ? write_values(path, shape, values)
                                 : slc_error(SLUICE_ERR_FORMAT, "%s: the codebook of visual tokens is damaged", path);
    free(values);
    return status;
}
