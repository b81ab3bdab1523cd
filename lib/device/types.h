/* The structs of devices, streams, events and memory, for callers (device.h) and for kinds of devices (ops.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { SLC_DEVICE_HOST, SLC_DEVICE_CUDA } slc_device_kind;

typedef struct slc_device slc_device;

/* An ordered queue of work, which kernels take. The work of one stream runs in order. The public face shows its name
 * alone. */
typedef struct sluice_stream sluice_stream;
struct sluice_stream {
    slc_device *device;
    uint32_t threads; /* threads that a host kernel may use; at least 1 */
    bool first;       /* a GPU prefers its kernels to those of other streams */
    void *handle;     /* belongs to the device */
};

typedef struct {
    void *handle; /* NULL on the host: always complete */
} slc_event;

/* Memory of the host that the device reads and writes in place, and that copies to and from the device may use. */
typedef struct {
    void *base; /* aligned to 64 bytes; what it holds at first is undefined */
    size_t bytes;
    slc_device *device;
} slc_pinned;

/* A piece of device memory that other processes of this host can map. A process that is forked from this one has no
 * part in it: it reads what it created, but what it writes is its own, and it may not touch what it mapped. */
typedef struct {
    void *base;   /* zeroed; aligned to pages, on a GPU to 256 bytes */
    size_t bytes; /* the size asked for, rounded up to pages */
    int fd;       /* descriptor to hand to peers; -1 if it cannot be shared */
    bool kept;    /* something that cannot be stopped may still write there: destroying it leaves it mapped */
    slc_device *device;
} slc_segment;

/* The GPU of a device; all of it is empty or 0 on the host. */
typedef struct {
    char name[256];      /* as its driver says it */
    uint32_t number;     /* as SLUICE_CUDA_DEVICE takes it */
    uint32_t capability; /* ten times the compute capability: 90 is 9.0 */
    uint32_t processors; /* multiprocessors */
    uint64_t memory_bytes, free_bytes;
} slc_device_facts;

/* A kernel that was queued on a GPU, and its share of a multiprocessor. */
typedef struct {
    const char *kernel;    /* the name that errors give it; it stays valid */
    bool known;            /* whether the rest is known: not for a library's kernels, copies and fills */
    const void *function;  /* tells kernels of one name apart; not to be called */
    uint64_t blocks;       /* of its grid */
    uint32_t threads;      /* of a block */
    uint64_t shared_bytes; /* of shared memory that a block takes */
    bool compiled;         /* whether the rest is known: not if the GPU is emulated */
    uint32_t registers;    /* of a thread */
    uint64_t local_bytes;  /* of memory that a thread has for what does not fit its registers, and for its arrays */
    double occupancy;      /* share of the threads that a multiprocessor can hold at once */
} slc_kernel_launch;
typedef void slc_launch_watch(void *context, const slc_kernel_launch *launch);
