/* Whole data sets in one file, compressed or not; and IDX, one of their two formats (image_csv.c has the other).
 * images_test.c covers this file. */
#include "lib/data/images/images_parts.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>
#ifdef SLUICE_HAVE_ZLIB
#include <zlib.h>
#endif

/* ---- The file ---- */

static bool is_gzip(const uint8_t *bytes, size_t count)
{
    return count > 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

#ifdef SLUICE_HAVE_ZLIB
/* Inflates into a buffer that grows: the length that the file states is modulo 2^32, and may be wrong. */
static sluice_status inflate_all(const char *path, const uint8_t *bytes, size_t count, uint8_t **out, size_t *out_count)
{
    z_stream stream = {.next_in = (uint8_t *)bytes, .avail_in = (uInt)count};
    size_t room = 0, used = 0;
    uint8_t *inflated = NULL;
    int code = inflateInit2(&stream, 16 + MAX_WBITS);
    while (code == Z_OK) {
        if (used == room) {
            size_t larger = room ? 2 * room : 1 << 16;
            uint8_t *grown = larger <= UINT32_MAX ? realloc(inflated, larger) : NULL;
            code = grown ? Z_OK : Z_MEM_ERROR;
            if (!grown) break;
            inflated = grown;
            room = larger;
        }
        stream.next_out = inflated + used;
        stream.avail_out = (uInt)(room - used);
        code = inflate(&stream, Z_NO_FLUSH);
        used = room - stream.avail_out;
        if (code == Z_BUF_ERROR && stream.avail_out == 0) code = Z_OK;
    }
    inflateEnd(&stream);
    if (code == Z_STREAM_END && used) {
        *out = inflated;
        *out_count = used;
        return SLUICE_OK;
    }
    free(inflated);
    if (code == Z_MEM_ERROR) return slc_error(SLUICE_ERR_MEMORY, "%s: is too large when inflated", path);
    return slc_error(SLUICE_ERR_FORMAT, "%s: its compressed data are damaged or cut short", path);
}
#else
static sluice_status inflate_all(const char *path, const uint8_t *bytes, size_t count, uint8_t **out, size_t *out_count)
{
    (void)bytes, (void)count, (void)out, (void)out_count;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: is compressed, and this build has no zlib; gunzip it", path);
}
#endif

sluice_status slc_table_read(const char *path, uint8_t **bytes, size_t *count)
{
    slc_file file;
    sluice_status status = slc_file_open(path, &file);
    if (status) return status;
    uint8_t *raw = file.bytes && file.bytes < UINT32_MAX ? malloc(file.bytes) : NULL;
    size_t raw_count = (size_t)file.bytes;
    if (!file.bytes)
        status = slc_error(SLUICE_ERR_FORMAT, "%s is empty", path);
    else if (!raw)
        status = slc_error(SLUICE_ERR_MEMORY, "%s: %zu bytes; below 4 GiB are read", path, raw_count);
    else
        status = slc_file_read(&file, 0, raw_count, raw);
    slc_file_close(&file);
    if (!status && is_gzip(raw, raw_count)) {
        status = inflate_all(path, raw, raw_count, bytes, count);
    } else if (!status) {
        *bytes = raw;
        *count = raw_count;
        return SLUICE_OK;
    }
    free(raw);
    return status;
}

/* ---- IDX ---- */

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* True for IDX, which begins with two zero bytes, an 8 for unsigned bytes and the number of sizes. */
static bool is_idx(const uint8_t *bytes, size_t count, uint8_t sizes)
{
    return count >= 4 + 4u * sizes && !bytes[0] && !bytes[1] && bytes[2] == 8 && bytes[3] == sizes;
}

bool slc_table_is_idx(const uint8_t *bytes, size_t count)
{
    return is_idx(bytes, count, 3);
}

sluice_status slc_images_from_idx(const char *path, const uint8_t *bytes, size_t count, const char *labels_path,
                                  const uint8_t *labels, size_t label_count, slc_images *images)
{
    if (!is_idx(bytes, count, 3)) return slc_error(SLUICE_ERR_FORMAT, "%s: is no IDX file of images of bytes", path);
    if (!is_idx(labels, label_count, 1))
        return slc_error(SLUICE_ERR_FORMAT, "%s: is no IDX file of labels of bytes", labels_path);
    uint64_t number = big_endian(bytes + 4), height = big_endian(bytes + 8), width = big_endian(bytes + 12), samples;
    if (!number || !height || !width || height > 65535 || width > 65535 ||
        __builtin_mul_overflow(number, height * width, &samples) || samples != count - 16)
        return slc_error(SLUICE_ERR_FORMAT, "%s: its header and its %zu bytes do not agree", path, count);
    if (big_endian(labels + 4) != number || label_count - 8 != number)
        return slc_error(SLUICE_ERR_FORMAT, "%s: has not a label for each of the %llu images of %s", labels_path,
                         (unsigned long long)number, path);
    images->samples = malloc(samples);
    images->labels = malloc(number * sizeof *images->labels);
    if (!images->samples || !images->labels) return slc_error(SLUICE_ERR_MEMORY, "%s: its images", path);
    images->count = number;
    images->bytes = samples + number * sizeof *images->labels;
    images->raster = (slc_raster){.height = (uint32_t)height, .width = (uint32_t)width, .channels = 1, .white = 255};
    memcpy(images->samples, bytes + 16, samples);
    for (uint64_t i = 0; i < number; i++) {
        images->labels[i] = labels[8 + i];
        if (labels[8 + i] >= images->classes) images->classes = labels[8 + i] + 1u;
    }
    return SLUICE_OK;
}
