/* A device is the place where memory and streams live. All code above lib/device uses only this header: it may not
 * assume that a kernel has finished when its call returns, nor that the CPU can read the memory. The host device runs
 * everything at once; its events are complete when recorded. */
#pragma once

#include "lib/device/types.h"

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens "cpu", or "cuda" in a build that has it. The caller closes it. Errors: UNSUPPORTED (not in this build, no GPU,
 * or one that is too old), MEMORY. */
sluice_status slc_device_open(const char *name, slc_device **out);
void slc_device_close(slc_device *device);
slc_device_kind slc_device_get_kind(const slc_device *device);
/* True if work that a call has issued may still be under way when the call returns, and the host cannot touch the
 * device's memory: on every device but the host. */
static inline bool slc_device_runs_ahead(const slc_device *device)
{
    return slc_device_get_kind(device) != SLC_DEVICE_HOST;
}
/* Describes the kind of device with this name as this build has it: "cpu", "cuda", or "cuda (emulated)"; NULL if the
 * build lacks it. */
const char *slc_device_describe(const char *name);

/* Errors: SYSTEM. */
sluice_status slc_device_get_facts(slc_device *device, slc_device_facts *out);

/* From now on the device calls `told` for everything that is queued on its streams, in the thread that queues it, right
 * afterwards. told NULL ends this. No other thread may use the device during this call. On the host it does nothing. */
void slc_device_watch_launches(slc_device *device, slc_launch_watch *told, void *context);

/* Creates a segment of at least `bytes`; slc_segment_destroy ends it. Errors: ARGUMENT (too large), MEMORY, SYSTEM. */
sluice_status slc_segment_create(slc_device *device, size_t bytes, slc_segment *out);
/* Maps a peer's segment from its descriptor, which is duplicated and stays the caller's. Errors: ARGUMENT (the
 * peer's segment is smaller), MEMORY, SYSTEM. */
sluice_status slc_segment_map(slc_device *device, int fd, size_t bytes, slc_segment *out);
/* Ends a segment that was created or mapped and clears the struct; does nothing to a zeroed or cleared one. */
void slc_segment_destroy(slc_segment *segment);
/* Touches every page, or those of [offset, offset + bytes), so that their first use in a step costs no page fault.
 * Parts of a segment that are never touched take no memory. Errors: MEMORY (the system, or the limit of this process's
 * group, has no more). */
sluice_status slc_segment_populate(slc_segment *segment);
sluice_status slc_segment_populate_range(slc_segment *segment, size_t offset, size_t bytes);
/* Gives the whole pages inside [offset, offset + bytes) back to the system: they take no memory until they are touched
 * again, and then hold zeros, for peers too. */
void slc_segment_discard(slc_segment *segment, size_t offset, size_t bytes);

/* Errors: MEMORY. slc_pinned_destroy waits for work of the device, clears the struct, and does nothing to a zeroed
 * one. */
sluice_status slc_pinned_create(slc_device *device, size_t bytes, slc_pinned *out);
void slc_pinned_destroy(slc_pinned *pinned);
/* All pinned memory of the process that is there for devices which run ahead. Any thread. */
uint64_t slc_pinned_bytes(void);

/* `threads` 0 counts as 1; slc_stream_destroy ends the stream. */
sluice_status slc_stream_create(slc_device *device, uint32_t threads, sluice_stream *out);
/* Creates a stream as slc_stream_create does, but if kernels of several streams wait for the GPU, those of this stream
 * come first: for communication, which others wait for, and which needs little of the GPU. On the host there is no
 * difference. */
sluice_status slc_stream_create_first(slc_device *device, uint32_t threads, sluice_stream *out);
void slc_stream_destroy(sluice_stream *stream);
sluice_status slc_stream_synchronize(sluice_stream *stream);
/* The device's own name for the stream, a cudaStream_t on a GPU, which becomes the calling thread's current one; NULL
 * on the host. */
void *slc_stream_native(const sluice_stream *stream);

/* These three run in stream order. Pointers may be of this device or of the host; if the device is a GPU, memory of the
 * host is pinned. The ends of a copy do not overlap, those of a move may. */
sluice_status slc_copy(sluice_stream *stream, void *dst, const void *src, size_t bytes);
sluice_status slc_move_bytes(sluice_stream *stream, void *dst, const void *src, size_t bytes);
sluice_status slc_fill_zero(sluice_stream *stream, void *dst, size_t bytes);

/* An event marks a point of a stream. An event that was never recorded (zeroed) counts as done. slc_event_create makes
 * what the device needs, so that recording does not; without it the first recording does. slc_event_destroy, which a
 * zeroed event does not need, frees it. */
sluice_status slc_event_create(slc_device *device, slc_event *event);
void slc_event_destroy(slc_event *event);
sluice_status slc_event_record(sluice_stream *stream, slc_event *event);
bool slc_event_done(const slc_event *event);
sluice_status slc_event_synchronize(slc_event *event);
sluice_status slc_stream_wait_event(sluice_stream *stream, const slc_event *event);
/* Gives the seconds that the device took from one event to the other, both done. Errors: UNSUPPORTED (on the host,
 * where a clock tells it), ORDER (an event that is not done). */
sluice_status slc_event_elapsed(const slc_event *begin, const slc_event *end, double *seconds);

#ifdef __cplusplus
}
#endif
