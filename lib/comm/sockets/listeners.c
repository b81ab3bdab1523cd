/* The kernel lists the descriptors of a process in /proc/self/fd. */
#include "lib/comm/sockets/listeners.h"

#include "lib/base/status.h"
#include "lib/comm/sockets/address.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_set(int fd, int option, int value)
{
    int got = 0;
    socklen_t bytes = sizeof got;
    return !getsockopt(fd, SOL_SOCKET, option, &got, &bytes) && got == value;
}

static bool is_wildcard(const slc_listener *one)
{
    if (one->any.sa_family == AF_INET) return one->four.sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&one->six.sin6_addr);
}

/* Finds the address on which `fd` listens. False: it is no TCP listener, or listens on every address. */
static bool read_listener(int fd, slc_listener *out)
{
    socklen_t bytes = sizeof *out;
    memset(out, 0, sizeof *out);
    if (!is_set(fd, SO_ACCEPTCONN, 1) || !is_set(fd, SO_PROTOCOL, IPPROTO_TCP)) return false;
    return !getsockname(fd, &out->any, &bytes) && bytes <= sizeof *out && !is_wildcard(out);
}

static bool is_among(const slc_listener *list, size_t count, const slc_listener *one)
{
    for (size_t i = 0; i < count; i++)
        if (!memcmp(&list[i], one, sizeof *one)) return true;
    return false;
}

size_t slc_listeners_find(const slc_listener *known, size_t known_count, slc_listener *list)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return 0;
    for (const struct dirent *entry; count < SLC_LISTENERS_MOST && (entry = readdir(folder));) {
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        if (end == entry->d_name || *end || !read_listener((int)fd, &list[count])) continue;
        count += !is_among(known, known_count, &list[count]) && !is_among(list, count, &list[count]);
    }
    closedir(folder);
    return count;
}

static socklen_t length_of(const slc_listener *one)
{
    return one->any.sa_family == AF_INET ? sizeof one->four : sizeof one->six;
}

static sluice_status say_failure(const slc_listener *one, int error)
{
    char number[INET6_ADDRSTRLEN] = "?";
    const bool four = one->any.sa_family == AF_INET;
    const int port = ntohs(four ? one->four.sin_port : one->six.sin6_port);
    inet_ntop(one->any.sa_family, four ? (const void *)&one->four.sin_addr : (const void *)&one->six.sin6_addr, number,
              sizeof number);
    if (error == ETIMEDOUT)
        return slc_error(SLUICE_ERR_PEER, "port %d of %s lets nothing through: a firewall?", port, number);
    if (error == ECONNREFUSED)
        return slc_error(SLUICE_ERR_PEER, "port %d of %s refuses the connection: a firewall?", port, number);
    return slc_error(SLUICE_ERR_PEER, "port %d of %s: %s: a firewall, or no network that leads there?", port, number,
                     strerror(error));
}

sluice_status slc_listeners_probe(const slc_listener *list, size_t count, uint64_t deadline_ns)
{
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; i < count; i++) {
        int fd = -1;
        const int error = slc_address_try(&list[i].any, length_of(&list[i]), deadline_ns, &fd);
        if (fd >= 0) close(fd);
        if (error <= 0) return SLUICE_OK; /* if there is no socket to be had, whoever connects next says so */
        status = say_failure(&list[i], error);
    }
    return status;
}
