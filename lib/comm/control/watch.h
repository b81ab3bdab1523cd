/* Which rank waits for which. Each rank notes what its program is doing, and its heartbeats tell rank 0, which fails
 * the world when calls can never meet (MISMATCH, at once) or when a rank that lives is absent for too long (TIMEOUT).
 * All calls come from the communication thread. */
#ifndef SLC_COMM_WATCH_H
#define SLC_COMM_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    SLC_ELSEWHERE,     /* in no call that waits: it computes, loads data, or has gone astray */
    SLC_WORKING,       /* in a call of ours that takes its time, such as planning or saving */
    SLC_IN_COLLECTIVE, /* its part of a small collective is on its way, and the result is not here */
    SLC_IN_OPERATIONS  /* it waits for operations to complete */
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
    char text[236];      /* "waits in barrier, last call: step_end" */
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

typedef struct slc_control slc_control;

/* `timeout_s` 0: a silent rank is an error after 60 s, and one that lives but is absent after 600 s, for it may be
 * loading data. Otherwise either is an error after `timeout_s`. */
void slc_watch_init(slc_watch *watch, uint64_t now_ns, double timeout_s);

/* Fails the world if a rank waits in vain. Rank 0 calls it after each heartbeat. */
void slc_watch_judge(slc_control *control);

#endif
