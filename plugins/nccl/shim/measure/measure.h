/* Measures what streams do with the operations that a program puts on them: SLUICE_SHIM_DONE has them write into the
 * record which operation they have finished, SLUICE_SHIM_TIME has events say when each one ran. Private to
 * plugins/nccl/shim. A stream that is being captured is only marked as such. If the driver refuses, measuring ends
 * with one warning.
 *
 * Events come from pools, one a CUDA context, which grow while they are too small and never shrink. They are read in
 * later calls. A group's operations on one stream and communicator share one pair of events around the group. */
#pragma once

#include "plugins/nccl/shim/state.h"

/* Looks for the driver, if it is not known yet; called when a communicator of this device has become usable. */
void slc_shim_measure_find_driver(slc_shim_recorder *recorder, int device);

/* Returns true if the stream is being captured. Called only with recorder->driver. */
bool slc_shim_measure_is_captured(const slc_shim_recorder *recorder, cudaStream_t stream);

/* Called around a collective, send or receive; only with recorder->measures. In a group, the call is put down for its
 * end. */
void slc_shim_measure_begin(slc_shim_call *call);
void slc_shim_measure_end(slc_shim_call *call, ncclResult_t result);

/* Called around the outermost ncclGroupEnd; only with recorder->measures. */
void slc_shim_measure_group_begin(slc_shim_recorder *recorder, slc_shim_thread *thread);
void slc_shim_measure_group_end(slc_shim_recorder *recorder, slc_shim_thread *thread, ncclResult_t result);

/* Called around ncclCommGetAsyncError. A call that returned ncclInProgress is measured once NCCL, asked by the program,
 * says that the communicator is not in progress any more; until then, and if the program never asks, the record says
 * nothing of it. slc_shim_measure_asked follows only if NCCL answered. */
uint64_t slc_shim_measure_before_asking(const slc_shim_recorder *recorder, const slc_shim_comm *known);
void slc_shim_measure_asked(slc_shim_recorder *recorder, slc_shim_comm *known, uint64_t noted, ncclResult_t state);

/* Called when the communicator was destroyed or aborted. Never waits. */
void slc_shim_measure_comm_ended(slc_shim_recorder *recorder, slc_shim_comm *known);

/* Forgets the calls of a group that is ended by ncclGroupSimulateEnd: none of them runs. */
void slc_shim_measure_group_simulated(slc_shim_thread *thread);

/* Reads the events that are done, before a communicator ends. */
void slc_shim_measure_harvest(slc_shim_recorder *recorder);
