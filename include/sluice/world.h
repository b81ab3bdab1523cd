/* The ranks of a job. Creating a world is collective: it returns when every rank has joined, or with an error that
 * says who is missing. One communication thread a rank is started here and sleeps while nothing is to be done.
 *
 * Threads: any thread may use a world that has been created, until one destroys it. Collectives of several threads run
 * one after the other and must come in the same order on every rank. ARGUMENT is the status for a pointer that is NULL
 * if nothing says that it may be; functions that return no status then return -1 for a rank, 0 for a size, or the
 * word "none". Strings that functions return live as long as the world. */
#ifndef SLUICE_WORLD_H
#define SLUICE_WORLD_H

#include <sluice/init.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_world sluice_world; /* the ranks of a job, seen from one of them */

enum { SLUICE_RANKS_MOST = 4095, SLUICE_PORT_LAST = 65535 }; /* of a world; of its rendezvous */

/* The settings by which ranks find each other; sluice_world_config_init fills them in from the launcher's
 * environment. */
typedef struct {
    size_t struct_size;         /* of this struct; sluice_world_config_init sets it */
    int rank, size;             /* of the world: ranks from 0, at most 4095 */
    int local_rank, local_size; /* on this host, as the launcher says; -1 unknown */
    const char *master_addr;    /* where rank 0 listens: a name or an address; with one rank it may be NULL */
    int master_port;            /* 1 to 65535 */
    const char *job_token;      /* below 256 bytes; "" or NULL: none */
    const char *transport;      /* name of a plugin; NULL: "ucx" */
    const char *throttle;       /* "" or NULL: off, else BANDWIDTH[,LATENCY] as "1gbit,50us" */
    bool direct;                /* ranks of one host use each other's memory; false: always messages */
    double join_timeout_s;      /* how long to wait for all ranks to join, > 0 */
    double timeout_s; /* how long a rank that others wait for may be silent, or live and make no call of Sluice,
                         before that is an error for all; 0: 60 s silent, 600 s absent, for it may be loading data */
} sluice_world_config;

/* Does what sluice_world_config_init does, for a struct of `struct_size` bytes, for callers in other languages.
 * ARGUMENT if the struct cannot have this size. Fields of a newer struct that this library does not know become 0. */
SLUICE_API sluice_status sluice_world_config_init_sized(sluice_world_config *config, size_t struct_size);

/* Fills `config` from the launcher's environment (sluice run, torchrun, Slurm, PMIx, Open MPI) and from settings
 * (SLUICE_COMM_TRANSPORT, SLUICE_COMM_THROTTLE, SLUICE_COMM_DIRECT, SLUICE_COMM_TIMEOUT, ...). With no launcher: a
 * world of one. Strings point to the environment, to constants or to this thread's memory, valid until its next call.
 * Any thread, while nothing changes the environment. Errors: ARGUMENT (names the variable). */
static inline sluice_status sluice_world_config_init(sluice_world_config *config)
{
    return sluice_world_config_init_sized(config, sizeof *config);
}

/* The launcher whose variables make this process a rank, for people to read; NULL: none started it. Any thread, while
 * nothing changes the environment. */
SLUICE_API const char *sluice_launcher_name(void);

/* Joins the world. `config` NULL means sluice_world_config_init's; strings are copied. Blocking, collective. The caller
 * destroys the result. Errors, if possible the same on every rank: TIMEOUT (who is missing), MISMATCH (sizes,
 * versions, tokens, transport, throttle or SLUICE_COMM_DEPTH differ; who listens is not rank 0 of a job of Sluice),
 * PEER (a rank went away), ARGUMENT (a field out of its range, or a setting), UNSUPPORTED (the transport is not found,
 * or built for another version), FORMAT (a rank says what cannot be), MEMORY, SYSTEM; what the transport returns. */
SLUICE_API sluice_status sluice_world_create(const sluice_world_config *config, sluice_world **out);

/* Leaves the world. Destroy its runtimes before: while there is one, this call only notes that the world is not wanted
 * any more and warns, and destroying the last runtime leaves the world. Never communicates after a failure, never
 * blocks for long. NULL is allowed. In a child that a fork made it does nothing. */
SLUICE_API void sluice_world_destroy(sluice_world *world);

/* Say which rank this is, from 0 to size - 1, and how many there are. The local functions count only the ranks that
 * reach each other through memory, this one included. */
SLUICE_API int sluice_world_rank(const sluice_world *world);
SLUICE_API int sluice_world_size(const sluice_world *world);
SLUICE_API int sluice_world_local_rank(const sluice_world *world);
SLUICE_API int sluice_world_local_size(const sluice_world *world);

/* Names the way on which bulk data go: "alone" (one rank), "direct" (all peers by memory), "messages", "mixed", or,
 * while a runtime works on GPUs, "device" (collectives on their memory): what results should say. */
SLUICE_API const char *sluice_world_path(const sluice_world *world);
/* Names the transport in use, with what it wraps: "ucx", "throttle(ucx)"; "none" if messages are not needed. */
SLUICE_API const char *sluice_world_transport(const sluice_world *world);

/* The functions that follow are small blocking collectives on ordinary memory, for loss values, configuration and
 * results. They are not for bulk data, because they go through the rendezvous connection. Every rank makes the same
 * call with the same size. A call that is complete returns SLUICE_OK even if another rank fails right after it. After a
 * failure every call returns that failure again. A rank that waits in vain gets an error. Memory of 0 bytes may be
 * NULL. Errors: ARGUMENT (more than 1 GiB at a time, all_gather's from all ranks together; a root that is no rank),
 * MISMATCH (the others' calls can never meet this one: names each rank's), TIMEOUT (names a rank that is absent;
 * timeout_s), PEER (a rank died or left), what else the world failed with. */

/* Returns when every rank has called it. */
SLUICE_API sluice_status sluice_world_barrier(sluice_world *world);
/* Gives every rank `bytes` of `root`'s `data`, in its own `data`. */
SLUICE_API sluice_status sluice_world_broadcast(sluice_world *world, void *data, size_t bytes, int root);
/* Gives every rank `bytes` of `root`'s `data`, or `root`'s failure: `status`, which counts on `root` alone, and this
 * thread's error line there. So what one rank does for all, as writing a file, ends alike on all. Errors: that status,
 * with `root`'s line and `data` as it was; those above. */
SLUICE_API sluice_status sluice_world_share(sluice_world *world, sluice_status status, void *data, size_t bytes,
                                            int root);
/* Gives every rank `bytes` of each rank's `src`: rank r's at dst + r * bytes. `src` may lie at its own place in `dst`.
 */
SLUICE_API sluice_status sluice_world_all_gather(sluice_world *world, const void *src, size_t bytes, void *dst);
/* Replaces `count` values by their sums over all ranks, in double, added in rank order: the same bits on every rank. */
SLUICE_API sluice_status sluice_world_all_reduce(sluice_world *world, double *values, size_t count);

/* Compares what each rank has found by itself: `fingerprint` is a hash or a checksum of something that must be the same
 * on all of them, as of a file that every rank reads, and `what` names it in the error. Returns the same on every rank.
 * Errors: MISMATCH (the first rank whose fingerprint is not rank 0's), and those above. */
SLUICE_API sluice_status sluice_world_same(sluice_world *world, const char *what, uint64_t fingerprint);

/* Returns the first failure that this world has seen, with its line as this thread's error; SLUICE_OK while it is
 * healthy. Never blocks. */
SLUICE_API sluice_status sluice_world_check(sluice_world *world);

#ifdef __cplusplus
}
#endif
#endif
