/* Transport ABI, version 1: how messages get from rank to rank. Frozen: a change is a new header.
 *
 * A transport is a shared library libsluice_transport_NAME.so that exports one object, a sluice_transport_v1 named
 * sluice_transport_v1_table. It sees nothing of the library but this header.
 *
 * Threads: every slot is called from one thread at a time, the owner; it changes once, between connect and the first
 * send. Callbacks run inside progress, cancel, close_peer or close, on that thread; they may call send and recv.
 * Blocking: no slot blocks, but open, connect and close, which may take as long as said there.
 * Statuses: of sluice_status: 0 done, positive in progress, negative an error; with an error the plugin has called
 * host->error with a line that says what, where and what to do.
 * Memory: a plugin may allocate while it warms up; in a steady state send and recv do not. */
#ifndef SLUICE_PLUGIN_TRANSPORT_V1_H
#define SLUICE_PLUGIN_TRANSPORT_V1_H

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_TRANSPORT_ABI_V1 1u                             /* this version */
#define SLUICE_TRANSPORT_V1_SYMBOL "sluice_transport_v1_table" /* the object that a plugin exports */

typedef struct sluice_transport_v1 sluice_transport_v1;           /* a plugin's table of functions */
typedef struct sluice_transport_host_v1 sluice_transport_host_v1; /* the library, as a plugin sees it */

/* The host struct holds what the library offers to a plugin. Valid from open to close. */
struct sluice_transport_host_v1 {
    uint32_t abi;  /* SLUICE_TRANSPORT_ABI_V1 */
    uint32_t size; /* of this struct: later fields are absent in older libraries */
    void *context; /* to hand back */
    int rank, world_size;

    /* One line to the log; level 0 error, 1 warning, 2 information, 3 debugging. Any thread. */
    void (*log)(void *context, int level, const char *line);

    /* Sets the calling thread's error line and returns `status`: return host->error(host->context, status, line). */
    sluice_status (*error)(void *context, sluice_status status, const char *line);

    /* A setting by its name ("throttle.inner"), NULL when there is none; numbers are plain decimals. Valid until
     * close. docs/transports.md lists the names. */
    const char *(*setting)(void *context, const char *name);

    /* Loads another transport, for one that wraps it. The table stays loaded until close of the asking transport; the
     * caller opens and closes it with this same host struct. */
    sluice_status (*load)(void *context, const char *name, const sluice_transport_v1 **table);

    /* The transport calls this once per peer when it turns out to be unreachable, and only from progress. */
    void (*peer_lost)(void *context, int rank, const char *why);
};

/* Called once for every send or recv that returned SLUICE_IN_PROGRESS. `status` SLUICE_OK: done; `bytes`: received
 * (0 for a send). SLUICE_ERR_PEER: the peer is lost; SLUICE_ERR_INTERRUPTED: cancelled; SLUICE_ERR_MISMATCH: the
 * message was longer than the buffer. The buffer is the caller's again. */
typedef void (*sluice_transport_done_v1)(void *context, sluice_status status, size_t bytes);

/* Slots marked (optional) may be NULL; `self` is what open gave. */
struct sluice_transport_v1 {
    uint32_t abi;        /* SLUICE_TRANSPORT_ABI_V1 */
    uint32_t size;       /* sizeof(sluice_transport_v1) as the plugin was compiled */
    const char *name;    /* as in the file's name */
    const char *version; /* for people */

    /* Opens the transport; called once. May take a second. On failure there is nothing to close. */
    sluice_status (*open)(const sluice_transport_host_v1 *host, void **self);

    /* Describes the transport, with the one that it wraps: "throttle(ucx)". (optional: then `name`.) Valid until close.
     */
    const char *(*describe)(void *self);

    /* The blob that peers need for connect. The plugin keeps it; valid until the first send. Any number of calls. */
    sluice_status (*address)(void *self, const void **blob, size_t *bytes);

    /* Names a peer, with its address blob (not kept). Once per peer that messages will go to or come from; never for
     * the own rank. Need not wait for the peer: a connection may be made by the first send. A call that failed with
     * SLUICE_ERR_PEER is repeated until the time to join is over. */
    sluice_status (*connect)(void *self, int rank, const void *blob, size_t bytes);

    /* Starts a message. SLUICE_OK: already done, `done` is not called and `data` may be changed. SLUICE_IN_PROGRESS:
     * `data` must stay until `done`. Done means that the buffer may be changed, not that the peer has it. Messages of
     * equal tag between two ranks arrive in order. */
    sluice_status (*send)(void *self, int rank, const void *data, size_t bytes, uint64_t tag,
                          sluice_transport_done_v1 done, void *context);

    /* Takes the message with exactly this tag, which names the sender too, of at most `bytes`. `rank` is the sender.
     * SLUICE_OK: it was here, *received is set and `done` is not called. SLUICE_IN_PROGRESS as for send. Receives are
     * posted before their messages arrive as a rule; one that was not is kept by the transport meanwhile. */
    sluice_status (*recv)(void *self, int rank, void *data, size_t bytes, uint64_t tag, size_t *received,
                          sluice_transport_done_v1 done, void *context);

    /* Moves messages on and calls `done` of those that have ended. Returns more than 0 if anything happened, 0 if
     * not. */
    int (*progress)(void *self);

    /* File descriptors to poll for reading while asleep: fills up to `capacity`, returns how many there are (at most
     * 8; the same in every call). */
    int (*descriptors)(void *self, int *fds, int capacity);

    /* Called before sleeping, after progress returned 0. SLUICE_OK: the descriptors will become readable when there is
     * something to do. SLUICE_IN_PROGRESS: there is now; call progress instead. May be called again without sleep. */
    sluice_status (*arm)(void *self);

    /* The moment (CLOCK_MONOTONIC, ns) at which progress must be called even if no descriptor is readable; UINT64_MAX:
     * none. (optional: none) */
    uint64_t (*timer)(void *self);

    /* Accounts for bytes that peers got from this rank, and that this rank got from them, through shared memory, as if
     * messages had carried them now, `latencies` of them one after another. Returns the moment (CLOCK_MONOTONIC, ns)
     * from which completion may be shown. (optional: at once) */
    uint64_t (*charge)(void *self, uint64_t sent, uint64_t received, uint32_t latencies);

    /* The peer is dead: everything pending with it ends with SLUICE_ERR_PEER, now or in later progress. More than once
     * is allowed. */
    void (*close_peer)(void *self, int rank);

    /* Ends everything that is pending, with SLUICE_ERR_INTERRUPTED or otherwise, now or in later progress: the caller
     * calls progress until all callbacks have run. More than once is allowed. */
    void (*cancel)(void *self);

    /* Closes the transport; called once, when nothing is pending. First lets what peers still need leave this process,
     * for at most `linger_ns` (0: after a failure, do not communicate). */
    void (*close)(void *self, uint64_t linger_ns);
};

#ifdef __cplusplus
}
#endif
#endif
