/* TCP_INFO has counts of bytes since Linux 4.2, which retransmissions do not raise. */
#include "lib/comm/sockets/traffic.h"

#include "lib/comm/sockets/watched.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

enum { LISTENING = 10 }; /* tcpi_state; linux/tcp.h does not have it, and excludes the header that does */

static void add_connection(void *context, int fd)
{
    slc_traffic *traffic = context;
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes)) return; /* it is no TCP socket */
    if (bytes < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return;
    if (info.tcpi_state == LISTENING) return;
    traffic->bytes += info.tcpi_bytes_acked + info.tcpi_bytes_received;
    traffic->connections++;
}

slc_traffic slc_traffic_read(const int *fds, int count)
{
    slc_traffic traffic = {0};
    for (int i = 0; i < count; i++) slc_watched_visit(fds[i], add_connection, &traffic);
    return traffic;
}
