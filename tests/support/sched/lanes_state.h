/* The state of a plan that runs on two lanes (two_lanes.h). */
#pragma once

#include "lib/plan/plan.h"
#include "tests/support/plan/random_job.h"

enum { TEST_BUFFERS = 512, TEST_CLAIMS = 4096, TEST_ITEMS = 2048, TEST_PASSES = 4, TEST_INDICES = 32 };
enum { GARBAGE = -1, STEP_TAGS = 1000, REDUCED_TAG = 500 };
enum { COMPUTE, COMMUNICATION, LANES };

typedef struct {
    uint32_t item, pass;
} lanes_place;

typedef struct {
    uint64_t step; /* number of the step, plus 1 */
    uint64_t blocks;
} lanes_count;

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    const slc_program *program;
    bool evaluate;
    test_dice dice;
    uint32_t of_unit[SLC_BUFFER_KINDS][TEST_UNITS][TEST_INDICES], of_job[SLC_BUFFER_KINDS][TEST_ACTIVATIONS];
    bool resident[TEST_BUFFERS];
    int64_t tag[TEST_BUFFERS][TEST_BLOCKS]; /* GARBAGE; -2 - item: that item is writing it */
    int64_t own[TEST_UNITS][TEST_BLOCKS];   /* version of the owned part of the values */
    lanes_count reduced[TEST_UNITS];        /* blocks of the unit's last reduction, in the last step that had one */
    uint64_t told[TEST_UNITS];              /* onebit: steps whose agreement may know about non-finite gradients */
    uint64_t agreed;                        /* steps that have agreed */
    const bool *left_out; /* [left_out_steps * layers] that steps leave out, step s those of s modulo left_out_steps;
                             NULL: none */
    uint32_t left_out_steps;
    uint64_t base;                                                 /* steps trained before this run of the program */
    uint32_t active[TEST_CLAIMS], active_count, made[TEST_CLAIMS]; /* claims that are held; the pass that made each */
    lanes_place lane[LANES][TEST_PASSES * TEST_ITEMS];
    uint32_t length[LANES], begun[LANES], over[LANES];
    uint32_t before_drain;                   /* items of the compute lane */
    uint32_t slots_end[TEST_PASSES];         /* the pass's last slot, as a position in its lane */
    uint32_t place[TEST_PASSES][TEST_ITEMS]; /* position in its lane, counted from 1; 0: left out */
    uint32_t passes;                         /* without the drain */
    uint64_t peak;
    char error[200]; /* the first fault; empty: none */
} two_lanes;
