/* Neighbours: the ranks of this host, which are reached through shared memory. Each has a control page, a doorbell and,
 * once memory is attached, a data segment. Two ranks are neighbours exactly when an abstract Unix socket connects them,
 * so ranks in different network namespaces never are. */
#pragma once

#include "lib/comm/failure.h"
#include "lib/device/device.h"

#include <sluice/status.h>
#include <sluice/world.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SLC_SIGNATURES = 64, SLC_LANES_MOST = 8, SLC_OFFERS = 4, SLC_CHANNELS_MOST = 1024 };

/* The owner's words of one lane: the world's, or a group's. Counters count communicating operations of that lane,
 * modulo 2^32. A peer touches the owner's buffers only after the owner's `ready` has passed the operation and before
 * the peer's own `done` has. */
typedef struct {
    _Alignas(64) _Atomic uint32_t ready; /* operations whose buffers peers may use */
    _Alignas(64) _Atomic uint32_t done;  /* operations for which the owner no longer uses its peers' buffers */
    _Alignas(64) _Atomic uint64_t signature[SLC_SIGNATURES]; /* operation i's shape and place, at i modulo this */
} slc_lane_words;

/* A transfer that the owner sends: the bytes [offset, offset + bytes) of its segment. */
typedef struct {
    uint64_t offset, bytes, label;
    uint64_t begin_ns; /* an imitated network carries its first byte then; 0: none is imitated */
    uint64_t rings;    /* 1: the receiver wakes the sender's thread when it has taken this one */
} slc_offer;

/* The owner's words of one end of a channel. The sender writes the offers, `offered` and `asked`, the receiver `taken`;
 * `offered` and `taken` count transfers, modulo 2^32. The receiver reads offer i after `offered` has passed it, and the
 * sender's buffer until `taken` has. */
typedef struct {
    _Alignas(64) _Atomic uint32_t offered;
    _Atomic uint32_t asked;       /* not 0: the receiver wakes the sender's thread whenever it has taken a transfer */
    slc_offer offers[SLC_OFFERS]; /* transfer i's at i modulo this */
    _Alignas(64) _Atomic uint32_t taken;
} slc_channel_words;

/* Each rank owns one memfd with its words. The owner writes them; every neighbour may take the sleeping flag. Pages of
 * it that are never used take no memory. */
typedef struct {
    _Alignas(64) _Atomic uint32_t sleeping; /* 1: the owner's thread sleeps, ring its doorbell */
    _Alignas(64) _Atomic uint32_t cpu;      /* the core on which the owner's thread ran when it last noted it */
    slc_lane_words lanes[SLC_LANES_MOST];   /* the world's is the first */
    slc_channel_words channels[SLC_CHANNELS_MOST];
} slc_control_page;

#define SLC_PAGE_BYTES ((sizeof(slc_control_page) + 4095) / 4096 * 4096)

typedef struct {
    int socket; /* -1: not a neighbour */
    int doorbell;
    uint64_t key[2]; /* the key that it wants to see from whoever hands it something */
    slc_control_page *page;
    slc_segment segment; /* its data segment, mapped here; base NULL: none */
} slc_neighbour;

/* A card holds all that others must know to connect. It is sent through the rendezvous. */
typedef struct {
    char name[64]; /* of the abstract socket */
    char host_id[64];
    uint64_t
        key[2]; /* drawn; any user of the host can read the socket's name, but the key goes through the rendezvous */
    int32_t direct;
} slc_neighbour_card;

typedef struct {
    int rank, size;
    slc_neighbour *peers; /* [size] */
    int *list, count;     /* the neighbours' ranks, ascending, without this rank */
    slc_control_page *page;
    int page_fd, doorbell, listener;
    uint64_t key[2]; /* of this rank's card */
} slc_neighbours;

/* These three functions are steps of making a world, each local. After the first the ranks exchange their cards, after
 * the second what connect found. */
sluice_status slc_neighbours_open(slc_neighbours *neighbours, const sluice_world_config *config,
                                  slc_neighbour_card *card);
/* Tries to connect to every lower rank; reached[r] becomes 1 if that works and the rank runs as the same user. */
sluice_status slc_neighbours_connect(slc_neighbours *neighbours, const slc_neighbour_card *const *cards,
                                     uint8_t *reached);
/* Waits for the neighbours' control pages and doorbells; all_reached[r] is rank r's `reached`. A process that connects
 * without the key of this rank's card, or that runs as another user, is turned away. Errors: FORMAT (a page that is too
 * short or could shrink), SYSTEM (too few descriptors), PEER, TIMEOUT. */
sluice_status slc_neighbours_meet(slc_neighbours *neighbours, const uint8_t *const *all_reached, uint64_t deadline_ns);
void slc_neighbours_close(slc_neighbours *neighbours);

/* Hands `segment` over to the neighbours and maps theirs, which may have other sizes. Collective among neighbours,
 * blocking, on the calling thread. Ends early with the world's failure. Errors: UNSUPPORTED (there are neighbours, and
 * `segment` cannot be shared), PEER, TIMEOUT, those of slc_segment_map. */
sluice_status slc_neighbours_attach(slc_neighbours *neighbours, const slc_segment *segment, slc_failure *failure,
                                    uint64_t deadline_ns);
void slc_neighbours_detach(slc_neighbours *neighbours);

static inline bool slc_is_neighbour(const slc_neighbours *neighbours, int rank)
{
    return neighbours->peers[rank].socket >= 0;
}

/* Makes *out the neighbours as the `count` ranks `members` see them, among which this rank is number `own`: a rank is
 * named by its number there. *out borrows pages and descriptors, and slc_neighbours_view_close frees what it has of its
 * own. slc_neighbours_view_attach takes over which segments are mapped. Errors: MEMORY. */
sluice_status slc_neighbours_view(const slc_neighbours *neighbours, const int *members, int count, int own,
                                  slc_neighbours *out);
void slc_neighbours_view_attach(slc_neighbours *view, const slc_neighbours *neighbours, const int *members);
void slc_neighbours_view_close(slc_neighbours *view);

/* Wakes the neighbours whose threads sleep; to be called after raising a counter of this rank's page. */
void slc_neighbours_ring(slc_neighbours *neighbours);
/* Wakes one neighbour, as slc_neighbours_ring does all. */
void slc_neighbours_ring_one(slc_neighbours *neighbours, int rank);
/* Wakes this rank's own communication thread if it sleeps. Any thread. */
void slc_neighbours_wake_own(slc_neighbours *neighbours);
