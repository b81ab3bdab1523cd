/* Output of a rank with its number in front. */
#include "bench/launch/prefix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void slc_prefix_init(slc_prefix_stream *stream, int rank, int from, int to)
{
    *stream = (slc_prefix_stream){.rank = rank, .from = from, .to = to};
}

void slc_prefix_fini(slc_prefix_stream *stream)
{
    if (stream->from >= 0) close(stream->from);
    free(stream->line);
    *stream = (slc_prefix_stream){.from = -1, .to = -1};
}

static void write_all(slc_prefix_stream *stream, const char *bytes, size_t count)
{
    while (count) {
        ssize_t written = write(stream->to, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            stream->lost = errno;
            return;
        }
        bytes += written;
        count -= (size_t)written;
    }
}

/* In one write where the system takes it, so that lines of both streams do not mix. */
static void write_line(slc_prefix_stream *stream, const char *text, size_t length)
{
    char line[SLC_PREFIX_LINE_BYTES + 32];
    size_t used = (size_t)snprintf(line, sizeof line, "[%d] ", stream->rank);
    memcpy(line + used, text, length);
    used += length;
    line[used++] = '\n';
    write_all(stream, line, used);
}

static void pass_lines(slc_prefix_stream *stream)
{
    size_t start = 0;
    char *end;
    while ((end = memchr(stream->line + start, '\n', stream->used - start))) {
        size_t length = (size_t)(end - stream->line) - start;
        write_line(stream, stream->line + start, length);
        start += length + 1;
    }
    stream->used -= start;
    memmove(stream->line, stream->line + start, stream->used);
    if (stream->used == SLC_PREFIX_LINE_BYTES) {
        write_line(stream, stream->line, stream->used);
        stream->used = 0;
    }
}

void slc_prefix_pass_on(slc_prefix_stream *stream)
{
    if (stream->from < 0) return;
    if (!stream->line) stream->line = malloc(SLC_PREFIX_LINE_BYTES);
    ssize_t got =
        stream->line ? read(stream->from, stream->line + stream->used, SLC_PREFIX_LINE_BYTES - stream->used) : 0;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got > 0) {
        stream->used += (size_t)got;
        pass_lines(stream);
        return;
    }
    if (stream->used) write_line(stream, stream->line, stream->used);
    stream->used = 0;
    close(stream->from);
    stream->from = -1;
}
