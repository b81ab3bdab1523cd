/* Finding and loading transport plugins, and the host struct that they get. */
#pragma once

#include <sluice/plugin/transport_v2.h>
#include <sluice/status.h>
#include <stdbool.h>

enum { SLC_LOADED_MAX = 8, SLC_TRANSPORT_DESCRIPTORS = 8 };

/* Called when a transport finds a peer unreachable. */
typedef void (*slc_peer_lost)(void *context, int rank, const char *why);

typedef struct {
    const sluice_transport_v1 *table;                   /* NULL: none is open */
    const sluice_transport_collectives_v2 *collectives; /* NULL: it has messages only, as all of version 1 */
    void *self;
    sluice_transport_host_v1 host;
    slc_peer_lost peer_lost;
    void *context;
    const char *inner; /* settings of a transport that wraps another */
    const char *interfaces;
    char bytes_per_s[32], latency_s[32];
    void *libraries[SLC_LOADED_MAX];
    int library_count;
    int fds[SLC_TRANSPORT_DESCRIPTORS], fd_count; /* the descriptors that it offers to poll */
} slc_transport;

/* Opens the transport `name`, or "throttle" around it when `throttle` is not "". `interfaces` lists the network
 * interfaces that lead to the other ranks, separated by commas; "": not known. The transport's file,
 * libsluice_transport_NAME.so, is looked for in SLUICE_TRANSPORT_PATH, in the folder of the library or program itself
 * and in those that belong to it, as dlopen does, then in the place of installation. The first file that exists is
 * taken; if it has tables of both versions, the second version's. Strings are kept by pointer; `out` must not move.
 * Errors: UNSUPPORTED (says where it looked, why the file cannot be loaded, or which slot is missing; what a throttle
 * wraps has no messages), ARGUMENT (a name or a throttle that cannot be read), and what the plugin's open returns. */
sluice_status slc_transport_open(slc_transport *out, const char *name, const char *throttle, const char *interfaces,
                                 int rank, int size, slc_peer_lost peer_lost, void *context);
void slc_transport_close(slc_transport *transport, uint64_t linger_ns);

/* The first returns true if the open transport carries messages of the host's memory, the second if it has collectives
 * of a GPU's memory; both return false if none is open. */
static inline bool slc_transport_has_messages(const slc_transport *transport)
{
    return transport->table && transport->table->send;
}
static inline bool slc_transport_has_collectives(const slc_transport *transport)
{
    return transport->table && transport->collectives;
}

/* True if a transport is open that imitates a network for bytes that go through memory. */
static inline bool slc_transport_imitates(const slc_transport *transport)
{
    return transport->table && transport->table->charge;
}

/* Marks every descriptor that can be found from those that the transport offers to poll, so that a program which this
 * process starts with exec does not keep them. Descriptors that the transport opens later are its own affair. */
void slc_transport_close_on_exec(const slc_transport *transport);
/* Closes the same descriptors in a child that was forked, and forgets the transport without calling it. */
void slc_transport_give_up(slc_transport *transport);

const char *slc_transport_describe(const slc_transport *transport);
