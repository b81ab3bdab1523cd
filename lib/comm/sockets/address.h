/* TCP sockets by name and port. All are non-blocking and closed on exec. Errors: ARGUMENT (a name that cannot be
 * resolved), SYSTEM. */
#ifndef SLC_COMM_ADDRESS_H
#define SLC_COMM_ADDRESS_H

#include <sluice/status.h>
#include <stdint.h>

/* Listens on `port`: on the loopback address alone if `host` names it, else on every address. */
sluice_status slc_address_listen(const char *host, int port, int *fd);

/* Connects to `port` of `host`. IN_PROGRESS: nobody listens there yet. */
sluice_status slc_address_connect(const char *host, int port, uint64_t deadline_ns, int *fd);

#endif
