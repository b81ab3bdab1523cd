/* The state of a world, in the parts of which it is made. Private to lib/comm. */
#pragma once

#include "lib/comm/channel/state.h"
#include "lib/comm/control/state.h"
#include "lib/comm/failure.h"
#include "lib/comm/join/rendezvous.h"
#include "lib/comm/lane/state.h"
#include "lib/comm/neighbours.h"
#include "lib/comm/transport.h"

#include <sluice/world.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>

/* A group: a lane of its own beside the world's. */
typedef struct slc_group slc_group;
struct slc_group {
    slc_comm comm;
    slc_neighbours view; /* the neighbours among its members */
    slc_history history;
    int *members;
    slc_group *next;
};

/* The groups and channels of this rank. Threads of the program change the lists, and the communication thread walks
 * them, under the lock. */
typedef struct {
    pthread_mutex_t lock;
    _Atomic uint32_t count; /* of both kinds */
    slc_group *groups;
    slc_channel *channels;
} slc_lines;

struct sluice_world {
    sluice_world_config config;
    char *transport_name, *throttle, *job_token; /* own copies of the config's strings */
    char interfaces[256];                        /* those that lead to the other ranks, separated by commas */
    const char *path;
    bool any_messages; /* some pair of ranks needs messages */
    bool imagined;     /* the other ranks are: see lib/comm/imagined_world.h */

    slc_failure failure;
    slc_rendezvous rendezvous;
    slc_neighbours neighbours;
    slc_transport transport;
    slc_control control;
    slc_comm comm;
    slc_lines lines;

    pthread_t thread;
    bool running;
    _Atomic bool stop;
    bool acknowledged; /* the thread has seen the failure */
    uint64_t spin_ns;
    uint64_t pace_ns;  /* the longest time between two looks at a network that has enough to do */
    bool yield;        /* there are more ranks than cores: let the others go on while looking for work */
    uint64_t aside_ns; /* when the thread last moved away from a neighbour's core */
    struct pollfd *polls;

    /* A small collective, which is handed to the thread; one caller at a time. */
    pthread_mutex_t collect_lock;
    slc_collect collect;
    _Atomic uint32_t collects_asked, collects_complete;
    _Atomic uint64_t collector; /* the thread that called the last one */
    slc_gate collects_done;

    slc_gate told;                    /* 1: the failure is on its way to the other ranks, if they are to be told */
    char last_words[SLC_ERROR_BYTES]; /* the last error of the thread that leaves; "": none */
    int code;                         /* the number that it leaves with */

    uint32_t holders; /* runtimes that use it */
    bool unwanted;    /* sluice_world_destroy was called while there were some */

    sluice_world *next; /* the next world of this process (worlds.c) */
    bool forked;        /* this process was forked from the rank */
};

static inline sluice_world *slc_comm_world(slc_comm *comm)
{
    return (sluice_world *)(void *)((char *)comm->whole - offsetof(sluice_world, comm));
}
