/* The sockets of the star, with buffers: a send always fits, and its bytes leave when the network takes them.
 * control_test.c covers this file. */
#include "lib/comm/control/socket.h"

#include "lib/comm/control/stage_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_BYTES = 65536 }; /* capacity of a new buffer */

bool slc_bytes_reserve(slc_bytes *bytes, size_t capacity)
{
    if (capacity <= bytes->capacity) return true;
    size_t grown = bytes->capacity ? bytes->capacity : FIRST_BYTES;
    while (grown < capacity) grown *= 2;
    char *data = realloc(bytes->data, grown);
    if (!data) return false;
    bytes->data = data;
    bytes->capacity = grown;
    return true;
}

bool slc_bytes_add(slc_bytes *bytes, const void *data, size_t count)
{
    if (!slc_bytes_reserve(bytes, bytes->used + count)) return false;
    if (data && count) memcpy(bytes->data + bytes->used, data, count);
    bytes->used += count;
    return true;
}

void slc_socket_close(slc_socket *link)
{
    int fd = link->fd;
    link->fd = -1; /* before the number can mean something else to a process that is forked now */
    if (fd >= 0) close(fd);
}

/* True if the connection broke because no answer came: TCP then gives the network's reason for the last loss, if there
 * was one. */
static bool is_silence(int error)
{
    switch (error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN: return true;
    default: return false;
    }
}

void slc_socket_lose(slc_control *control, slc_socket *link, int error)
{
    slc_socket_close(link);
    if (link->left || control->leaving) return;
    if (is_silence(error))
        slc_failure_set(control->failure, SLUICE_ERR_PEER, SLC_TELL_FACT, "rank %d%s is gone: its host does not answer",
                        link->rank, slc_stage_of(control, link->rank).text);
    else
        slc_failure_set(control->failure, SLUICE_ERR_PEER, SLC_TELL_FACT, "rank %d%s died: its connection was closed",
                        link->rank, slc_stage_of(control, link->rank).text);
}

void slc_socket_flush(slc_control *control, slc_socket *link)
{
    while (link->fd >= 0 && link->out_at < link->out.used) {
        ssize_t sent =
            send(link->fd, link->out.data + link->out_at, link->out.used - link->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            link->out_at += (size_t)sent;
        else if (errno == EAGAIN)
            return;
        else if (errno == EPIPE || errno == ECONNRESET)
            return; /* what it said last may still be unread: reading finds out */
        else if (errno != EINTR)
            slc_socket_lose(control, link, errno);
    }
    link->out.used = link->out_at = 0;
}

void slc_socket_send(slc_control *control, slc_socket *link, slc_frame frame, const void *data)
{
    if (link->fd < 0) return;
    if (!slc_bytes_add(&link->out, &frame, sizeof frame) || !slc_bytes_add(&link->out, data, frame.bytes)) {
        slc_failure_set(control->failure, SLUICE_ERR_MEMORY, SLC_TELL_NOBODY, "no memory for a control message");
        slc_socket_close(link);
        return;
    }
    slc_socket_flush(control, link);
}
