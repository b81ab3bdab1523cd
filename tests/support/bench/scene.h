/* Records made in memory, call by call, as the shim makes them, and what the comparison of ranks must say of them. */
#pragma once

#include "bench/nccl/watch/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { MOST_RANKS = 4, MOST_ROWS = 4, PER_THREAD = 2, FLOAT32 = 7, INT8 = 0, SUM = 0, MAX = 2, SECONDS = 1000000000 };

typedef struct {
    slc_nccl_process processes[MOST_RANKS];
    slc_record_communicator rows[MOST_RANKS][MOST_ROWS];
    uint64_t peers[MOST_RANKS][MOST_ROWS][2][MOST_RANKS]; /* sends and receives so far */
    double quiet_s[MOST_RANKS];
    int size;
    int64_t now_ns;
    slc_nccl_findings found;
} scene;

typedef struct {
    unsigned operation;
    uint64_t count;
    unsigned dtype, redop;
    int peer;
    uint64_t stream;
    unsigned group, flags;
} call;

static const call sum_of_64 = {SLC_RECORD_ALL_REDUCE, 64, FLOAT32, SUM, -1, 1, 0, 0};

void scene_begin(scene *s, int size);
void scene_end(scene *s);

/* Rank i of the scene gets the next row, in which it has this rank. Returns the row. */
unsigned scene_join(scene *s, int i, uint64_t key, int rank, int size);

void scene_join_all(scene *s, uint64_t key);

/* NCCL does nothing for such a call, on whichever ranks it is made. */
bool is_empty_call(unsigned operation, uint64_t count);

/* A call of one rank, of all ranks, and a sum by all ranks some times. */
void scene_call(scene *s, int i, unsigned row_number, call c);
void scene_all_call(scene *s, unsigned row, call c);
void scene_all_call_times(scene *s, unsigned row, int times);

/* Drops the oldest entries of a rank. */
void scene_lose(scene *s, int i, size_t count);

/* Makes all ranks quiet: they have said nothing for so long. */
void scene_all_quiet(scene *s, double seconds);

/* Compares the ranks; returns the number of findings. */
size_t scene_look(scene *s);

/* Compares them, and fails unless there is one finding, of this kind and with this text in it, or none. */
void scene_expect(scene *s, slc_nccl_finding_kind kind, const char *text);
void scene_expect_nothing(scene *s);

/* Begins a scene of four ranks of one communicator that called three all-reduces. */
void scene_begin_with_three(scene *s);
