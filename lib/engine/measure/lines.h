/* Measures what the link carries. Private to lib/engine/measure. */
#pragma once

#include "lib/engine/measure/trains.h"

enum {
    SLC_RUN_AHEAD_LEAST = 256 << 10, /* of the operations that tell a line on devices that run ahead, each of which is
                                        four times the one before */
    SLC_RUN_AHEAD_MOST = 64 << 20,
    SLC_RUN_MOST = 16 << 20 /* and on the host */
};

/* Measures the lines of reductions and gathers, between several ranks, once what the link lets pass above its sustained
 * rate is used up. `operation_s` (lib/plan/times.h) is taken out of what operations take. Collective; the same figures
 * on every rank. */
sluice_status slc_lines_measure(slc_measure_lab *lab, double operation_s, slc_link_line *reduce_scatter,
                                slc_link_line *all_gather);

/* Launches each kernel of operations, and makes each connection of the transport, while nothing else is under way; only
 * on devices that run ahead. A first launch may wait for all work of the GPU, and a collective among that for another
 * rank. */
sluice_status slc_lines_warm_up(slc_measure_lab *lab);

/* The smallest run that is long enough for the link: it reaches 95 % of the bandwidth. */
uint64_t slc_lines_enough_bytes(const slc_measure_lab *lab, const slc_link *link);
