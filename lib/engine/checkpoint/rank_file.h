/* A rank's file of a checkpoint while it is made: everything that the rank owns, and where that lies in memory. Private
 * to lib/engine. */
#pragma once

#include "lib/engine/checkpoint/folder.h"
#include "lib/engine/checkpoint/manifest.h"
#include "lib/engine/checkpoint/shard.h"
#include "lib/engine/runtime.h"

/* The memory that the elements of a range come from and go to. */
typedef struct {
    uint64_t range; /* in the file's table */
    uint64_t offset;
    const void *data;
    sluice_dtype dtype;
    uint32_t last_slot; /* the first update that changes it comes after this slot; SLC_NONE: none does */
} slc_rank_range;

typedef struct {
    sluice_runtime *rt;
    slc_checkpoint_path path;
    slc_shard shard;
    slc_rank_range *order; /* the ranges in the order in which updates change them */
    uint32_t *last_slots;  /* the last_slot of each in `order` */
    float *room;           /* of the host, for elements that are no fp32 in memory it reads; else NULL */
    int file;              /* -1: not open */
    sluice_status status;  /* of writing it */
    slc_manifest_file wrote;
    atomic_bool gives_up; /* set by any thread: the file is wanted no more */
} slc_rank_file;

/* Lists what rank `rt` owns. `out` is zeroed, and to be freed after failures too. Errors: MEMORY. */
sluice_status slc_rank_file_list(sluice_runtime *rt, const char *folder, slc_rank_file *out);
void slc_rank_file_free(slc_rank_file *file);

/* Returns true if another thread can write the file while steps run. A device's memory is read by the caller's thread,
 * and the arrays of a compressed optimizer change with every exchange. */
bool slc_rank_file_goes_behind(const slc_rank_file *file);

/* Makes the file and writes all of it; close then waits until it has reached the disk. Each is run once, in this order.
 * write tells rt->writer which ranges are written. Both return the status of the file so far. After success
 * `wrote` has its length and checksum. */
sluice_status slc_rank_file_write(slc_rank_file *file);
sluice_status slc_rank_file_close(slc_rank_file *file);
