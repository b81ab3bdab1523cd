/* Looks for the mark that a complete file of either kind has at its end. tests/command/plan/memory_picture_test.sh
 * covers this file. */
#include "bench/cli/output/picture_file.h"

#include "lib/base/file/file.h"
#include "lib/base/status.h"
#include "lib/base/text/ending.h"

#include <stdbool.h>
#include <string.h>

static const char svg_end[] = "</svg>", png_end[] = "IEND\xae\x42\x60\x82";

static bool holds(const char *bytes, size_t count, const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i + length <= count; i++)
        if (!memcmp(bytes + i, text, length)) return true;
    return false;
}

sluice_status slc_picture_file_check(const char *path)
{
    char end[16] = "";
    slc_file file;
    sluice_status status = slc_file_open(path, &file);
    if (status) return status;
    size_t count = file.bytes < sizeof end ? file.bytes : sizeof end;
    status = slc_file_read(&file, file.bytes - count, count, end);
    slc_file_close(&file);
    if (status) return status;
    if (holds(end, count, slc_ends_with(path, ".svg") ? svg_end : png_end)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_IO, "cannot write %s: gnuplot left it without its end; is the disk full?", path);
}
