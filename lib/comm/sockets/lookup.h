/* Looking up a host's name within a limit. The resolver has limits of its own, of half a minute if a name server
 * does not answer, so it works in a thread that can be left behind. */
#pragma once

#include <netdb.h>
#include <stdint.h>

/* Finds the TCP addresses of `host` and `port`. Returns 0 and *out, for freeaddrinfo; or getaddrinfo's error, with
 * errno set if that is EAI_SYSTEM; or, if there is no answer at `deadline_ns`, EAI_INPROGRESS. Numbers are read at
 * once. */
int slc_lookup(const char *host, int port, uint64_t deadline_ns, struct addrinfo **out);
