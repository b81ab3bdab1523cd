/* Resolves names, and makes sockets that listen or connect. */
#include "lib/comm/sockets/address.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/comm/sockets/lookup.h"
#include "lib/comm/sockets/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* An attempt is short, because a lost SYN is better sent anew than waited for. But even at the deadline it has the time
 * to be refused, because people read what the last attempt says. */
static const uint64_t most_attempt_ns = 2000000000u, least_attempt_ns = 200000000u;

sluice_status slc_address_check(const char *host)
{
    const char *colon = strchr(host, ':'), *scheme = strstr(host, "://");
    struct in6_addr six;
    if (!*host) return slc_error(SLUICE_ERR_ARGUMENT, "MASTER_ADDR is empty: it names rank 0's host");
    if (scheme)
        return slc_error(SLUICE_ERR_ARGUMENT, "MASTER_ADDR %s: give the host alone, without %.*s and without a port",
                         host, (int)(scheme + 3 - host), host);
    if (*host == '[')
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "MASTER_ADDR %s: give the address without brackets, and the port in "
                         "MASTER_PORT",
                         host);
    if (colon && !strchr(colon + 1, ':') && inet_pton(AF_INET6, host, &six) != 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "MASTER_ADDR %s: set MASTER_ADDR=%.*s and MASTER_PORT=%s", host,
                         (int)(colon - host), host, colon + 1);
    return SLUICE_OK;
}

static void say(slc_attempt *attempt, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(attempt->why, sizeof attempt->why, format, args);
    va_end(args);
}

/* Names of a job's hosts may appear a little later, so a name that is not known is no error yet. */
static sluice_status resolve(const char *host, int port, uint64_t deadline_ns, slc_attempt *attempt,
                             struct addrinfo **out)
{
    const int error = slc_lookup(host, port, deadline_ns, out);
    if (!error) return SLUICE_OK;
    if (error == EAI_INPROGRESS) {
        say(attempt, "this host cannot resolve the name %s: no name server answers", host);
        return SLUICE_IN_PROGRESS;
    }
    if (error == EAI_AGAIN || error == EAI_NONAME || error == EAI_NODATA) {
        say(attempt, "this host cannot resolve the name %s: %s", host, gai_strerror(error));
        return SLUICE_IN_PROGRESS;
    }
    if (error == EAI_SYSTEM) return slc_error(SLUICE_ERR_SYSTEM, "MASTER_ADDR %s: %s", host, strerror(errno));
    return slc_error(SLUICE_ERR_ARGUMENT, "MASTER_ADDR %s: %s", host, gai_strerror(error));
}

/* True if `host` is written as a loopback address. A name that only resolves to one, as a Debian host's own name does
 * on that host, stands for the host as others see it. */
static bool is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (!strcasecmp(host, "localhost")) return true;
    if (inet_pton(AF_INET, host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
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

static int listen_on_loopback(const char *host, int port)
{
    slc_attempt attempt;
    struct addrinfo *list;
    const uint64_t deadline_ns = slc_clock_ns() + most_attempt_ns;
    if (resolve(host, port, deadline_ns, &attempt, &list) && resolve("127.0.0.1", port, deadline_ns, &attempt, &list))
        return -1;
    int fd = bind_to(list);
    freeaddrinfo(list);
    return fd;
}

sluice_status slc_address_listen(const char *host, int port, int *out)
{
    int fd;
    if (is_loopback(host))
        fd = listen_on_loopback(host, port);
    else {
        fd = bind_any(AF_INET6, port); /* it takes IPv4 too */
        if (fd < 0 && errno == EAFNOSUPPORT) fd = bind_any(AF_INET, port);
    }
    if (fd < 0 || listen(fd, SOMAXCONN)) {
        sluice_status status = slc_error(
            SLUICE_ERR_SYSTEM,
            "rank 0 cannot listen on %s:%d: %s; another process has the port, or is rank 0 too: give each process its "
            "own rank, or set another MASTER_PORT",
            host, port, strerror(errno));
        if (fd >= 0) close(fd);
        return status;
    }
    *out = fd;
    return SLUICE_OK;
}

static bool is_any(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static bool is_of_use(const struct ifaddrs *one)
{
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || one->ifa_flags & IFF_LOOPBACK) return false;
    if (one->ifa_addr->sa_family == AF_INET) return true;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)one->ifa_addr;
    return one->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

static void write_number(const struct sockaddr *address, socklen_t address_bytes, char *text, size_t bytes)
{
    if (getnameinfo(address, address_bytes, text, (socklen_t)bytes, NULL, 0, NI_NUMERICHOST))
        snprintf(text, bytes, "?");
}

static socklen_t length_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

void slc_address_describe_listener(int fd, char *text, size_t bytes)
{
    struct sockaddr_storage own = {0};
    socklen_t own_bytes = sizeof own;
    struct ifaddrs *list = NULL;
    char number[64];
    size_t used = 0;
    snprintf(text, bytes, "?");
    if (getsockname(fd, (struct sockaddr *)&own, &own_bytes)) return;
    if (!is_any(&own)) {
        write_number((const struct sockaddr *)&own, own_bytes, text, bytes);
        return;
    }
    snprintf(text, bytes, "every address of this host");
    if (getifaddrs(&list)) return;
    for (const struct ifaddrs *one = list; one && used + 1 < bytes; one = one->ifa_next) {
        if (!is_of_use(one)) continue;
        write_number(one->ifa_addr, length_of(one->ifa_addr), number, sizeof number);
        int more = snprintf(text + used, bytes - used, "%s%s (%s)", used ? ", " : "", number, one->ifa_name);
        used += more > 0 ? (size_t)more : 0;
    }
    freeifaddrs(list);
}

/* True if a socket is connected to itself, as can happen on loopback if it connects to a free port of the ephemeral
 * range. */
static bool met_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
    if (getsockname(fd, (struct sockaddr *)&here, &here_bytes)) return false;
    if (getpeername(fd, (struct sockaddr *)&there, &there_bytes)) return false;
    return here_bytes == there_bytes && !memcmp(&here, &there, here_bytes);
}

static void say_refusal(slc_attempt *attempt, const struct addrinfo *info, int error)
{
    char number[64];
    write_number(info->ai_addr, info->ai_addrlen, number, sizeof number);
    if (error == ECONNREFUSED)
        say(attempt, "nobody listens at %s: rank 0 has not started, or runs on another host, or a firewall refuses",
            number);
    else if (error == ETIMEDOUT)
        say(attempt, "%s lets nothing through: a firewall, or no host has this address", number);
    else
        say(attempt, "%s: %s", number, strerror(error));
}

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

int slc_address_try(const struct sockaddr *address, socklen_t address_bytes, uint64_t deadline_ns, int *out)
{
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const uint64_t now_ns = slc_clock_ns();
    int error = 0;
    socklen_t bytes = sizeof error;
    if (fd < 0) return -errno;
    if (connect(fd, address, address_bytes) && errno != EINPROGRESS)
        error = errno;
    else if (slc_wire_wait(fd, POLLOUT, within(deadline_ns, now_ns + least_attempt_ns, now_ns + most_attempt_ns)))
        error = ETIMEDOUT;
    else if (!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) && !error && met_itself(fd))
        error = ECONNREFUSED;
    if (error)
        close(fd);
    else
        *out = fd;
    return error;
}

static sluice_status connect_one(const struct addrinfo *info, uint64_t deadline_ns, slc_attempt *attempt, int *out)
{
    const int error = slc_address_try(info->ai_addr, info->ai_addrlen, deadline_ns, out);
    if (error < 0) return slc_error(SLUICE_ERR_SYSTEM, "socket: %s", strerror(-error));
    if (error) {
        say_refusal(attempt, info, error);
        return SLUICE_IN_PROGRESS;
    }
    char number[64];
    write_number(info->ai_addr, info->ai_addrlen, number, sizeof number);
    say(attempt, "%s takes the connection, but does not answer", number);
    return SLUICE_OK;
}

sluice_status slc_address_connect(const char *host, int port, uint64_t deadline_ns, slc_attempt *attempt, int *out)
{
    struct addrinfo *list;
    const uint64_t soon_ns = slc_clock_ns() + least_attempt_ns;
    sluice_status status = resolve(host, port, deadline_ns > soon_ns ? deadline_ns : soon_ns, attempt, &list);
    if (status) return status;
    status = SLUICE_IN_PROGRESS;
    for (const struct addrinfo *info = list; info && status == SLUICE_IN_PROGRESS; info = info->ai_next)
        status = connect_one(info, deadline_ns, attempt, out);
    freeaddrinfo(list);
    return status;
}

void slc_address_interface(int fd, char *name, size_t bytes)
{
    struct sockaddr_storage own = {0};
    socklen_t own_bytes = sizeof own;
    struct ifaddrs *list = NULL;
    char here[64], number[64];
    name[0] = '\0';
    if (getsockname(fd, (struct sockaddr *)&own, &own_bytes) || getifaddrs(&list)) return;
    write_number((const struct sockaddr *)&own, own_bytes, here, sizeof here);
    const char *bare = !strncmp(here, "::ffff:", 7) ? here + 7 : here; /* IPv4 that came to a socket of IPv6 */
    for (const struct ifaddrs *one = list; one; one = one->ifa_next) {
        if (!is_of_use(one)) continue;
        write_number(one->ifa_addr, length_of(one->ifa_addr), number, sizeof number);
        if (strcmp(number, bare)) continue;
        snprintf(name, bytes, "%.*s", (int)strcspn(one->ifa_name, ":"), one->ifa_name); /* without an alias's label */
        break;
    }
    freeifaddrs(list);
}
