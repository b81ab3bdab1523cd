/* The inner loops go over the codes, so that they are vectorised without changing any sum's order.
 * bench/train/data/data_test.c covers this file. */
#include "bench/train/data/images/codebook.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES_A_CODE = 16, ITERATIONS = 8, STREAM_FIRST = 0x636f6465 };

static void cut_patch(const slc_codebook *book, const float *pixels, uint32_t index, float *out)
{
    uint32_t across = book->side / book->patch;
    const float *corner = pixels + (size_t)(index / across) * book->patch * book->side + index % across * book->patch;
    for (uint32_t c = 0; c < book->channels; c++)
        for (uint32_t y = 0; y < book->patch; y++, out += book->patch)
            memcpy(out, corner + ((size_t)c * book->side + y) * book->side, book->patch * sizeof *out);
}

static uint32_t nearest(const slc_codebook *book, const float *patch, float *distances)
{
    memset(distances, 0, book->codes * sizeof *distances);
    for (uint32_t e = 0; e < book->elements; e++) {
        const float *centres = book->centres + (size_t)e * book->codes;
        for (uint32_t k = 0; k < book->codes; k++) distances[k] += (patch[e] - centres[k]) * (patch[e] - centres[k]);
    }
    uint32_t best = 0;
    for (uint32_t k = 1; k < book->codes; k++)
        if (distances[k] < distances[best]) best = k;
    return best;
}

uint32_t slc_codebook_code(const slc_codebook *book, const float *pixels, uint32_t index)
{
    cut_patch(book, pixels, index, book->scratch);
    return nearest(book, book->scratch, book->scratch + book->elements);
}

/* ---- Making ---- */

/* Takes patches of the images in the order of the range: one of each image before a second one of any. */
static sluice_status take_samples(const slc_codebook *book, const slc_images *images, const slc_image_shape *shape,
                                  slc_image_range range, uint32_t count, float *samples)
{
    uint32_t across = book->side / book->patch, patches = across * across;
    int32_t label;
    float *pixels = malloc((size_t)book->channels * book->side * book->side * sizeof *pixels);
    if (!pixels) return slc_error(SLUICE_ERR_MEMORY, "an image for the codebook");
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        status = slc_images_read(images, shape, range.first + i % range.count, pixels, &label);
        uint32_t patch = (uint32_t)slc_random_below(0, STREAM_FIRST, i, patches);
        if (!status) cut_patch(book, pixels, patch, samples + (size_t)i * book->elements);
    }
    free(pixels);
    return status;
}

static void set_centre(slc_codebook *book, uint32_t code, const float *patch)
{
    for (uint32_t e = 0; e < book->elements; e++) book->centres[(size_t)e * book->codes + code] = patch[e];
}

/* Every centre moves to the mean of the samples that are nearest to it; one that has none stays. */
static void move_centres(slc_codebook *book, const float *samples, uint32_t count, float *sums, uint32_t *members)
{
    memset(sums, 0, (size_t)book->codes * book->elements * sizeof *sums);
    memset(members, 0, book->codes * sizeof *members);
    for (uint32_t i = 0; i < count; i++) {
        const float *sample = samples + (size_t)i * book->elements;
        uint32_t code = nearest(book, sample, book->scratch + book->elements);
        float *sum = sums + (size_t)code * book->elements;
        for (uint32_t e = 0; e < book->elements; e++) sum[e] += sample[e];
        members[code]++;
    }
    for (uint32_t k = 0; k < book->codes; k++) {
        float *sum = sums + (size_t)k * book->elements;
        if (!members[k]) continue;
        for (uint32_t e = 0; e < book->elements; e++) sum[e] /= (float)members[k];
        set_centre(book, k, sum);
    }
}

sluice_status slc_codebook_make(const slc_images *images, const slc_image_shape *shape, slc_image_range range,
                                uint32_t patch, uint32_t codes, slc_codebook *out)
{
    slc_codebook book = {.channels = shape->channels, .side = shape->side, .patch = patch};
    book.codes = codes < SLC_CODES_MAX ? codes : SLC_CODES_MAX;
    book.elements = shape->channels * patch * patch;
    uint32_t count = SAMPLES_A_CODE * book.codes;
    size_t centres = (size_t)book.codes * book.elements;
    float *samples = malloc((size_t)count * book.elements * sizeof *samples), *sums = malloc(centres * sizeof *sums);
    uint32_t *members = malloc(book.codes * sizeof *members);
    book.centres = malloc(centres * sizeof *book.centres);
    book.scratch = malloc((book.elements + book.codes) * sizeof *book.scratch);
    sluice_status status = SLUICE_OK;
    if (!samples || !sums || !members || !book.centres || !book.scratch)
        status = slc_error(SLUICE_ERR_MEMORY, "codebook of %u patches", book.codes);
    if (!status) status = take_samples(&book, images, shape, range, count, samples);
    for (uint32_t k = 0; k < book.codes && !status; k++) set_centre(&book, k, samples + (size_t)k * book.elements);
    for (int i = 0; i < ITERATIONS && !status; i++) move_centres(&book, samples, count, sums, members);
    free(samples);
    free(sums);
    free(members);
    if (status)
        slc_codebook_free(&book);
    else
        *out = book;
    return status;
}

void slc_codebook_free(slc_codebook *book)
{
    free(book->centres);
    free(book->scratch);
    *book = (slc_codebook){0};
}

uint64_t slc_codebook_bytes(const slc_codebook *book)
{
    return ((uint64_t)book->codes * book->elements + book->elements + book->codes) * sizeof(float);
}
