/* PNG, decoded by libpng to 8 bits of grey or red, green and blue. picture_test.c covers this file. */
#include "lib/data/images/picture.h"

#include "lib/base/status.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const uint8_t *bytes;
    size_t count, at;
    slc_raster raster;
    uint8_t *samples;
    png_bytep *rows;
    sluice_status status; /* of taking memory; OK: libpng failed, for `why` */
    char why[128];
} decoding;

static void read_bytes(png_structp png, png_bytep out, size_t count)
{
    decoding *d = png_get_io_ptr(png);
    if (count > d->count - d->at) png_error(png, "it is cut short");
    memcpy(out, d->bytes + d->at, count);
    d->at += count;
}

static void failed(png_structp png, png_const_charp why)
{
    decoding *d = png_get_error_ptr(png);
    snprintf(d->why, sizeof d->why, "%s", why);
    png_longjmp(png, 1);
}

/* Ignores warnings, which are of unknown chunks and wrong profiles: the image can be read all the same. */
static void warned(png_structp png, png_const_charp why)
{
    (void)png, (void)why;
}

/* Asks for 8 bits of one or three channels, whatever the file has. */
static void choose_form(png_structp png, png_infop info, decoding *d)
{
    png_byte type = png_get_color_type(png, info);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) < 8) png_set_expand_gray_1_2_4_to_8(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    d->raster.width = png_get_image_width(png, info);
    d->raster.height = png_get_image_height(png, info);
    d->raster.channels = png_get_channels(png, info);
    d->raster.white = 255;
}

static void decode(png_structp png, png_infop info, const char *path, decoding *d)
{
    if (setjmp(png_jmpbuf(png))) return; /* `why` is set; all that was taken is in *d */
    png_set_read_fn(png, d, read_bytes);
    png_read_info(png, info);
    choose_form(png, info, d);
    d->status = slc_picture_room(path, &d->raster, &d->samples);
    if (d->status) return;
    size_t row = (size_t)d->raster.width * d->raster.channels;
    if (png_get_rowbytes(png, info) != row) png_error(png, "its rows are not of 8 bits a sample");
    d->rows = malloc(d->raster.height * sizeof *d->rows);
    if (!d->rows) {
        d->status = slc_error(SLUICE_ERR_MEMORY, "%s: its rows", path);
        return;
    }
    for (uint32_t y = 0; y < d->raster.height; y++) d->rows[y] = d->samples + y * row;
    png_read_image(png, d->rows);
    png_read_end(png, NULL);
}

sluice_status slc_png_decode(const char *path, const uint8_t *bytes, size_t count, slc_raster *out, uint8_t **samples)
{
    decoding d = {.bytes = bytes, .count = count};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, failed, warned);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return slc_error(SLUICE_ERR_MEMORY, "%s: decoding it", path);
    }
    decode(png, info, path, &d);
    png_destroy_read_struct(&png, &info, NULL);
    free(d.rows);
    if (!d.status && *d.why) d.status = slc_error(SLUICE_ERR_FORMAT, "%s: is a damaged PNG: %s", path, d.why);
    if (d.status) {
        free(d.samples);
        return d.status;
    }
    d.raster.samples = *samples = d.samples;
    *out = d.raster;
    return SLUICE_OK;
}
