/* One image file as rows of samples, recognised by its content: PNG (by libpng), JPEG (by libjpeg-turbo), binary PGM or
 * PPM. Samples are those that the file states: gamma, colour profiles and the orientation that a camera notes are not
 * applied, transparency is dropped, 16 bits become 8. Private to lib/data/images. Any thread. */
#pragma once

#include "lib/data/images/raster.h"

typedef enum { SLC_PICTURE_NONE, SLC_PICTURE_PNM, SLC_PICTURE_PNG, SLC_PICTURE_JPEG } slc_picture_kind;

/* Says what kind of image begins with these bytes; NONE: none that is read. */
slc_picture_kind slc_picture_kind_of(const uint8_t *bytes, size_t count);

/* Looks at the beginning of a file, and of a PGM or PPM at its size too. *bytes, if not NULL, is the file's size.
 * Errors: PATH, IO, MEMORY; FORMAT (a damaged PGM or PPM). A file that is no image is no error: *kind is NONE. */
sluice_status slc_picture_look(const char *path, slc_picture_kind *kind, uint64_t *bytes);

/* Reads a file whole. The caller frees *samples. A JPEG is decoded at the smallest of 1, 1/2, 1/4 and 1/8 of its size
 * at which both sides have `least` pixels or more, by its transform itself; 0: at its size. Errors: PATH, IO, MEMORY,
 * FORMAT (damaged, cut short, larger than 65535 a side or than 2^28 pixels, or no image). */
sluice_status slc_picture_read(const char *path, uint32_t least, slc_raster *out, uint8_t **samples);

/* The decoders, for bytes in memory; `path` is for messages. As slc_picture_read. */
sluice_status slc_png_decode(const char *path, const uint8_t *bytes, size_t count, slc_raster *out, uint8_t **samples);
sluice_status slc_jpeg_decode(const char *path, const uint8_t *bytes, size_t count, uint32_t least, slc_raster *out,
                              uint8_t **samples);

/* Takes memory for the samples of a raster whose sizes are set. Errors: FORMAT (too large), MEMORY. */
sluice_status slc_picture_room(const char *path, const slc_raster *raster, uint8_t **samples);
