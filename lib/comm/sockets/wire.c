/* Reads and writes on sockets, with a deadline. */
#include "lib/comm/sockets/wire.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

bool slc_wire_equal(const void *a, const void *b, size_t bytes)
{
    const volatile unsigned char *x = a, *y = b;
    unsigned char differing = 0;
    for (size_t i = 0; i < bytes; i++) differing |= x[i] ^ y[i];
    return !differing;
}

sluice_status slc_wire_wait(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = slc_clock_ns();
        if (now >= deadline_ns) return slc_error(SLUICE_ERR_TIMEOUT, "no answer in time");
        uint64_t left_ms = (deadline_ns - now) / 1000000u + 1;
        struct pollfd entry = {.fd = fd, .events = events};
        int ready = poll(&entry, 1, left_ms > 1000 ? 1000 : (int)left_ms);
        if (ready > 0) return SLUICE_OK;
        if (ready < 0 && errno != EINTR) return slc_error(SLUICE_ERR_SYSTEM, "poll: %s", strerror(errno));
    }
}

static sluice_status failed_transfer(int error)
{
    if (error == 0 || error == ECONNRESET || error == EPIPE)
        return slc_error(SLUICE_ERR_PEER, "the connection was closed");
    return slc_error(SLUICE_ERR_IO, "%s", strerror(error));
}

sluice_status slc_wire_write(int fd, const void *data, size_t bytes, uint64_t deadline_ns)
{
    const char *at = data;
    while (bytes) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += sent;
            bytes -= (size_t)sent;
            continue;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return failed_transfer(errno);
        sluice_status status = slc_wire_wait(fd, POLLOUT, deadline_ns);
        if (status) return status;
    }
    return SLUICE_OK;
}

sluice_status slc_wire_read(int fd, void *data, size_t bytes, uint64_t deadline_ns)
{
    char *at = data;
    while (bytes) {
        ssize_t got = recv(fd, at, bytes, MSG_DONTWAIT);
        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
            continue;
        }
        if (got == 0) return failed_transfer(0);
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return failed_transfer(errno);
        sluice_status status = slc_wire_wait(fd, POLLIN, deadline_ns);
        if (status) return status;
    }
    return SLUICE_OK;
}
