/* Passes on the output of a rank with its number in front. tests/launch/run_test.sh covers this file. */
#include "bench/launch/prefix.h"

#include "lib/base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

sluice_status slc_prefix_init(slc_prefix_stream *stream, int rank, int from, slc_output_queue *to)
{
    *stream = (slc_prefix_stream){.rank = rank, .from = -1, .to = to, .left = SIZE_MAX};
    stream->line = malloc(SLC_PREFIX_LINE_BYTES);
    if (!stream->line) return slc_error(SLUICE_ERR_MEMORY, "output of rank %d", rank);
    stream->from = from;
    return SLUICE_OK;
}

static void close_end(slc_prefix_stream *stream)
{
    if (stream->from >= 0) close(stream->from);
    stream->from = -1;
}

void slc_prefix_fini(slc_prefix_stream *stream)
{
    close_end(stream);
    free(stream->line);
    *stream = (slc_prefix_stream){.from = -1};
}

/* Returns whether there was room. */
static bool put_line(slc_prefix_stream *stream, const char *text, size_t length)
{
    char prefix[32];
    size_t used = (size_t)snprintf(prefix, sizeof prefix, "[%d] ", stream->rank);
    stream->blocked = slc_output_queue_room(stream->to) < used + length + 1;
    if (!stream->blocked) slc_output_queue_put_line(stream->to, prefix, text, length);
    return !stream->blocked;
}

static void pass_lines(slc_prefix_stream *stream)
{
    size_t start = 0;
    char *end;
    stream->blocked = false;
    while ((end = memchr(stream->line + start, '\n', stream->used - start))) {
        size_t length = (size_t)(end - stream->line) - start;
        if (!put_line(stream, stream->line + start, length)) break;
        start += length + 1;
    }
    stream->used -= start;
    memmove(stream->line, stream->line + start, stream->used);
    bool as_it_is = stream->used == SLC_PREFIX_LINE_BYTES || (stream->from < 0 && stream->used);
    if (!stream->blocked && as_it_is && put_line(stream, stream->line, stream->used)) stream->used = 0;
}

static void read_once(slc_prefix_stream *stream)
{
    size_t space = SLC_PREFIX_LINE_BYTES - stream->used;
    size_t count = space < stream->left ? space : stream->left;
    ssize_t got = read(stream->from, stream->line + stream->used, count);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got > 0) {
        stream->used += (size_t)got;
        if (stream->left != SIZE_MAX) stream->left -= (size_t)got;
    }
    if (got <= 0 || !stream->left) close_end(stream);
}

void slc_prefix_pass_on(slc_prefix_stream *stream)
{
    if (slc_prefix_is_at_end(stream)) return;
    pass_lines(stream);
    if (!slc_prefix_wants_input(stream)) return;
    read_once(stream);
    pass_lines(stream);
}

void slc_prefix_limit_to_what_is_there(slc_prefix_stream *stream)
{
    int count = 0;
    if (stream->from < 0) return;
    if (ioctl(stream->from, FIONREAD, &count) || count <= 0)
        close_end(stream);
    else
        stream->left = (size_t)count;
    pass_lines(stream);
}

bool slc_prefix_is_at_end(const slc_prefix_stream *stream)
{
    return stream->from < 0 && !stream->used;
}
