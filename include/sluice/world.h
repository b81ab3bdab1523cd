/* The ranks of a job. Creating a world is collective: it returns when every rank has joined, or with an error that
 * says who is missing. One communication thread a rank is started here and sleeps while nothing is to be done. */
#ifndef SLUICE_WORLD_H
#define SLUICE_WORLD_H

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_world sluice_world;

enum { SLUICE_RANKS_MOST = 4095, SLUICE_PORT_LAST = 65535 }; /* of a world; of its rendezvous */

typedef struct {
    int rank, size;             /* of the world */
    int local_rank, local_size; /* of this host, as the launcher says; -1 unknown */
    const char *master_addr;    /* where rank 0 listens */
    int master_port;
    const char *job_token; /* "" none */
    const char *transport; /* name of a plugin: "ucx" */
    const char *throttle;  /* "" off, else BANDWIDTH[,LATENCY] as "1gbit,50us" */
    int direct;            /* 1: ranks of one host use each other's memory; 0: always messages */
    double join_timeout_s; /* how long to wait for all ranks to join */
    double timeout_s;      /* how long a rank that others wait for may be silent, or live and make no call of Sluice,
                              before that is an error for all; 0: 60 s silent, 600 s absent, for it may be loading data */
} sluice_world_config;

/* Fills `config` from the launcher's environment (sluice run, torchrun, Slurm, PMIx, Open MPI) and from settings
 * (SLUICE_COMM_TRANSPORT, SLUICE_COMM_THROTTLE, SLUICE_COMM_DIRECT, SLUICE_COMM_TIMEOUT, ...). With no launcher: a
 * world of one. Strings point to the environment or to constants. Errors: ARGUMENT (names the variable). */
SLUICE_API sluice_status sluice_world_config_init(sluice_world_config *config);

/* The launcher whose variables make this process a rank, for people to read; NULL: none started it. Any thread, while
 * nothing changes the environment. */
SLUICE_API const char *sluice_launcher_name(void);

/* Joins the world. `config` NULL means sluice_world_config_init's. Blocking, collective. The caller owns the result.
 * Errors: TIMEOUT (who is missing), MISMATCH (sizes, versions, tokens), ARGUMENT, SYSTEM. */
SLUICE_API sluice_status sluice_world_create(const sluice_world_config *config, sluice_world **out);

/* Leaves. Never communicates after a failure, never blocks for long. NULL is allowed. */
SLUICE_API void sluice_world_destroy(sluice_world *world);

SLUICE_API int sluice_world_rank(const sluice_world *world);
SLUICE_API int sluice_world_size(const sluice_world *world);
SLUICE_API int sluice_world_local_rank(const sluice_world *world); /* among the ranks reached through memory */
SLUICE_API int sluice_world_local_size(const sluice_world *world);

/* "alone" (one rank), "direct" (all peers by memory), "messages" or "mixed": what results should say. */
SLUICE_API const char *sluice_world_path(const sluice_world *world);
SLUICE_API const char *sluice_world_transport(const sluice_world *world); /* e.g. "ucx" or "throttle(ucx)" */

/* Small blocking collectives on ordinary memory, for loss values, configuration and results. Not for bulk data:
 * they go through the rendezvous connection; more than 1 GiB at a time (all_gather: from all ranks together) is
 * ARGUMENT. One that is complete returns SLUICE_OK even where another rank fails right after it. After a failure each
 * returns it again.
 * A rank that waits in vain is told: where the others' calls can never meet its own MISMATCH names each rank's call,
 * and TIMEOUT names a rank that is absent (timeout_s).
 * all_reduce: double sums, added in rank order; the same bits on every rank. */
SLUICE_API sluice_status sluice_world_barrier(sluice_world *world);
SLUICE_API sluice_status sluice_world_broadcast(sluice_world *world, void *data, size_t bytes, int root);
SLUICE_API sluice_status sluice_world_all_gather(sluice_world *world, const void *src, size_t bytes, void *dst);
SLUICE_API sluice_status sluice_world_all_reduce(sluice_world *world, double *values, size_t count);

/* The first failure that this world has seen: SLUICE_OK while it is healthy. Never blocks; any thread. */
SLUICE_API sluice_status sluice_world_check(sluice_world *world);

#ifdef __cplusplus
}
#endif
#endif
