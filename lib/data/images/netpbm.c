/* Reads Netpbm's binary formats. images_test.c covers this file. */
#include "lib/data/images/raster.h"

#include "lib/base/status.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>

enum { HEADER_BYTES = 512, SIDE_MAX = 65535 };

/* Reads a number after white space and comments; returns false if there is none from 1 to `most`. */
static bool read_number(const uint8_t *bytes, size_t count, size_t *at, uint32_t most, uint32_t *out)
{
    uint32_t number = 0;
    size_t before = *at;
    while (*at < count && (isspace(bytes[*at]) || bytes[*at] == '#')) {
        if (bytes[*at] == '#')
            while (*at < count && bytes[*at] != '\n') ++*at;
        else
            ++*at;
    }
    size_t digits = *at;
    if (digits == before) return false;
    for (; *at < count && isdigit(bytes[*at]); ++*at) {
        number = number * 10 + (bytes[*at] - '0');
        if (number > most) return false;
    }
    *out = number;
    return *at > digits && number > 0;
}

sluice_status slc_pnm_header(const char *path, const uint8_t *bytes, size_t count, slc_raster *out, size_t *begin)
{
    size_t at = 2;
    if (count < 3 || bytes[0] != 'P' || (bytes[1] != '5' && bytes[1] != '6'))
        return slc_error(SLUICE_ERR_FORMAT, "%s: is no binary PGM or PPM (P5, P6)", path);
    *out = (slc_raster){.channels = bytes[1] == '5' ? 1 : 3};
    if (!read_number(bytes, count, &at, SIDE_MAX, &out->width) ||
        !read_number(bytes, count, &at, SIDE_MAX, &out->height) || !read_number(bytes, count, &at, 255, &out->white) ||
        at == count || !isspace(bytes[at]))
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: its header has no width and height up to %d and largest sample up to 255", path,
                         SIDE_MAX);
    *begin = at + 1;
    return SLUICE_OK;
}

sluice_status slc_pnm_read(const char *path, slc_raster *out, uint8_t **samples)
{
    uint8_t head[HEADER_BYTES];
    slc_file file;
    size_t begin = 0, bytes = 0;
    sluice_status status = slc_file_open(path, &file);
    if (status) return status;
    size_t count = file.bytes < sizeof head ? (size_t)file.bytes : sizeof head;
    status = slc_file_read(&file, 0, count, head);
    if (!status) status = slc_pnm_header(path, head, count, out, &begin);
    if (!status) bytes = (size_t)out->height * out->width * out->channels;
    if (!status && file.bytes != begin + bytes)
        status = slc_error(SLUICE_ERR_FORMAT, "%s: has %llu bytes; %u x %u samples of %u channels need %zu", path,
                           (unsigned long long)file.bytes, out->width, out->height, out->channels, begin + bytes);
    if (!status && samples) {
        *samples = malloc(bytes);
        status = *samples ? slc_file_read(&file, begin, bytes, *samples)
                          : slc_error(SLUICE_ERR_MEMORY, "%s: %zu bytes", path, bytes);
        out->samples = *samples;
        if (status) free(*samples);
    }
    slc_file_close(&file);
    return status;
}
