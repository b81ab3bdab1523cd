/* Random block collectives for tests, and a plain oracle that does in one process what they do to all ranks' arenas. */
#pragma once

#include "lib/comm/comm.h"

/* An operation, made from the seed alone, so that every rank makes the same. */
typedef struct {
    slc_op op;
    uint64_t src_at, dst_at; /* bytes in the arena */
    slc_rows rows;           /* of operations on rows; the user sets its `lists` and op.rows */
    uint64_t lists_seed;
} random_op;

enum { MOST_ROWS = 3000 };

/* The arena is cut in places in which operations work. The last ones are for integers, whose sums must not overflow,
 * and for bfloat16, because other numbers' bytes need not be finite ones in it. */
enum { OPERATIONS = 6, INTEGERS = OPERATIONS, NARROW, PLACES, SMALL_PLACE = 128 << 10, LARGE_PLACE = 4 << 20 };

random_op random_op_draw(uint64_t *chance, int size, int place, uint64_t place_bytes);

/* Carries the operation out on one block, in all ranks' arenas, by plain loops. */
void random_op_block(const random_op *made, char **arenas, int size, uint64_t block);

/* Bytes that a rank sends. */
uint64_t random_op_bytes(const slc_op *op, int rank, int size);

/* Fills a rank's arena as it is before the operations. */
void random_op_fill(char *arena, uint64_t place_bytes, uint64_t seed, int rank);
