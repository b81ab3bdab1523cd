/* Pictures that gnuplot has drawn. */
#ifndef SLC_BENCH_PICTURE_FILE_H
#define SLC_BENCH_PICTURE_FILE_H

#include <sluice/status.h>

/* Is the SVG or PNG at `path` (.svg, .png) there to its end? gnuplot ends well even where the disk is full. Errors: IO,
 * which name the path. */
sluice_status slc_picture_file_check(const char *path);

#endif
