/* Who waits for whom. Each rank notes what its program is doing; its heartbeats tell rank 0, which ends the world when
 * calls can never meet (MISMATCH, at once) or when a rank that lives is absent for too long (TIMEOUT). All calls come
 * from the communication thread. */
#ifndef SLC_COMM_WATCH_H
#define SLC_COMM_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    SLC_ELSEWHERE,     /* in no call that waits: it computes, loads data, or has gone astray */
    SLC_WORKING,       /* in a call of ours that takes its time: planning, saving */
    SLC_IN_COLLECTIVE, /* its part of a small collective is on its way, the result is not here */
    SLC_IN_OPERATIONS  /* it waits for operations to complete */
} slc_place;

/* Where a rank stands. A heartbeat to rank 0 carries it, the text as long as it is. Counts are modulo 2^32. */
typedef struct {
    int32_t place;       /* slc_place */
    uint32_t collective; /* SLC_IN_COLLECTIVE: its number */
    uint32_t begun;      /* communicating operations that the communication thread has begun */
    uint32_t needed;     /* SLC_IN_OPERATIONS: it waits until so many of them are complete */
    uint8_t halted;      /* no further operation begins before the program acts */
    uint8_t one_thread;  /* the program waits in the thread that makes all of its calls */
    uint8_t reserved[2];
    uint32_t still_ms;   /* how long the program has been standing there, without another call */
    uint32_t unmoved_ms; /* how long no operation has made progress either */
    char text[236];      /* "waits in barrier, last call: step_end" */
} slc_doing;

enum { SLC_DOING_NUMBERS = offsetof(slc_doing, text) };

/* How long is too long, and since when this rank stands where it does. */
typedef struct {
    uint64_t silence_ns, absence_ns, working_ns; /* working: a rank that is busy in a call of ours */
    uint64_t program, operations;                /* digests of where either stands */
    uint64_t looked_ns, still_ns, moved_ns;      /* since when they have been that */
    bool warned;                                 /* rank 0: of somebody's absence */
    bool crossed;                                /* rank 0: calls could not meet when it looked last */
} slc_watch;

typedef struct slc_control slc_control;

/* `timeout_s` 0: a silent rank is an error after 60 s, one that lives but is absent after 600 s, for it may be loading
 * data. Else either is after that time. */
void slc_watch_init(slc_watch *watch, uint64_t now_ns, double timeout_s);

/* Rank 0, after each heartbeat: fails the world if somebody waits in vain. */
void slc_watch_judge(slc_control *control);

#endif
