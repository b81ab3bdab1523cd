/* The ranks of this host, reached through shared memory: who they are, a control page each, a doorbell each, and later
 * their data segments. Two ranks are neighbours exactly when an abstract Unix socket connects them, so ranks in
 * different network namespaces never are. */
#ifndef SLC_COMM_NEIGHBOURS_H
#define SLC_COMM_NEIGHBOURS_H

#include "lib/comm/world/failure.h"
#include "lib/device/device.h"

#include <sluice/status.h>
#include <sluice/world.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SLC_SIGNATURES = 64, SLC_PAGE_BYTES = 4096 };

/* One memfd page a rank; its owner writes the counters, everybody may take the sleeping flag. Counters count
 * communicating operations, modulo 2^32. A peer touches the owner's buffers only after the owner's `ready` has passed
 * the operation and before its own `done` has. */
typedef struct {
    _Alignas(64) _Atomic uint32_t ready;    /* operations whose buffers peers may use */
    _Alignas(64) _Atomic uint32_t done;     /* operations for which the owner is through with its peers' buffers */
    _Alignas(64) _Atomic uint32_t sleeping; /* the owner's thread sleeps: ring its doorbell */
    _Alignas(64) _Atomic uint32_t cpu;      /* where the owner's thread ran when it was last looked at */
    _Alignas(64) _Atomic uint64_t signature[SLC_SIGNATURES]; /* of operation i at i modulo this: shape and place */
} slc_control_page;

typedef struct {
    int socket; /* -1: not a neighbour */
    int doorbell;
    uint64_t key[2]; /* that it wants to see from whoever hands it something */
    slc_control_page *page;
    slc_segment segment; /* its data, mapped here; base NULL: none */
} slc_neighbour;

/* What others must know to connect: sent through the rendezvous. */
typedef struct {
    char name[64]; /* of the abstract socket */
    char host_id[64];
    uint64_t
        key[2]; /* drawn; the socket's name can be read by any user of the host, this went through the rendezvous */
    int32_t direct;
} slc_neighbour_card;

typedef struct {
    int rank, size;
    slc_neighbour *peers; /* [size] */
    int *list, count;     /* the neighbours' ranks, ascending, without this one */
    slc_control_page *page;
    int page_fd, doorbell, listener;
    uint64_t key[2]; /* of the own card */
} slc_neighbours;

/* Steps of making a world, each local; between them the ranks exchange cards, then what connect found. */
sluice_status slc_neighbours_open(slc_neighbours *neighbours, const sluice_world_config *config,
                                  slc_neighbour_card *card);
/* Tries every lower rank; reached[r] becomes 1 where it works. */
sluice_status slc_neighbours_connect(slc_neighbours *neighbours, const slc_neighbour_card *const *cards,
                                     uint8_t *reached);
/* all_reached[r] is rank r's `reached`. Waits for control pages and doorbells. Whoever connects and does not bring the
 * own card's key, or is of another user, is turned away. Errors: FORMAT (a page that is too short or could shrink),
 * SYSTEM (too few descriptors), PEER, TIMEOUT. */
sluice_status slc_neighbours_meet(slc_neighbours *neighbours, const uint8_t *const *all_reached, uint64_t deadline_ns);
void slc_neighbours_close(slc_neighbours *neighbours);

/* Collective among neighbours, blocking, on the calling thread: hands over `segment`, maps theirs. */
sluice_status slc_neighbours_attach(slc_neighbours *neighbours, const slc_segment *segment, slc_failure *failure,
                                    uint64_t deadline_ns);
void slc_neighbours_detach(slc_neighbours *neighbours);

static inline bool slc_is_neighbour(const slc_neighbours *neighbours, int rank)
{
    return neighbours->peers[rank].socket >= 0;
}

/* Wakes the neighbours whose threads sleep; to be called after raising a counter of the own page. */
void slc_neighbours_ring(slc_neighbours *neighbours);

#endif
