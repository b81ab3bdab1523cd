/* Transport ABI, version 2: version 1's messages, or collectives in stream order on a GPU's memory, or both. Frozen: a
 * change is a new header.
 *
 * A transport is a shared library libsluice_transport_NAME.so that exports a sluice_transport_v1 named
 * sluice_transport_v1_table or a sluice_transport_v2 named sluice_transport_v2_table; if both are, the second one is
 * taken. It sees nothing of the library but these headers. Whatever this file does not say is as in transport_v1.h.
 *
 * Two groups of slots may be left out, each as a whole and not both: messages (base.send and base.recv) and
 * collectives. Every other slot of `base` is as mandatory or optional as in version 1. If collectives are offered,
 * base.connect is called for every other rank, on whichever host, so that a rank's address blob can carry what all must
 * know.
 *
 * Collectives in stream order. A call puts work into the stream that attach was given and returns before the work is
 * done, often before it is in the stream: the library that launches it may do so in a thread of its own. A caller that
 * wants to put anything behind a group (an event, a kernel, a copy) therefore waits until `launched` has said
 * SLUICE_OK. All ranks make the same calls in the same order; send and receive match in the order of their calls
 * between two ranks. The work of a group begins when the stream comes to it, and waits there for the other ranks.
 *
 * Threads of the collectives' slots: attach may be called by any thread while no other is in a slot but abort or
 * health; the calls of groups, `launched` and health come from one thread, which may be another one than attach's;
 * abort comes from any thread at any time.
 * Blocking: only attach waits for other ranks. No other slot does, even if a rank is gone.
 * Memory: buffers are the GPU's, of the device that was current at attach, aligned to their elements. They stay, and
 * what is read stays unchanged, until the stream has passed the group. The plugin may allocate memory, on the device
 * too, in attach and in the first group that has an operation of a kind, of a size class or with a peer; a caller who
 * wants none later warms up with such groups before. */
#ifndef SLUICE_PLUGIN_TRANSPORT_V2_H
#define SLUICE_PLUGIN_TRANSPORT_V2_H

#include <sluice/dtype.h>
#include <sluice/plugin/transport_v1.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_TRANSPORT_ABI_V2 2u                             /* this version */
#define SLUICE_TRANSPORT_V2_SYMBOL "sluice_transport_v2_table" /* the object that a plugin exports */

typedef struct sluice_transport_collectives_v2 sluice_transport_collectives_v2; /* a plugin's second group */
typedef struct sluice_transport_v2 sluice_transport_v2;                         /* a plugin's table of functions */

/* All slots are mandatory if the group is offered; `self` is what base.open gave. A count is one of elements of
 * `dtype`, more than 0. Sums take SLUICE_FP32, SLUICE_BF16, SLUICE_INT64 and SLUICE_FP64, everything else any type.
 * Errors of every slot but abort: SLUICE_ERR_ORDER (nothing is attached, outside of a group, or the group before is not
 * launched yet), SLUICE_ERR_ARGUMENT (a rank, a type, a count), SLUICE_ERR_INTERRUPTED (after abort), SLUICE_ERR_PEER
 * (a rank is gone, as far as the plugin sees it), SLUICE_ERR_SYSTEM (all else that the library under it reports). An
 * error other than ARGUMENT and ORDER ends the collectives: the caller then calls abort. */
struct sluice_transport_collectives_v2 {
    /* Names the stream (a cudaStream_t) into which calls put their work; its device is the calling thread's current
     * one. Collective the first time: it waits until all ranks are there, and returns soon when abort is called
     * meanwhile. Later calls are local and only change the stream; nothing may be in progress then. NULL lets go of the
     * stream, which may then be destroyed: local, does not communicate, succeeds after abort too. Besides the errors
     * above: SLUICE_ERR_UNSUPPORTED (the ranks' GPUs cannot be used together). */
    sluice_status (*attach)(void *self, void *stream);

    /* Brackets the calls of one group, which start together, so that its sends and receives need no order. Groups do
     * not nest. All calls below stand in a group. group_end: SLUICE_OK: all of it is in the stream.
     * SLUICE_IN_PROGRESS: ask `launched`. If a call inside failed, group_end launches nothing and returns that
     * error. An empty group is SLUICE_OK. */
    sluice_status (*group_begin)(void *self);
    sluice_status (*group_end)(void *self);

    /* Says whether all groups are in the stream: SLUICE_OK, SLUICE_IN_PROGRESS, or why they never will be. Cheap, to be
     * asked again; while something is in progress base.timer tells the moment at which it is worth asking next. */
    sluice_status (*launched)(void *self);

    /* Adds `count` elements of every rank's part for this rank: `send` has world_size * count elements, rank r's part
     * r-th; `receive` gets `count`, and may be this rank's part of `send`. The order of additions is the library's own:
     * the same whenever the same call is made again, but not the ranks'. */
    sluice_status (*reduce_scatter)(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype);

    /* Brings every rank's `count` elements to all: `receive` gets world_size * count, rank r's r-th; `send` may be this
     * rank's part of `receive`. */
    sluice_status (*all_gather)(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype);

    /* Adds `count` elements over all ranks, for all: the order of additions is as in reduce_scatter; `receive` may be
     * `send`. */
    sluice_status (*all_reduce)(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype);

    /* Brings `count` elements of `root`'s buffer into every rank's. */
    sluice_status (*broadcast)(void *self, void *buffer, size_t count, sluice_dtype dtype, int root);

    /* One message between two ranks, both of which name the same count of the same type. Never to the own rank. */
    sluice_status (*send)(void *self, int rank, const void *data, size_t count, sluice_dtype dtype);
    sluice_status (*receive)(void *self, int rank, void *data, size_t count, sluice_dtype dtype);

    /* Returns SLUICE_OK, or an error if something has failed that no call has reported, such as a connection that
     * broke. May be called at any time, and should be called now and then between the groups of a long step. */
    sluice_status (*health)(void *self);

    /* Ends the collectives: work that waits in the stream for a rank ends, with rubbish in its buffers, so that the
     * stream drains; an attach that waits in another thread returns; from then on every other slot returns
     * SLUICE_ERR_INTERRUPTED. Communicates with nobody and returns within about a second, however many ranks are gone.
     * May be called more than once. base.close does the same to collectives that are not aborted and do not end in
     * time. */
    void (*abort)(void *self);
};

/* The table of version 1 with a second group of functions. */
struct sluice_transport_v2 {
    uint32_t abi;  /* SLUICE_TRANSPORT_ABI_V2 */
    uint32_t size; /* sizeof(sluice_transport_v2) as the plugin was compiled */
    sluice_transport_v1
        base; /* a table of version 1, whole but for the messages, and with that version's abi and size */
    const sluice_transport_collectives_v2 *collectives; /* NULL: messages only */
};

#ifdef __cplusplus
}
#endif
#endif
