/* The joint plan: strategies, recomputation and schedule together, the fastest member of a search by simulation. Its
 * members are every scheduler on every uniform strategy that fits, the mixtures of `mixed`, choices that grow, and with
 * a solver the slot model's answer made real (runs of blocks, packed, searched locally). So no baseline is ever better
 * than the result. */
#pragma once

#include "sched/joint/joint_request.h"

/* The effort of a request in nominal seconds. If it gives none: 0.9 up to 48 layers, rising to 4.5 from 126 layers on,
 * twice that if recomputation is free. */
double slc_joint_effort_s(const slc_joint_request *request);

/* Makes the joint plan. Where steps draw the layers that they keep (slc_times.keeps) it searches twice, each time with
 * the whole effort, and takes the plan of the shorter mean step: first as if every step kept all layers, then by the
 * mean over drawn steps, from that plan on; there is no bound then. Everything keeps to the effort but one plan of fsdp
 * and, if nothing else fits, that of least memory. The search for the latter keeps its share of the effort
 * (slc_least_memory_share_s) until there is a plan. Errors: BUDGET (no member fits; *least, if not NULL, is the
 * smallest arena seen), MEMORY, INTERRUPTED (cancelled). */
sluice_status slc_joint_plan(const slc_joint_request *request, slc_joint_answer *answer, uint64_t *least);
