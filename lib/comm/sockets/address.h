/* TCP sockets by name and port. All are non-blocking and closed on exec. Errors: ARGUMENT (a name that is none),
 * SYSTEM.
 */
#pragma once

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The reason why the last attempt to connect failed, for people: what was tried, and what the system answered. */
typedef struct {
    char why[200];
} slc_attempt;

/* Checks that `host` is a name or a number, without a port, a scheme or brackets. Errors: ARGUMENT says what to set
 * instead. */
sluice_status slc_address_check(const char *host);

/* Listens on `port`: on loopback alone if `host` is "localhost" or a loopback number, else on every address, whatever
 * the name resolves to here. */
sluice_status slc_address_listen(const char *host, int port, int *fd);

/* Writes the addresses on which others reach a listener, with their interfaces. */
void slc_address_describe_listener(int fd, char *text, size_t bytes);

/* Connects to `port` of `host`. IN_PROGRESS: nobody listens there yet, or the name is not known yet; `attempt` says
 * which. */
sluice_status slc_address_connect(const char *host, int port, uint64_t deadline_ns, slc_attempt *attempt, int *fd);

/* Makes one attempt to connect, until `deadline_ns` or a little longer. Returns 0, the number of the error (ETIMEDOUT:
 * no answer), or, if there is no socket to be had, the negated number. */
int slc_address_try(const struct sockaddr *address, socklen_t address_bytes, uint64_t deadline_ns, int *fd);

/* Writes the name of the interface that has the near end of a connection; "": it is loopback, or not known. */
void slc_address_interface(int fd, char *name, size_t bytes);
