/* JPEG, decoded by libjpeg-turbo to 8 bits of grey or red, green and blue. picture_test.c covers this file. */
#include "lib/data/images/picture.h"

#include "lib/base/status.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

typedef struct {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf back;
    slc_raster raster;
    uint8_t *samples, *inks; /* inks: one row of cyan, magenta, yellow and black */
    sluice_status status;    /* of taking memory; OK: libjpeg failed, for `why` */
    char why[JMSG_LENGTH_MAX];
} decoding;

static void failed(j_common_ptr jpeg)
{
    decoding *d = jpeg->client_data;
    jpeg->err->format_message(jpeg, d->why);
    longjmp(d->back, 1);
}

/* Fails the decoding if part of the image is missing, which libjpeg fills with grey and only warns of. Other warnings
 * are of bytes that do not matter. */
static void warned(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) failed(jpeg);
}

/* Converts a row of four inks. Adobe's programs write inks inverted; without an Adobe marker they are not. */
static void convert_inks(const decoding *d, uint8_t *row)
{
    unsigned turn = d->jpeg.saw_Adobe_marker ? 0 : 255;
    for (uint32_t x = 0; x < d->raster.width; x++)
        for (uint32_t c = 0; c < 3; c++)
            row[3 * x + c] = (uint8_t)(((d->inks[4 * x + c] ^ turn) * (d->inks[4 * x + 3] ^ turn) + 127) / 255);
}

static void read_rows(decoding *d)
{
    size_t bytes = (size_t)d->raster.width * d->raster.channels;
    while (d->jpeg.output_scanline < d->raster.height) {
        uint8_t *row = d->samples + d->jpeg.output_scanline * bytes, *target = d->inks ? d->inks : row;
        jpeg_read_scanlines(&d->jpeg, &target, 1);
        if (d->inks) convert_inks(d, row);
    }
    jpeg_finish_decompress(&d->jpeg);
}

/* Returns the number by which the image's sides are divided, by Pillow's rule: the largest of 8, 4, 2 and 1 for which
 * the smaller side, divided and rounded down, is at least `least`; 1 if `least` is 0. */
static unsigned divisor_of(const decoding *d, uint32_t least)
{
    const uint32_t side = d->jpeg.image_width < d->jpeg.image_height ? d->jpeg.image_width : d->jpeg.image_height;
    unsigned divisor = 8;
    while (divisor > 1 && (!least || side / least < divisor)) divisor /= 2;
    return divisor;
}

static void decode(const char *path, const uint8_t *bytes, size_t count, uint32_t least, decoding *d)
{
    if (setjmp(d->back)) return; /* `why` is set; all that was taken is in *d */
    jpeg_create_decompress(&d->jpeg);
    jpeg_mem_src(&d->jpeg, bytes, count);
    jpeg_read_header(&d->jpeg, TRUE);
    int components = d->jpeg.num_components;
    d->jpeg.out_color_space = components == 1 ? JCS_GRAYSCALE : components == 4 ? JCS_CMYK : JCS_RGB;
    d->jpeg.scale_num = 1;
    d->jpeg.scale_denom = divisor_of(d, least);
    jpeg_calc_output_dimensions(&d->jpeg);
    d->raster = (slc_raster){.height = d->jpeg.output_height,
                             .width = d->jpeg.output_width,
                             .channels = components == 1 ? 1 : 3,
                             .white = 255};
    d->status = slc_picture_room(path, &d->raster, &d->samples);
    if (d->status) return;
    d->inks = components == 4 ? malloc(4 * (size_t)d->raster.width) : NULL;
    if (components == 4 && !d->inks) {
        d->status = slc_error(SLUICE_ERR_MEMORY, "%s: a row", path);
        return;
    }
    jpeg_start_decompress(&d->jpeg);
    read_rows(d);
}

sluice_status slc_jpeg_decode(const char *path, const uint8_t *bytes, size_t count, uint32_t least, slc_raster *out,
                              uint8_t **samples)
{
    decoding *d = calloc(1, sizeof *d); /* not on the stack: its members must keep their values over longjmp */
    if (!d) return slc_error(SLUICE_ERR_MEMORY, "%s: decoding it", path);
    d->jpeg.err = jpeg_std_error(&d->errors);
    d->jpeg.client_data = d;
    d->errors.error_exit = failed;
    d->errors.emit_message = warned;
    decode(path, bytes, count, least, d);
    jpeg_destroy_decompress(&d->jpeg);
    free(d->inks);
    sluice_status status = d->status;
    if (!status && *d->why) status = slc_error(SLUICE_ERR_FORMAT, "%s: is a damaged JPEG: %s", path, d->why);
    if (status) {
        free(d->samples);
    } else {
        d->raster.samples = *samples = d->samples;
        *out = d->raster;
    }
    free(d);
    return status;
}
