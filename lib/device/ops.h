/* The functions that a kind of device provides. Private to lib/device: device.c dispatches the public calls to one of
 * these structs, so that another kind is one more file. */
#pragma once

#include "lib/device/types.h"

#include <sluice/status.h>

/* The functions have the contracts of the public ones of the same name in device.h; none may be NULL. */
typedef struct {
    slc_device_kind kind;
    const char *name;    /* the name that slc_device_open takes */
    const char *runs_on; /* result of slc_device_describe */
    sluice_status (*open)(void **state);
    void (*close)(void *state);
    sluice_status (*get_facts)(slc_device *device, slc_device_facts *out); /* *out is zeroed */
    void (*watch_launches)(slc_device *device, slc_launch_watch *told, void *context);

    sluice_status (*segment_create)(slc_device *device, size_t bytes, slc_segment *out);
    sluice_status (*segment_map)(slc_device *device, int fd, size_t bytes, slc_segment *out);
    void (*segment_destroy)(slc_segment *segment);
    sluice_status (*segment_populate)(slc_segment *segment, size_t offset, size_t bytes); /* not empty, and inside it */
    void (*segment_discard)(slc_segment *segment, size_t offset, size_t bytes);

    sluice_status (*pinned_create)(slc_device *device, size_t bytes, void **base);
    void (*pinned_destroy)(slc_device *device, void *base);

    sluice_status (*stream_create)(sluice_stream *stream); /* all but its handle is filled in */
    void (*stream_destroy)(sluice_stream *stream);
    sluice_status (*stream_synchronize)(sluice_stream *stream);
    void *(*stream_native)(const sluice_stream *stream);
    sluice_status (*copy)(sluice_stream *stream, void *dst, const void *src, size_t bytes);
    sluice_status (*move)(sluice_stream *stream, void *dst, const void *src, size_t bytes);
    sluice_status (*fill_zero)(sluice_stream *stream, void *dst, size_t bytes);

    sluice_status (*event_create)(slc_device *device, slc_event *event); /* its handle is NULL */
    void (*event_destroy)(slc_event *event);                             /* its handle is not */
    sluice_status (*event_record)(sluice_stream *stream, slc_event *event);
    bool (*event_done)(const slc_event *event);
    sluice_status (*event_synchronize)(slc_event *event);
    sluice_status (*stream_wait_event)(sluice_stream *stream, const slc_event *event);
    sluice_status (*event_elapsed)(const slc_event *begin, const slc_event *end, double *seconds);
} slc_device_ops;

struct slc_device {
    const slc_device_ops *ops;
    void *state; /* belongs to the kind */
    bool alone;  /* no other process maps its segments */
};

/* The handle of an event, if not NULL, points at a struct that begins with this. */
typedef struct {
    slc_device *device;
} slc_event_header;

extern const slc_device_ops slc_host_ops;
#if SLUICE_CUDA
extern const slc_device_ops slc_cuda_ops;
#endif
