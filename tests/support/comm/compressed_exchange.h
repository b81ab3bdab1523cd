/* Compressed exchanges of groups of tensors, for tests. Every rank simulates all ranks in its own process, in other
 * pieces and one tensor at a time, with the kernels that compress_test.c compares with float64. The exchange must give
 * the same packets and residues bit for bit. */
#pragma once

#include "tests/support/comm/forked_ranks.h"

/* One rank's residues. */
typedef struct {
    void *worker_memory, *server_memory;
    slc_residue *workers, *servers;
} residues;

/* This rank's buffers in the arena, and all ranks' in the simulation. */
typedef struct {
    slc_compress_group group;
    uint64_t bytes; /* of all packets together */
    char *packets, *results;
    residues own, all[RANKS_MAX]; /* of `own` only the servers' are used */
    char *simulated[RANKS_MAX], *expected;
    float **momentum, *gradient;
    int exchanges;
} exchange;

residues residues_create(const slc_compress_group *group);
void residues_destroy(residues *r);

/* Draws tensors of all sizes, empty ones among them; each may have one scale for every few elements. */
slc_compress_shape draw_shape(uint64_t *chance, int size, uint64_t most);

/* Bytes of the arena that an exchange of the group takes. */
uint64_t exchange_bytes(const slc_comm *comm, const slc_compress_group *group);

exchange exchange_create(const slc_comm *comm, uint32_t count, const slc_compress_shape *shapes, char **arena);
void exchange_destroy(exchange *x);

/* Prepares the next exchange, up to the packets of this rank. */
void exchange_prepare(exchange *x, sluice_stream *stream, int rank, uint64_t seed);

slc_op exchange_op(const exchange *x);

/* Checks the results and the residues that this rank keeps. The gaps between packets belong to nobody. */
void exchange_check(const exchange *x, int rank);

/* The results of this exchange become the momenta of the next one. */
void exchange_decompress(exchange *x);

/* Bytes that this rank's messages carry in one exchange: (V/32) 2 (N-1)/N for V padded bytes, and the scales. */
uint64_t exchange_formula(const slc_compress_group *group);
