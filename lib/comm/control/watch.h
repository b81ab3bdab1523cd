/* Watches which rank waits for which. Each rank notes what its program is doing, and its heartbeats tell rank 0, which
 * fails the world when calls can never meet (MISMATCH, at once) or when a rank that lives is absent for too long
 * (TIMEOUT). All calls come from the communication thread. */
#pragma once

#include "lib/comm/control/state.h"

/* `timeout_s` 0: a silent rank is an error after 60 s, and one that lives but is absent after 600 s, for it may be
 * loading data. Otherwise either is an error after `timeout_s`. */
void slc_watch_init(slc_watch *watch, uint64_t now_ns, double timeout_s);

/* Fails the world if a rank waits in vain. Rank 0 calls it after each heartbeat. */
void slc_watch_judge(slc_control *control);
