/* The control connections after joining form a star around rank 0. They carry heartbeats, deaths, leaves and small
 * collectives. All calls come from the communication thread, the only reader and writer of these sockets. */
#pragma once

#include "lib/comm/control/state.h"
#include "lib/comm/join/rendezvous.h"

#include <poll.h>

/* Takes the rendezvous's sockets over. `timeout_s` is that of slc_watch_init. Errors: MEMORY. */
sluice_status slc_control_init(slc_control *control, slc_rendezvous *rendezvous, slc_failure *failure,
                               double timeout_s);
void slc_control_fini(slc_control *control);

int slc_control_polls(const slc_control *control, struct pollfd *polls); /* fills up to link_count entries */
uint64_t slc_control_due(const slc_control *control);                    /* when step is to be called at the latest */

/* True if the next slc_control_step sends a heartbeat; in that case the caller notes control->doing before it. */
bool slc_control_beats(const slc_control *control, uint64_t now_ns);

/* Reads, writes, sends beats and watches for silence. Never blocks. True if anything was received. */
bool slc_control_step(slc_control *control, uint64_t now_ns);

/* Sends the world's failure to the other ranks, once, if they are to be told. */
void slc_control_tell(slc_control *control);

/* Goes on with steps until the reporter has left or cannot be heard any more, but no longer than `patience_ns`. */
void slc_control_hear_reporter(slc_control *control, uint64_t patience_ns);

/* Says goodbye with this rank's last error and the number `code`, before anything else of this rank is closed. After a
 * failure a rank without a code only writes what is still to be written. */
void slc_control_goodbye(slc_control *control, uint32_t operations, const char *last_words, int code);
/* Fails the world: "rank R left while WHILE_WHAT", with the rank's last error if it had one. */
void slc_control_fail_left(slc_control *control, int rank, const char *while_what);
/* Waits until rank 0 (on rank 0: every rank) has heard the goodbye and closed too, but no longer than `patience_ns`,
 * and notes the last words of others. */
void slc_control_leave(slc_control *control, uint64_t patience_ns);

/* Begins the caller's collective, which is complete when collect_done is set. */
void slc_control_collect(slc_control *control, slc_collect *collect);
