/* TCP sockets by name and port. All are non-blocking and closed on exec. */
#ifndef SLC_COMM_ADDRESS_H
#define SLC_COMM_ADDRESS_H

#include <sluice/status.h>
#include <stdint.h>

/* Listens on `port`: on the loopback address only when that is what `host` names, else on every address. */
sluice_status slc_address_listen(const char *host, int port, int *fd);

/* IN_PROGRESS: nobody listens there yet. */
sluice_status slc_address_connect(const char *host, int port, uint64_t deadline_ns, int *fd);

#endif
