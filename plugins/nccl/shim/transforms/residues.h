/* Remembers which errors of compression belong to which buffer, and where they lie. A buffer is known by its address
 * and its count. Errors are worth keeping only if the same buffer means the same parameters in each step: a buffer that
 * is used more than once in a step has none, and one that was not used for 8 steps (a program that has rebuilt its
 * buckets) loses its place. Private to plugins/nccl/shim. One thread at a time.
 *
 * Nobody says where a step begins. It is taken to begin with the call on its `first` buffer, the first one of all; if
 * that buffer comes no more, with another one. Until this is noticed errors may be forgotten. Ranks need not agree on
 * that: a packet has the same size whatever its rank forgot. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SLC_SHIM_RESIDUES = 1024, SLC_SHIM_RESIDUE_STEPS = 8 };

typedef struct {
    const void *address;
    uint64_t count;
    uint64_t place, bytes; /* in the memory for errors; bytes 0: the row is free */
    uint64_t step;         /* of its last use */
    uint32_t uses, before; /* in that step, and in the one before it */
} slc_shim_residue_row;

typedef struct {
    slc_shim_residue_row row[SLC_SHIM_RESIDUES];
    uint64_t limit;              /* bytes for errors; set by whoever zeroes the rest */
    uint64_t peak;               /* bytes in use, holes included, at most */
    uint64_t step, calls, began; /* began: the call with which the step began */
    uint64_t length;             /* calls of the step before; 0: not known */
    uint32_t rows;               /* that may be in use */
    uint32_t first;              /* row, once there was a call */
    uint32_t different;          /* buffers used in this step */
} slc_shim_residues;

/* Gives the place of a buffer's errors, `bytes` of them. *forget: they are to be zeroed first. False: the buffer has no
 * place, for the memory is full of others in use. */
bool slc_shim_residues_find(slc_shim_residues *residues, const void *address, uint64_t count, uint64_t bytes,
                            uint64_t *place, bool *forget);
