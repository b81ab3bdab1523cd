/* The state of the control connections: what each of them holds, what this rank is doing, and the collective in course.
 * All of it belongs to the communication thread. */
#pragma once

#include "lib/comm/failure.h"
#include "lib/comm/sockets/wire.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    SLC_ELSEWHERE,     /* in no call that waits: it computes, loads data, or has gone astray */
    SLC_WORKING,       /* in a call of ours that takes its time, such as planning or saving */
    SLC_IN_COLLECTIVE, /* its part of a small collective is on its way, and the result is not here */
    SLC_IN_OPERATIONS, /* it waits for operations of all ranks to complete */
    SLC_IN_TRANSFER    /* it waits for a transfer of a channel, or for operations of a group */
} slc_place;

/* The activity of a rank. A heartbeat to rank 0 carries it, with only as many bytes of the text as there are. Counts
 * are modulo 2^32. */
typedef struct {
    int32_t place;       /* slc_place */
    uint32_t collective; /* SLC_IN_COLLECTIVE: its number */
    uint32_t begun;      /* communicating operations that the communication thread has begun */
    uint32_t needed;     /* SLC_IN_OPERATIONS: it waits until this many of them are complete */
    uint8_t halted;      /* no further operation begins before the program acts */
    uint8_t one_thread;  /* the program waits in the thread that makes all of its calls */
    uint8_t lacks;       /* a message between this rank and `peer` is on its way; it belongs to communicating operation
                            `operation`, which has come in this rank as far as `stage` */
    uint8_t reserved;
    int32_t peer;
    uint32_t operation, stage;
    uint32_t still_ms;   /* how long the program has been doing this, without another call */
    uint32_t unmoved_ms; /* how long no operation has made progress, and no byte of a message has come through */
    int32_t missing;     /* SLC_IN_TRANSFER: a rank that has not come to what it waits for; -1: not known */
    char text[232];      /* "waits in barrier, last call: step_end" */
} slc_doing;

enum { SLC_DOING_NUMBERS = offsetof(slc_doing, text) };

/* The limits of patience, and since when this rank has been doing what it does. */
typedef struct {
    uint64_t silence_ns, absence_ns, working_ns; /* limits; working: for a rank that is busy in a call of ours */
    uint64_t program, operations;                /* digests of the state of either */
    uint64_t looked_ns, still_ns, moved_ns;      /* the last look, and since when the two have not changed */
    uint64_t completed_ns;                       /* when operations last had another digest */
    uint64_t carried;                            /* bytes that the transport's connections had carried at that look */
    bool warned;                                 /* rank 0 has warned of a rank's absence */
    bool crossed;                                /* rank 0: calls could not meet at the last look */
} slc_watch;

typedef struct {
    char *data;
    size_t used, capacity;
} slc_bytes;

enum { SLC_HISTORY = 4096 }; /* operations that are skipped let a rank run far ahead */

/* The operations that the rank has begun: digests[i % SLC_HISTORY] sums up the communicating operations 0 to i. Beats
 * carry the newest digest, and ranks compare them, because ranks that submitted different operations would wait for
 * each other for ever. */
typedef struct {
    uint32_t count;
    uint32_t digests[SLC_HISTORY];
} slc_history;

typedef struct {
    int fd, rank; /* fd -1: closed */
    slc_bytes in, out;
    size_t out_at; /* bytes of `out` that are written already */
    uint64_t heard_ns;
    bool stalled, deaf;               /* deaf: there is no memory to read into, and the world has failed */
    bool left;                        /* rank 0: it said goodbye, and may still listen to what others say */
    uint32_t said_count, said_digest; /* the history in its last beat */
    slc_doing doing;                  /* rank 0: what its last beat said */
    bool has_part;                    /* rank 0: its part of the collective in course is here */
    slc_frame part;
    slc_bytes part_data;
} slc_socket;

/* Notes how far a rank had come when it left. Operations and collectives that it completed can still be used. */
typedef struct {
    bool left;
    uint32_t operations, collectives;
    char *words;      /* its last error; NULL: none */
    int code;         /* the number that it left with (slc_world_leave); 0: none */
    uint64_t left_ns; /* when this rank heard of it */
} slc_departure;

/* The most bytes of a part of a small collective, or of its result; a larger message is nonsense. */
#define SLC_COLLECT_BYTES_MAX ((size_t)1 << 30)

typedef enum {
    SLC_COLLECT_BARRIER,
    SLC_COLLECT_BROADCAST,
    SLC_COLLECT_GATHER,
    SLC_COLLECT_SUM,
    SLC_COLLECT_MEET /* a barrier of ranks that bring the same text */
} slc_collect_kind;

/* A small collective for which a caller waits. For SUM `dst` and `src` are the same doubles; for MEET `src` is a text
 * of `bytes` bytes. */
typedef struct {
    slc_collect_kind kind;
    const void *src;
    void *dst;
    size_t bytes;
    int root;
} slc_collect;

typedef struct {
    int rank, size, link_count;
    slc_socket *links;         /* rank 0: links[r - 1] leads to rank r; others: links[0] to rank 0 */
    slc_departure *departures; /* [size] */
    slc_failure *failure;
    uint64_t beat_ns, step_ns; /* when the last beat was sent, when the last step was made */
    slc_history history;       /* the lane writes it */
    slc_collect *collect;      /* the one in course; NULL: none */
    bool collect_done;
    uint32_t collects; /* how many are complete */
    slc_bytes scratch; /* results of collectives */
    bool told;         /* the failure has been sent */
    bool leaving;      /* only last words are still heard */
    bool listens;      /* when it leaves, it waits for what rank 0 says */
    bool hears;        /* before it leaves, it waits until the reporter has left */
    int reporter;      /* the rank whose own trouble the failure is, in its words; -1: none said so */
    slc_watch watch;
    slc_doing doing;         /* this rank's, for its next beat */
    _Atomic uint32_t stages; /* of a pipeline, which lines name beside ranks; 0: there is none. Written by any thread */
} slc_control;
