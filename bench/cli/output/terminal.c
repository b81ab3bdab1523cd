/* Asks the terminal each time, because its window may be made wider or narrower meanwhile. */
#include "bench/cli/output/terminal.h"

#include <string.h>
#include <sys/ioctl.h>

unsigned slc_terminal_columns(FILE *file)
{
    struct winsize size;
    const int fd = fileno(file);
    return fd >= 0 && !ioctl(fd, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

/* The bytes of a text that take at most `columns`: the bytes of a character beyond its first take none. */
static size_t bytes_within(const char *text, unsigned columns)
{
    const char *at = text;
    for (unsigned taken = 0; *at; at++) {
        taken += ((unsigned char)*at & 0xc0) != 0x80;
        if (taken > columns) break;
    }
    return (size_t)(at - text);
}

void slc_terminal_rewrite(FILE *file, const char *line)
{
    const unsigned columns = slc_terminal_columns(file);
    const size_t bytes = columns ? bytes_within(line, columns) : strlen(line);
    fprintf(file, "\r%.*s\x1b[K", (int)bytes, line);
    fflush(file);
}
