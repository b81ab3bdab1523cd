/* Private to tests/nccl/bed/hostnccl: the memory that the ranks of one communicator share. It is a file in /dev/shm
 * that the communicator's name names; a process maps it once, however many of the ranks are its threads. The name goes
 * as soon as every rank has come, and the memory with the last process that maps it, however that ends. A file whose
 * ranks never all came is removed by the next program that makes a unique id: no living process holds a lock on it. */
#pragma once

#include "plugins/nccl/nccl_abi.h"
#include <stdatomic.h>

enum { HOSTNCCL_RANKS = 1024, HOSTNCCL_NAME_BYTES = 96, HOSTNCCL_SLOTS = 2 };

/* The description of a collective, on which ranks must agree. */
typedef struct {
    uint64_t count;
    int32_t operation, type, redop, root; /* redop: ncclNumOps for each one that a program made */
} hostnccl_description;

/* One rank's row; only this rank writes it. */
typedef struct {
    _Alignas(64) _Atomic uint32_t steps; /* meetings to which it has come */
    _Atomic uint32_t here;               /* its process has mapped the segment */
    int32_t process, device;
    _Atomic uint32_t split_given, split_taken; /* splits whose colour it gave; whose colours it has all read */
    int32_t colour, key;
    hostnccl_description described[2]; /* by the low bit of the meeting's number */
} hostnccl_row;

/* A message's way from one rank to another, in pieces. */
typedef struct {
    _Alignas(64) _Atomic uint32_t sent; /* pieces */
    _Alignas(64) _Atomic uint32_t taken;
    uint64_t message_bytes[HOSTNCCL_SLOTS]; /* the whole message's, with each piece */
} hostnccl_channel;

typedef struct {
    _Atomic uint32_t ranks;             /* 0 until the first rank wrote it */
    _Alignas(64) _Atomic uint32_t bell; /* rises with everything that somebody may wait for */
    _Atomic uint32_t sleepers;
} hostnccl_control;

typedef struct hostnccl_segment {
    struct hostnccl_segment *next;
    char name[HOSTNCCL_NAME_BYTES];
    int file, users, ranks;
    size_t bytes, stage_bytes, piece_bytes;
    hostnccl_control *control;
    hostnccl_row *rows;
    hostnccl_channel *channels; /* [from * ranks + to] */
    char *stages, *pieces;
    bool named;
} hostnccl_segment;

/* Writes a new name: no other has it, and no fork shares it. */
ncclResult_t hostnccl_name_make(char name[HOSTNCCL_NAME_BYTES]);

/* Maps the segment, which the first to come makes. Errors: ncclSystemError; ncclInvalidUsage if others say another
 * number of ranks. */
ncclResult_t hostnccl_segment_join(const char *name, int ranks, hostnccl_segment **out);
void hostnccl_segment_leave(hostnccl_segment *segment);

/* Takes the row of `rank`; ncclInvalidUsage if another one has taken it. */
ncclResult_t hostnccl_segment_take_row(hostnccl_segment *segment, int rank, int device);

/* True if every rank has come; the name is then removed. */
bool hostnccl_segment_complete(hostnccl_segment *segment);

/* The half of a rank's stage that a meeting with this number uses. */
char *hostnccl_segment_stage(const hostnccl_segment *segment, int rank, uint32_t meeting);

char *hostnccl_segment_piece(const hostnccl_segment *segment, int from, int to, uint32_t number);

/* Wakes everybody who sleeps in hostnccl_segment_sleep. */
void hostnccl_segment_ring(hostnccl_segment *segment);

/* To wait for something, read `bell`, look whether it is there, and if not, call this function. It returns when the
 * bell has risen, at the latest after 20 ms. `*spins` counts: the first calls only spin and yield. */
void hostnccl_segment_wait(hostnccl_segment *segment, uint32_t bell, unsigned *spins);
