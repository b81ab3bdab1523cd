/* Tells what the TCP connections behind a transport have carried, which shows that a long message comes through slowly
 * if the transport does not say how much of it is here. */
#pragma once

#include <stdint.h>

typedef struct {
    uint64_t bytes;       /* that the other ends have acknowledged, and that have come from them in order */
    uint32_t connections; /* open TCP connections that were seen */
} slc_traffic;

/* Reads the kernel's counts of every TCP connection among the `count` descriptors, and among those that they watch
 * (watched.h). A transport whose connections cannot be seen, and one without any, has 0 of them. */
slc_traffic slc_traffic_read(const int *fds, int count);
