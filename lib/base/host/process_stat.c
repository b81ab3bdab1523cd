/* plugins/nccl/record/records_test.c covers this file. */
#include "lib/base/host/process_stat.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool slc_process_stat(int64_t pid, char *state, uint64_t *started)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[got > 0 ? got : 0] = 0;
    const char *at = strrchr(text, ')'); /* the last bracket ends the program's name, field 2 */
    if (!at || sscanf(at, ") %c", state) != 1) return false;
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    return at && sscanf(at, " %" SCNu64, started) == 1;
}
