/* Blocking reads and writes on a non-blocking socket, each with a deadline, and the frame with which every message on a
 * control connection begins. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_WIRE_VERSION = 4, SLC_TOKEN_BYTES = 256 };
/* A newcomer has this long to say who it is. */
#define SLC_STRANGER_PATIENCE_NS UINT64_C(5000000000)

typedef enum {
    SLC_FRAME_BLOB = 1, /* while joining: one rank's part of an exchange, or all parts */
    SLC_FRAME_BEAT,     /* value: operations begun, their digest; to rank 0 followed by an slc_doing (watch.h) */
    SLC_FRAME_COLLECT,  /* to rank 0: a rank's part of a small collective */
    SLC_FRAME_RESULT,   /* from rank 0: the collective's result */
    SLC_FRAME_LEAVE,    /* `rank` left; value: operations and collectives that it completed; root: its code */
    SLC_FRAME_FAIL      /* status and line; rank: the rank in trouble, -1 when the line names it; root: the rank that
                         * reports it itself, -1: none */
} slc_frame_kind;

typedef struct {
    uint32_t kind;
    int32_t rank;   /* the rank that it is about */
    int32_t status; /* of FAIL and BLOB; COLLECT: the collective's kind */
    int32_t root;   /* of COLLECT, LEAVE and FAIL */
    uint32_t value[2];
    uint64_t bytes; /* how many follow the frame */
} slc_frame;

/* Write or read all `bytes`. Errors: TIMEOUT at `deadline_ns`, PEER when the other end has closed, IO, SYSTEM. The
 * error line says no more than that. */
sluice_status slc_wire_write(int fd, const void *data, size_t bytes, uint64_t deadline_ns);
sluice_status slc_wire_read(int fd, void *data, size_t bytes, uint64_t deadline_ns);

/* True if two secrets are equal. The time that this takes does not tell where they differ. */
bool slc_wire_equal(const void *a, const void *b, size_t bytes);

/* Waits until `fd` is ready for `events` (poll's) or the deadline. */
sluice_status slc_wire_wait(int fd, short events, uint64_t deadline_ns);
