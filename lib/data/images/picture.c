/* Tells the kinds of image files apart and hands over to the decoder. */
#include "lib/data/images/picture.h"

#include "lib/base/status.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC_BYTES = 8 };

slc_picture_kind slc_picture_kind_of(const uint8_t *bytes, size_t count)
{
    if (count >= 8 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8)) return SLC_PICTURE_PNG;
    if (count >= 3 && !memcmp(bytes, "\xff\xd8\xff", 3)) return SLC_PICTURE_JPEG;
    if (count >= 3 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6') && (isspace(bytes[2]) || bytes[2] == '#'))
        return SLC_PICTURE_PNM;
    return SLC_PICTURE_NONE;
}

sluice_status slc_picture_look(const char *path, slc_picture_kind *kind, uint64_t *bytes)
{
    uint8_t magic[MAGIC_BYTES];
    slc_file file;
    sluice_status status = slc_file_open(path, &file);
    if (status) return status;
    size_t count = file.bytes < sizeof magic ? (size_t)file.bytes : sizeof magic;
    status = slc_file_read(&file, 0, count, magic);
    if (bytes) *bytes = file.bytes;
    slc_file_close(&file);
    if (status) return status;
    *kind = slc_picture_kind_of(magic, count);
    slc_raster raster;
    return *kind == SLC_PICTURE_PNM ? slc_pnm_read(path, &raster, NULL) : SLUICE_OK;
}

static sluice_status decode(const char *path, const uint8_t *bytes, size_t count, uint32_t least, slc_raster *out,
                            uint8_t **samples)
{
    switch (slc_picture_kind_of(bytes, count)) {
    case SLC_PICTURE_PNG: return slc_png_decode(path, bytes, count, out, samples);
    case SLC_PICTURE_JPEG: return slc_jpeg_decode(path, bytes, count, least, out, samples);
    case SLC_PICTURE_PNM: return slc_pnm_read(path, out, samples);
    case SLC_PICTURE_NONE: break;
    }
    return slc_error(SLUICE_ERR_FORMAT, "%s: is no PNG, JPEG, binary PGM or PPM", path);
}

sluice_status slc_picture_read(const char *path, uint32_t least, slc_raster *out, uint8_t **samples)
{
    slc_file file;
    sluice_status status = slc_file_open(path, &file);
    if (status) return status;
    uint8_t *bytes = malloc(file.bytes + !file.bytes);
    status = bytes ? slc_file_read(&file, 0, (size_t)file.bytes, bytes)
                   : slc_error(SLUICE_ERR_MEMORY, "%s: %llu bytes", path, (unsigned long long)file.bytes);
    if (!status) status = decode(path, bytes, (size_t)file.bytes, least, out, samples);
    free(bytes);
    slc_file_close(&file);
    return status;
}
