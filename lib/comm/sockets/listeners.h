/* The TCP sockets on which a process listens. A transport does not say where it listens, so its sockets are found among
 * the process's descriptors; and other ranks ask whether connections reach them, since a transport may take minutes to
 * find out that they do not. */
#pragma once

#include <netinet/in.h>
#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_LISTENERS_MOST = 16 };

typedef union {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} slc_listener;

/* Lists the listening TCP sockets of this process that are not among the `known_count` in `known`, at most
 * SLC_LISTENERS_MOST, and returns how many there are. Those that listen on every address are left out. 0 if there is
 * no /proc. */
size_t slc_listeners_find(const slc_listener *known, size_t known_count, slc_listener *list);

/* Opens a connection to one of the listeners and closes it again. OK: that works with one of them, or none is given.
 * PEER: it works with none, and the line says what became of the last one. Returns at `deadline_ns`, or a little after
 * it. */
sluice_status slc_listeners_probe(const slc_listener *list, size_t count, uint64_t deadline_ns);
