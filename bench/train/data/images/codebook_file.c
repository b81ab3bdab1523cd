/* tests/command/data/visual_tokens_test.sh covers this file. */
#include "bench/train/data/images/codebook_file.h"

#include "bench/train/data/beside_codebook.h"
#include "lib/base/status.h"

#include <stdlib.h>

sluice_status slc_codebook_add(json_t *beside, const slc_codebook *book)
{
    const size_t count = (size_t)book->codes * book->elements;
    float *values = malloc((count + 1) * sizeof *values);
    if (!values) return slc_error(SLUICE_ERR_MEMORY, "codebook of %u patches", book->codes);
    for (size_t i = 0; i < count; i++) values[i] = book->centres[i % book->elements * book->codes + i / book->elements];
    sluice_status status = slc_beside_add_codebook(beside, book->codes, book->elements, values);
    free(values);
    return status;
}

sluice_status slc_codebook_read(const slc_tensors *tensors, const slc_tensor *tensor, const slc_image_shape *shape,
                                uint32_t patch, uint32_t codes, slc_codebook *out)
{
    const char *path = slc_tensors_path(tensors, tensor);
    char has[64];
    slc_codebook book = {
        .channels = shape->channels, .side = shape->side, .patch = patch, .elements = shape->channels * patch * patch};
    slc_tensor_shape_text(tensor->rank, tensor->shape, has, sizeof has);
    if (tensor->rank != 2 || tensor->shape[1] != book.elements || !tensor->shape[0] || tensor->shape[0] > codes)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: \"%s\" has shape %s; patches have %u values, and the model answers with %u visual tokens",
                         path, tensor->name, has, book.elements, codes);
    sluice_status status = slc_tensors_check_finite(tensors, tensor, NULL);
    if (status) return status;
    book.codes = (uint32_t)tensor->shape[0];
    book.centres = malloc((size_t)book.codes * book.elements * sizeof *book.centres);
    book.scratch = malloc((book.elements + book.codes) * sizeof *book.scratch);
    if (!book.centres || !book.scratch) status = slc_error(SLUICE_ERR_MEMORY, "codebook of %u patches", book.codes);
    for (uint32_t k = 0; !status && k < book.codes; k++) {
        status = slc_tensors_read_float(tensors, tensor, (uint64_t)k * book.elements, book.elements, book.scratch);
        for (uint32_t e = 0; !status && e < book.elements; e++)
            book.centres[(size_t)e * book.codes + k] = book.scratch[e];
    }
    if (status)
        slc_codebook_free(&book);
    else
        *out = book;
    return status;
}
