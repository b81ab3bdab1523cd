/* Resolves names, and makes sockets that listen or connect. */
#include "lib/comm/sockets/address.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/comm/sockets/wire.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static sluice_status resolve(const char *host, int port, struct addrinfo **out)
{
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int error = getaddrinfo(host, service, &hints, out);
    if (error == EAI_AGAIN) return SLUICE_IN_PROGRESS; /* names of a job's hosts may appear a little later */
    if (error) return slc_error(SLUICE_ERR_ARGUMENT, "MASTER_ADDR %s: %s", host, gai_strerror(error));
    return SLUICE_OK;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static int bind_any(int family, int port)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = 0, on = 1;
    if (fd < 0) return -1;
    struct sockaddr_in six_or_four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    const struct sockaddr *address = family == AF_INET6 ? (const void *)&six : (const void *)&six_or_four;
    if (!bind(fd, address, family == AF_INET6 ? sizeof six : sizeof six_or_four)) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int bind_to(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!bind(fd, info->ai_addr, info->ai_addrlen)) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

sluice_status slc_address_listen(const char *host, int port, int *out)
{
    struct addrinfo *list;
    sluice_status status = resolve(host, port, &list);
    if (status == SLUICE_IN_PROGRESS)
        status = slc_error(SLUICE_ERR_ARGUMENT, "MASTER_ADDR %s: cannot be resolved", host);
    if (status) return status;
    int fd;
    if (is_loopback(list->ai_addr))
        fd = bind_to(list);
    else {
        fd = bind_any(AF_INET6, port); /* it takes IPv4 too */
        if (fd < 0 && errno == EAFNOSUPPORT) fd = bind_any(AF_INET, port);
    }
    freeaddrinfo(list);
    if (fd < 0 || listen(fd, SOMAXCONN)) {
        status = slc_error(SLUICE_ERR_SYSTEM,
                           "rank 0 cannot listen on %s:%d: %s; another process has the port, or is rank 0 too: give "
                           "each process its own rank, or set another MASTER_PORT",
                           host, port, strerror(errno));
        if (fd >= 0) close(fd);
        return status;
    }
    *out = fd;
    return SLUICE_OK;
}

/* On loopback, a socket that connects to a free port of the ephemeral range can meet itself. */
static bool met_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
    if (getsockname(fd, (struct sockaddr *)&here, &here_bytes)) return false;
    if (getpeername(fd, (struct sockaddr *)&there, &there_bytes)) return false;
    return here_bytes == there_bytes && !memcmp(&here, &there, here_bytes);
}

static sluice_status connect_one(const struct addrinfo *info, uint64_t deadline_ns, int *out)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    if (fd < 0) return slc_error(SLUICE_ERR_SYSTEM, "socket: %s", strerror(errno));
    if (connect(fd, info->ai_addr, info->ai_addrlen) && errno != EINPROGRESS) {
        close(fd);
        return SLUICE_IN_PROGRESS;
    }
    uint64_t attempt_ns = slc_clock_ns() + 2000000000u; /* a lost SYN is better sent anew than waited for */
    socklen_t bytes = sizeof error;
    sluice_status status = slc_wire_wait(fd, POLLOUT, attempt_ns < deadline_ns ? attempt_ns : deadline_ns);
    if (!status) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (status || error || met_itself(fd)) {
        close(fd);
        return SLUICE_IN_PROGRESS;
    }
    *out = fd;
    return SLUICE_OK;
}

sluice_status slc_address_connect(const char *host, int port, uint64_t deadline_ns, int *out)
{
    struct addrinfo *list;
    sluice_status status = resolve(host, port, &list);
    if (status) return status;
    status = SLUICE_IN_PROGRESS;
    for (const struct addrinfo *info = list; info && status == SLUICE_IN_PROGRESS; info = info->ai_next)
        status = connect_one(info, deadline_ns, out);
    freeaddrinfo(list);
    return status;
}
