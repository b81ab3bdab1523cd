/* The file in which the NCCL shim records what one process asks of NCCL; docs/formats.md describes it for other
 * readers. The shim maps it shared and writes it; `sluice nccl` reads it, while the process runs or after it died.
 * Nothing in it is ever locked, and no thread tends it.
 *
 * The file holds, in this order: a header of SLC_RECORD_HEADER_BYTES; the rows of communicators; the table of modules;
 * a ring of entries; if SLUICE_SHIM_TIME is set, as many times. All numbers are little endian. Times are nanoseconds
 * of CLOCK_MONOTONIC. Words that more than one thread or process may touch at a time are written and read with C11
 * atomics.
 *
 * A rank is a communicator's row. Rows of different files that have the same key are ranks of one communicator. */
#pragma once

#include <stdint.h>

/* The name of a process's file, in SLUICE_SHIM_DIR: "HOST-NAMESPACE-PID-STARTED.nccl", the last three as in the header.
 */
#define SLC_RECORD_SUFFIX ".nccl"
#define SLC_RECORD_MAGIC "SLNCCL\1\0"

enum {
    SLC_RECORD_VERSION = 1,
    SLC_RECORD_HEADER_BYTES = 4096,
    SLC_RECORD_COMMUNICATORS = 512, /* rows; later communicators are counted in the header and not recorded */
    SLC_RECORD_MODULES = 64,        /* rows; callers in later modules are recorded without a module */
    SLC_RECORD_NO_COMMUNICATOR = 0xffff,
    SLC_RECORD_NO_MODULE = 0xff,
};

/* The operations of entries. Those up to SPLIT are collectives: each rank of the communicator calls the same ones in
 * the same order, and they are numbered and enter the rolling hash. SEND and RECEIVE are numbered by the same counter,
 * but do not enter the hash; in the place of the address that they lack they have their own number among the sends to
 * (receives from) that peer, from 1, so that the two ends are matched after the ring has come round too (0: not
 * counted). The others, and collectives of no elements, which NCCL discards before ranks meet, are not counted and
 * carry the number of the communicator's last operation.
 *
 * X(name, what `sluice nccl` calls it): the first is 1. docs/formats.md has the list, which docs_check compares. */
#define SLC_RECORD_OPERATIONS(X)                                                                                       \
    X(ALL_REDUCE, "all_reduce")                                                                                        \
    X(REDUCE_SCATTER, "reduce_scatter")                                                                                \
    X(ALL_GATHER, "all_gather")                                                                                        \
    X(REDUCE, "reduce")                                                                                                \
    X(BROADCAST, "broadcast") /* ncclBcast too */                                                                      \
    X(ALL_TO_ALL, "all_to_all")                                                                                        \
    X(GATHER, "gather")                                                                                                \
    X(SCATTER, "scatter")                                                                                              \
    X(SPLIT, "split") /* of the parent; count: the colour, peer: the key; in the hash both count as 0 and -1 */        \
    X(SEND, "send")                                                                                                    \
    X(RECEIVE, "receive")                                                                                              \
    X(SHRINK, "shrink") /* of the parent, by the ranks that stay; count: the number of excluded ranks */               \
    X(GROW, "grow")                                                                                                    \
    X(INIT, "init") /* the row's creation; count: the number of ranks */                                               \
    X(FINALIZE, "finalize")                                                                                            \
    X(DESTROY, "destroy")                                                                                              \
    X(ABORT, "abort")                                                                                                  \
    X(REVOKE, "revoke")                                                                                                \
    X(WINDOW, "window") /* ncclCommWindowRegister, collective, but not numbered */

typedef enum {
    SLC_RECORD_NO_OPERATION, /* of no entry */
#define SLC_RECORD_OPERATION(name, text) SLC_RECORD_##name,
    SLC_RECORD_OPERATIONS(SLC_RECORD_OPERATION)
#undef SLC_RECORD_OPERATION
        SLC_RECORD_OPERATION_COUNT
} slc_record_operation;

/* An entry's redop is NCCL's number of a built-in operator, or this for one that the program made. */
enum { SLC_RECORD_CUSTOM_REDOP = 0xfe, SLC_RECORD_NO_REDOP = 0xff };

/* Bits of an entry's flags. */
enum {
    SLC_RECORD_GROUPED = 1,  /* called between ncclGroupStart and ncclGroupEnd; `group` says which */
    SLC_RECORD_CAPTURED = 2, /* the stream was being captured into a graph */
    SLC_RECORD_FAILED = 4,   /* the call returned an error; set after the entry was committed */
    SLC_RECORD_FUSED = 8,    /* the shim sent it together with others of its group */
    SLC_RECORD_COMPRESSED = 16,
    SLC_RECORD_INSIDE = 32, /* reported by NCCL's profiler plugin: no addresses, no caller */
};

/* One call, 64 bytes, written before the call is passed on. Entry n of the process (counted from 0) lies at place
 * n % entry_count, and is committed when its sequence is the low 32 bits of n + 1: the writer first stores 0 there,
 * then fills the rest, then stores the sequence with release order. A reader that sees the same sequence before and
 * after it copied an entry has read it whole. (Where a thread is interrupted while it writes, until others have gone
 * once round the ring, the later one finds the place taken and its entry is left out.) */
typedef struct {
    uint32_t sequence;
    uint32_t number; /* low 32 bits of its number on the communicator, counted from 1 */
    int64_t time_ns;
    uint64_t count; /* elements, as the call's argument says */
    /* Low 48 bits of the send and the receive address; above the first one the communicator's row, above the second one
     * the thread, numbered from 1 in the order of their first calls (0: the 65535th or a later one). */
    uint64_t send_communicator;
    uint64_t receive_thread;
    /* The stream's low 48 bits, then operation (8 bits) and dtype (NCCL's number, 8 bits; 0xff: none). */
    uint64_t stream_operation_dtype;
    /* The caller's offset in its module (48 bits), then the module's row (8 bits) and redop (8 bits). */
    uint64_t caller_module_redop;
    int32_t peer;         /* the root, the other rank, or -1 */
    uint32_t group_flags; /* the group's number in the process (24 bits; 0: none), then flags (8 bits) */
} slc_record_entry;

#define SLC_RECORD_LOW48 0xffffffffffffull

/* The time at which an entry's operation ran, by events around it on its stream. It lies at the entry's place, and is
 * valid if the sequences are equal. Written when the shim, in a later call, finds the events done. */
typedef struct {
    uint32_t sequence; /* stored last, with release order */
    uint32_t unused;
    int64_t begin_ns, end_ns; /* the device's times, put on the host's clock */
} slc_record_time;

typedef enum {
    SLC_RECORD_ROW_FREE,
    SLC_RECORD_ROW_CREATING, /* the call that makes it has not returned, or is in progress */
    SLC_RECORD_ROW_READY,
    SLC_RECORD_ROW_FINALIZED,
    SLC_RECORD_ROW_DESTROYED,
    SLC_RECORD_ROW_ABORTED,
    SLC_RECORD_ROW_FAILED /* the call that makes it returned an error */
} slc_record_row_state;

/* Why calls passed unchanged although a transform was asked for. X(name, what `sluice nccl` and docs/formats.md call
 * it): the first is 0. */
#define SLC_RECORD_REASONS(X)                                                                                          \
    X(CAPTURED, "captured")                                                                                            \
    X(REGISTERED, "a window")                     /* the communicator has or had one */                                \
    X(NONBLOCKING, "not a blocking communicator") /* or it shares resources */                                         \
    X(SETTINGS, "settings differ")                /* between the ranks */                                              \
    X(KIND, "another operation, dtype or operator")                                                                    \
    X(SIZE, "size")                                                                                                    \
    X(ALONE, "alone")             /* nothing else of its kind in the group, or no group */                             \
    X(STAGING, "no staging left") /* SLUICE_SHIM_STAGING does not hold it */                                           \
    X(WARMING, "warming up")      /* SLUICE_SHIM_COMPRESS_AFTER */                                                     \
    X(BROKEN, "failed before")    /* a transform's call */

typedef enum {
#define SLC_RECORD_REASON(name, text) SLC_RECORD_PASS_##name,
    SLC_RECORD_REASONS(SLC_RECORD_REASON)
#undef SLC_RECORD_REASON
        SLC_RECORD_PASS_REASONS = 12 /* of a row: room for two more */
} slc_record_pass_reason;

/* One communicator of the process; 256 bytes. Rows are never used again. */
typedef struct {
    uint32_t state; /* slc_record_row_state */
    int32_t rank, size, device;
    /* The name that all ranks have for the communicator, never 0. It is a hash of the unique id's bytes (the first id's
     * if there are several). For a communicator made by split it is a hash of the parent's key, the parent's number of
     * collectives so far (not its number of operations, since sends and receives differ between ranks) and the colour;
     * for one made by shrink, of the parent's key, its number of shrinks so far and the excluded ranks, in whatever
     * order. */
    uint64_t key, parent_key;
    uint64_t calls;       /* operations called, send and receive included, collectives of no elements not */
    uint64_t returned;    /* of them, those whose call has returned */
    uint64_t collectives; /* of `calls`, those that entered the hash */
    /* After each collective: hash = hash * SLC_RECORD_HASH_STEP + slc_record_hash_term(…), modulo 2^64, so that a
     * reader can take the latest entries back out of it. It begins as key. A call that failed stays in it. Values that
     * an operation lacks enter as the entry has them: dtype 0xff, redop SLC_RECORD_NO_REDOP, root -1. */
    uint64_t hash;
    uint64_t done; /* with SLUICE_SHIM_DONE: number of the last operation that a stream has finished */
    uint64_t bytes_passed, bytes_compressed, bytes_sent_compressed; /* by the transforms, of this rank */
    uint64_t fused_calls, fused_groups, compressed_calls;
    uint32_t passed[SLC_RECORD_PASS_REASONS];
    uint32_t nonblocking, transforms; /* transforms: bit 0 fuse, bit 1 compress are on */
    /* With SLUICE_SHIM_DONE or _TIME: the number of the first operation that NCCL took and has not reported as
     * launched, so that no stream writes that it is finished; 0: none. */
    uint64_t unlaunched;
    uint64_t unused[9];
} slc_record_communicator;

#define SLC_RECORD_HASH_STEP 0x9e3779b97f4a7c15ull /* odd, so it has an inverse */

/* A module that called NCCL: an executable or a library, by its path. */
typedef struct {
    uint64_t base; /* where it was loaded */
    char path[248];
} slc_record_module;

typedef enum { SLC_RECORD_RUNNING = 1, SLC_RECORD_ENDED /* by exit or return from main */ } slc_record_state;

/* The beginning of the file. */
typedef struct {
    char magic[8];
    uint32_t version, header_bytes, entry_bytes, entry_count;
    uint64_t communicators_at, modules_at, entries_at, times_at; /* offsets in the file; times_at 0: none */
    uint64_t file_bytes;
    int64_t pid;
    uint64_t started;      /* of the process, in clock ticks since the machine's boot (/proc/PID/stat, field 22) */
    int64_t first_call_ns; /* CLOCK_MONOTONIC */
    int64_t realtime_minus_monotonic_ns;
    uint64_t entries; /* entries begun since the process's first call; more than entry_count: the oldest are gone */
    uint32_t state;   /* slc_record_state */
    uint32_t communicators; /* rows in use */
    uint32_t communicators_lost, modules;
    uint32_t nccl_version;                                            /* as ncclGetVersion says; 0: not known */
    uint32_t done_is_written;                                         /* SLUICE_SHIM_DONE */
    uint64_t fuse_bytes, compress_bytes, staging_limit, staging_peak; /* settings of the transforms; 0: off */
    uint64_t times_lost; /* operations whose events were not there or came too late for their entry, or that
                          * the program never asked NCCL about */
    int32_t launch_rank, launch_size; /* RANK and WORLD_SIZE of the environment (or Slurm's, Open MPI's); -1: not set */
    char host[64];
    char boot_id[40];       /* of the machine, by slc_boot_id */
    char command[512];      /* the program's arguments, blanks between them, cut */
    char nccl_path[512];    /* the real library */
    uint64_t pid_namespace; /* in which `pid` counts: the inode of /proc/self/ns/pid; 0: not known */
    int64_t left_at_s; /* when the process ended well and left its communicators to its end, in seconds since 1970; 0:
                        * it did not. Others may wait for it, so the file stays for some minutes */
} slc_record_header;

/* The part of a collective that all ranks must agree on, as one number. `root` is -1 if there is none. */
static inline uint64_t slc_record_hash_term(unsigned operation, uint64_t count, unsigned dtype, unsigned redop,
                                            int root)
{
    uint64_t z = count * 0xbf58476d1ce4e5b9ull +
                 ((uint64_t)operation << 56 | (uint64_t)dtype << 48 | (uint64_t)redop << 40 | (uint32_t)root);
    z = (z ^ z >> 30) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

_Static_assert(sizeof(slc_record_entry) == 64, "an entry is one cache line");
_Static_assert(sizeof(slc_record_time) == 24, "times are packed");
_Static_assert(sizeof(slc_record_communicator) == 256, "a row is four cache lines");
_Static_assert(sizeof(slc_record_module) == 256, "a row is 256 bytes");
_Static_assert(sizeof(slc_record_header) <= SLC_RECORD_HEADER_BYTES, "the header has its own page");
