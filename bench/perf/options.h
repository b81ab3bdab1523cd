/* The command line of `sluice perf`: nccl-tests' flags, and flags for what nccl-tests cannot do. */
#pragma once

#include "lib/comm/comm.h"

#include <stdbool.h>

/* A collective as the user names it. */
typedef struct {
    const char *name;
    slc_op_kind kind;
    bool sums, gather_after, ring; /* slc_perf_config */
} slc_perf_operation;

enum { SLC_PERF_OPTIONS_MAX = 32 };

typedef struct {
    const slc_perf_operation *operation;
    const char *device, *sums;
    const char *path, *throttle, *json; /* "", "", NULL: not given */
    uint64_t least_bytes, most_bytes, step_bytes, block_bytes;
    double factor, timeout_s;
    uint32_t iterations, warm_up, checks, ranks, ahead; /* ranks 0: as the launcher says */
    bool beside, in_place, copy, on_gpu;
    bool fp32, bf16;   /* at least one is true */
    bool sum, average; /* at least one is true; of what does not sum: `sum` alone */
    const char *typed[SLC_PERF_OPTIONS_MAX];
} slc_perf_options;

/* Reads the command line. On a wrong option argp prints the error and exits. Strings stay argv's. */
void slc_perf_options_parse(int argc, char **argv, slc_perf_options *out);

/* The size after `size`, of which `least` is the smallest that is not 0. */
uint64_t slc_perf_next_size(const slc_perf_options *options, uint64_t size, uint64_t least);
