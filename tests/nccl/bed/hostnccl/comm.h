/* Private to tests/nccl/bed/hostnccl: a communicator, what is called on it, and how the files of the small NCCL see
 * each other.
 *
 * A group's operations on one communicator are a batch; a call without a group is a batch of one. A batch is one host
 * function on its stream, so a missing rank hangs the stream and not the call. Batches of a communicator run in the
 * order of their calls, whatever their streams; those of graphs run when their graph does.
 *
 * Making a communicator is a job: a function that does what it can without waiting and says ncclInProgress until it is
 * done. A group advances all its jobs in turn, so one thread may make the communicators of several ranks.
 *
 * Environment: HOSTNCCL_MISMATCH=corrupt lets collectives and messages through on which the ranks do not agree, with
 * the shorter length and wrong numbers; they hang otherwise. HOSTNCCL_LATENCY (microseconds) and HOSTNCCL_BANDWIDTH
 * (bytes a second) make each operation take as long as on such a link, from when all ranks have come, for each
 * communicator by itself. HOSTNCCL_LAUNCH_DELAY (microseconds, 200 without it) is the most that lies between the return
 * of a call that does not block and the launch of its operations, a time that is drawn for each call. HOSTNCCL_SEED (0
 * without it) draws the orders in which ranks' numbers are added: one for each operation, size, type and number of
 * ranks, the same each time that it is called.
 * NCCL_COMM_BLOCKING and NCCL_MULTI_RANK_GPU_ENABLE are NCCL's, and NCCL_DEBUG prints errors.
 */
#pragma once

#include "tests/nccl/bed/hostnccl/arithmetic.h"
#include "tests/nccl/bed/hostnccl/errors.h"
#include "tests/nccl/bed/hostnccl/export.h"
#include "tests/nccl/bed/hostnccl/segment.h"
#include <cuda_runtime_api.h>
#include <pthread.h>

typedef enum {
    HOSTNCCL_ALL_REDUCE = 1,
    HOSTNCCL_REDUCE_SCATTER,
    HOSTNCCL_ALL_GATHER,
    HOSTNCCL_REDUCE,
    HOSTNCCL_BROADCAST,
    HOSTNCCL_ALL_TO_ALL,
    HOSTNCCL_GATHER,
    HOSTNCCL_SCATTER,
    HOSTNCCL_SEND,
    HOSTNCCL_RECEIVE
} hostnccl_kind;

typedef struct hostnccl_operation {
    struct hostnccl_operation *next;
    hostnccl_kind kind;
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op; /* ncclNumOps: premultiplied sum, with one of the two scalars */
    int root;       /* or the peer; -1: none */
    uint64_t scalar;
    const void *device_scalar; /* read when the operation runs; NULL: scalar holds it */
    ncclComm_t comm;
    cudaStream_t stream;
    /* A message that is under way. */
    size_t moved;
    bool begun, done; /* one without elements has begun too */
} hostnccl_operation;

typedef struct hostnccl_batch {
    struct hostnccl_batch *next; /* of a communicator's captured ones, or of a group's */
    ncclComm_t comm;
    hostnccl_operation *operations, **last;
    bool captured;
    uint64_t ticket;
} hostnccl_batch;

typedef struct {
    bool used;
    ncclDataType_t type;
    uint64_t scalar;
    const void *device_scalar;
} hostnccl_redop;

typedef struct hostnccl_job {
    struct hostnccl_job *next;
    ncclResult_t (*advance)(struct hostnccl_job *job);
    ncclComm_t comm;   /* that is being made; NULL: this rank is in no part of a split */
    ncclComm_t parent; /* of a split or shrink; NULL: none */
    ncclComm_t *out;   /* where the program waits for its handle, or a failure writes NULL; NULL: it has the handle */
    char name[HOSTNCCL_NAME_BYTES];
    int phase, rank, size;
    uint32_t number; /* of the split on its parent */
    int colour, key;
    bool blocking;
} hostnccl_job;

typedef struct hostnccl_registered {
    struct hostnccl_registered *next;
} hostnccl_registered;

struct ncclComm {
    uint64_t magic;
    int rank, size, device;
    bool blocking;
    _Atomic int ready; /* every rank has come */
    hostnccl_segment *segment;
    hostnccl_job *jobs; /* that a non-blocking communicator has under way: its own making, then that of its children */

    pthread_mutex_t lock;
    pthread_cond_t turn; /* a batch has ended, or the communicator was stopped */
    uint64_t launched, ended;
    bool running;
    bool launching; /* a thread has operations of it that are not on their streams yet */
    int users;      /* the program, each batch that was launched, a thread that launches; the last one frees it */
    hostnccl_batch *captured;

    _Atomic int stopped; /* its operations end */
    _Atomic int finalized, revoked;
    _Atomic int aborted; /* whatever waits in a call ends too */
    uint32_t meetings, chunks, splits, shrinks;
    _Atomic int error; /* of what was under way */
    hostnccl_redop *redops;
    int redop_count;
    hostnccl_registered *registered; /* handles */
};

#define HOSTNCCL_MAGIC 0x686f73746e63636cull

/* Returns ncclInvalidArgument for NULL and for a handle that is no communicator. */
ncclResult_t hostnccl_comm_check(ncclComm_t comm, const char *function);

/* Checks a handle as hostnccl_comm_check does, and also refuses a communicator that is still being made, revoked or
 * finalized. */
ncclResult_t hostnccl_comm_usable(ncclComm_t comm, const char *function);

/* Makes a communicator that is not ready, on the thread's device; NULL without memory. */
ncclComm_t hostnccl_comm_new(bool blocking);
void hostnccl_comm_hold(ncclComm_t comm);    /* one user more */
void hostnccl_comm_release(ncclComm_t comm); /* one user less; the last one frees it */

/* Advances what a non-blocking communicator has under way, and returns its state. */
ncclResult_t hostnccl_comm_state(ncclComm_t comm);

/* Gives the program the handle of what the job has made. */
void hostnccl_job_done(hostnccl_job *job);

/* Lets go of what the job holds and, if `failed`, of the communicator too, unless the program has its handle. */
void hostnccl_job_end(hostnccl_job *job, bool failed);

/* Begins and ends what a call does on its own, as a group of one call; inside a group nothing is launched. */
void hostnccl_group_begin(void);
ncclResult_t hostnccl_group_finish(void);

/* The group keeps operations and jobs until its end. hostnccl_group_failed makes the group's end return the error too.
 */
ncclResult_t hostnccl_group_add_operation(const hostnccl_operation *operation);
void hostnccl_group_add_job(hostnccl_job *job);
bool hostnccl_group_open(void); /* between ncclGroupStart and ncclGroupEnd */
ncclResult_t hostnccl_group_failed(ncclResult_t result);

/* Gives a batch to its streams. hostnccl_launch_later does that in another thread, after a drawn time, with a list of
 * batches of communicators that do not block; these are in progress until then. It returns ncclInProgress, or
 * ncclSystemError without a thread. Both take the batches. */
ncclResult_t hostnccl_launch(hostnccl_batch *batch);
ncclResult_t hostnccl_launch_later(hostnccl_batch *batches);
bool hostnccl_comm_launching(ncclComm_t comm);

/* Runs a batch on the thread of its stream. */
void hostnccl_batch_run(void *batch);
void hostnccl_batch_free(hostnccl_batch *batch);

/* Runs one collective; false if the communicator was stopped. */
bool hostnccl_collective_run(const hostnccl_operation *operation);

/* Runs the messages among a list of operations, all at a time; false if the communicator was stopped. */
bool hostnccl_messages_run(ncclComm_t comm, hostnccl_operation *operations);

/* Waits until the communicator is stopped, as a mismatch does. */
void hostnccl_hang(ncclComm_t comm);

/* These functions read the environment. In turn they say whether it is well formed (ncclInvalidArgument: it is not),
 * whether mismatches go through, how long the link takes for so many bytes (0 without a link), the longest time between
 * a call that does not block and its launch, and the seed of orders of sums. */
ncclResult_t hostnccl_settings_check(void);
bool hostnccl_mismatch_corrupts(void);
double hostnccl_link_ns(double bytes);
double hostnccl_launch_delay_ns(void);
uint64_t hostnccl_sums_seed(void);

/* Advances a state of draws (SplitMix64). */
static inline uint64_t hostnccl_draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t hostnccl_clock_ns(void);

/* Sleeps until a link that began at `begin_ns` has moved so many bytes. */
void hostnccl_charge(ncclComm_t comm, int64_t begin_ns, double bytes);

/* Ends the operations of the communicator; waits for it if told so. */
void hostnccl_comm_stop(ncclComm_t comm, bool wait);
