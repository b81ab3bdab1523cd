/* The kernel lists the descriptors that an epoll set watches in /proc/self/fdinfo, one a line.
 * lib/comm/control/watch_test.c covers this file. */
#include "lib/comm/sockets/watched.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 256, DEEPEST = 4 };

typedef struct {
    int fd;
    size_t begin, end;
    char bytes[1024];
} reader;

/* Reads a line; a longer one is cut. False: there is none left. */
static bool read_line(reader *in, char *line)
{
    size_t used = 0;
    for (;;) {
        if (in->begin == in->end) {
            ssize_t got;
            do got = read(in->fd, in->bytes, sizeof in->bytes);
            while (got < 0 && errno == EINTR);
            if (got <= 0) return false;
            in->begin = 0;
            in->end = (size_t)got;
        }
        char c = in->bytes[in->begin++];
        if (c == '\n') break;
        if (used + 1 < LINE_BYTES) line[used++] = c;
    }
    line[used] = '\0';
    return true;
}

/* Returns the descriptor in "tfd: 5 events: 19 data: ... pos:0 ino:61af sdev:7", or -1. A number that has come to mean
 * another file does not count. */
static int watched_in(const char *line)
{
    int fd;
    unsigned long long inode;
    struct stat file;
    const char *at = strstr(line, "ino:");
    if (sscanf(line, "tfd: %d", &fd) != 1 || !at || sscanf(at, "ino:%llx", &inode) != 1) return -1;
    return !fstat(fd, &file) && file.st_ino == inode ? fd : -1;
}

static void visit_from(int fd, int depth, void (*visit)(void *context, int fd), void *context)
{
    char path[40], line[LINE_BYTES];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    reader in = {.fd = depth ? open(path, O_RDONLY | O_CLOEXEC) : -1};
    while (in.fd >= 0 && read_line(&in, line)) {
        int watched = watched_in(line);
        if (watched >= 0) visit_from(watched, depth - 1, visit, context);
    }
    if (in.fd >= 0) close(in.fd);
    visit(context, fd);
}

void slc_watched_visit(int fd, void (*visit)(void *context, int fd), void *context)
{
    visit_from(fd, DEEPEST, visit, context);
}
