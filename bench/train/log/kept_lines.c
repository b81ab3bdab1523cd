/* run_log_test.c and tests/command/train/observe_test.sh cover this file. */
#include "bench/train/log/kept_lines.h"

#include "bench/train/log/step_line.h"
#include "lib/base/file/path_error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t count(const char *text, size_t bytes, const char *head, uint64_t last)
{
    const size_t begun = strlen(head);
    if (bytes < begun || memcmp(text, head, begun)) return 0;
    return begun + slc_training_lines_until(text + begun, bytes - begun, last);
}

sluice_status slc_training_kept_lines(const char *path, const char *head, uint64_t last, uint64_t *kept)
{
    struct stat info;
    *kept = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return SLUICE_OK;
    if (fd < 0 || fstat(fd, &info)) {
        const int why = errno;
        if (fd >= 0) close(fd);
        return slc_path_error("cannot read", path, why);
    }
    void *text = info.st_size ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    const int why = text == MAP_FAILED ? errno : 0;
    close(fd);
    if (why) return slc_path_error("cannot read", path, why);
    if (text) {
        *kept = count(text, (size_t)info.st_size, head ? head : "", last);
        munmap(text, (size_t)info.st_size);
    }
    return SLUICE_OK;
}
