/* Running a program on two lanes. Private to lib/engine. */
#pragma once

#include "lib/engine/step/pass_state.h"

#include <sluice/runtime.h>

sluice_status slc_pass_init(sluice_runtime *rt, slc_pass *pass, const slc_program *program, bool evaluate);
void slc_pass_fini(slc_pass *pass);
/* Notes what the step launches whose pass comes next. extent: the length of its sequences, as a share of the longest.
 */
void slc_pass_note_launches(const sluice_runtime *rt, slc_pass *pass, const slc_step_state *step, double extent);
/* The rest of the running pass may launch kernels for the first time; if `next`, all of the pass that will begin. */
void slc_pass_expect_launches(slc_pass *pass, bool next);
/* Starts the next run of the program; the one before may still have operations in flight. */
sluice_status slc_pass_begin(sluice_runtime *rt, slc_pass *pass);
/* Submits operations of the running pass that were held back because their rows were not known. */
sluice_status slc_pass_go_on(sluice_runtime *rt, slc_pass *pass);
/* Waits until nothing uses the state of the step before the last, which the next pass will use. */
sluice_status slc_pass_settle(sluice_runtime *rt, slc_pass *pass);
/* Runs the late items of the last step, if it left any, and waits until all operations are complete. */
sluice_status slc_pass_drain(sluice_runtime *rt, slc_pass *pass);
/* begin runs the updates of the compute lane that come before slot number `cursor`, waits for what the slot needs and
 * claims its memory; exposed_s grows by the time waited, not by the updates. end releases the memory and posts that the
 * slot is done. */
sluice_status slc_pass_slot_begin(sluice_runtime *rt, slc_pass *pass, double *exposed_s);
/* Notes how long the slot's forward took to run again. */
void slc_pass_recomputed(sluice_runtime *rt, slc_pass *pass);
sluice_status slc_pass_slot_end(sluice_runtime *rt, slc_pass *pass);
/* Submits and runs everything left after the last slot, and waits until all operations before operation `item` are
 * complete. */
sluice_status slc_pass_wait_before(sluice_runtime *rt, slc_pass *pass, uint32_t item, double *exposed_s);
/* Goes through the slots that come next and that the step leaves out (slc_left_out_item): updates between them run,
 * memory is claimed and released, nothing is computed or moved. */
sluice_status slc_pass_leave_out(sluice_runtime *rt, slc_pass *pass, double *exposed_s);
/* Submits and runs everything left after the last slot, and waits until operation `item` (SLC_NONE: all) is complete,
 * if it runs in this pass. On a device that runs ahead this is the host's one wait of a step: for the compute stream,
 * which waits for the operation. */
sluice_status slc_pass_wait(sluice_runtime *rt, slc_pass *pass, uint32_t item, double *exposed_s);
