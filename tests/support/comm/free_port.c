#include "tests/support/comm/free_port.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int keep_port(int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "sluice-test-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        !bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)))
        return fd;
    close(fd);
    return -1;
}

/* True if no process, test or not, listens on the port or is connected from it, on any address. */
static int port_is_idle(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int idle = fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof address);
    if (fd >= 0) close(fd);
    return idle;
}

int free_port(void)
{
    enum { FIRST = 16384, PORTS = 16384, KEPT = 8 };
    static int kept[KEPT];
    static unsigned tried, given;
    for (int attempt = 0; attempt < PORTS; attempt++) {
        int port = FIRST + (int)(((unsigned)getpid() * 61 + tried++) % PORTS);
        int fd = keep_port(port);
        if (fd < 0) continue;
        if (!port_is_idle(port)) {
            close(fd);
            continue;
        }
        if (given >= KEPT) close(kept[given % KEPT]);
        kept[given++ % KEPT] = fd;
        return port;
    }
    return -1;
}
