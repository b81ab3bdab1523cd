/* Mixtures of sdp and fsdp: as many units as the memory holds become sdp. Private to sched. One thread calls these. */
#pragma once

#include "sched/scheduler.h"

/* Returns true if any unit is free. */
bool slc_strategies_free(const slc_job *job, const slc_strategy *strategies);

/* Fills the free units (of in->strategies): the largest number of them for which the arena stays within `limit` becomes
 * sdp, the others fsdp. Units whose gathers cost most for each byte that sdp keeps come first. If no number fits, the
 * number that needs the least memory is taken. *arena_bytes is what the result needs. When in->work has spent
 * `until_s`, the search ends; if no number has fitted by then, *arena_bytes is UINT64_MAX. */
sluice_status slc_mixed_choose(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t limit, double until_s,
                               slc_strategy *out, uint64_t *arena_bytes);
/* Ranks the free units (of `strategies`) in the order in which they become sdp. `out` has room for [units]; *count is
 * how many they are. */
sluice_status slc_mixed_rank(const slc_job *job, const slc_strategy *strategies, uint32_t *out, uint32_t *count);
/* Takes the number of sdp units that needs the least memory, if that is at most `limit`; else *arena_bytes is
 * UINT64_MAX. Numbers that are not tried until `until_s` count as too large. */
sluice_status slc_mixed_smallest(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t limit,
                                 double until_s, slc_strategy *out, uint64_t *arena_bytes);
