/* The public calls of a device: each finds the struct of functions of the device's kind and calls its function. A kind
 * that this build lacks is not in the table. */
#include "lib/device/device.h"

#include "lib/base/status.h"
#include "lib/device/alone.h"
#include "lib/device/ops.h"

#include <stdlib.h>
#include <string.h>

static const slc_device_ops *const kinds[] = {
    &slc_host_ops,
#if SLUICE_CUDA
    &slc_cuda_ops,
#endif
};

static const slc_device_ops *find_ops(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    return NULL;
}

sluice_status slc_device_open(const char *name, slc_device **out)
{
    const slc_device_ops *ops = find_ops(name);
    if (!ops) return slc_error(SLUICE_ERR_UNSUPPORTED, "device \"%s\" is not in this build; use \"cpu\"", name);

    slc_device *device = calloc(1, sizeof *device);
    if (!device) return slc_error(SLUICE_ERR_MEMORY, "device \"%s\"", name);
    device->ops = ops;
    sluice_status status = ops->open(&device->state);
    if (status) {
        free(device);
        return status;
    }
    *out = device;
    return SLUICE_OK;
}

void slc_device_close(slc_device *device)
{
    if (!device) return;
    device->ops->close(device->state);
    free(device);
}

slc_device_kind slc_device_get_kind(const slc_device *device)
{
    return device->ops->kind;
}

const char *slc_device_describe(const char *name)
{
    const slc_device_ops *ops = find_ops(name);
    return ops ? ops->runs_on : NULL;
}

sluice_status slc_device_get_facts(slc_device *device, slc_device_facts *out)
{
    *out = (slc_device_facts){0};
    return device->ops->get_facts(device, out);
}

void slc_device_watch_launches(slc_device *device, slc_launch_watch *told, void *context)
{
    device->ops->watch_launches(device, told, context);
}

void slc_device_keep_alone(slc_device *device)
{
    device->alone = true;
}

sluice_status slc_segment_create(slc_device *device, size_t bytes, slc_segment *out)
{
    return device->ops->segment_create(device, bytes, out);
}

sluice_status slc_segment_map(slc_device *device, int fd, size_t bytes, slc_segment *out)
{
    return device->ops->segment_map(device, fd, bytes, out);
}

void slc_segment_destroy(slc_segment *segment)
{
    if (!segment->device) return;
    segment->device->ops->segment_destroy(segment);
    *segment = (slc_segment){.fd = -1};
}

sluice_status slc_segment_populate(slc_segment *segment)
{
    return slc_segment_populate_range(segment, 0, segment->bytes);
}

sluice_status slc_segment_populate_range(slc_segment *segment, size_t offset, size_t bytes)
{
    if (offset >= segment->bytes || !bytes) return SLUICE_OK;
    uint64_t left = segment->bytes - offset;
    return segment->device->ops->segment_populate(segment, offset, bytes < left ? bytes : left);
}

void slc_segment_discard(slc_segment *segment, size_t offset, size_t bytes)
{
    if (offset < segment->bytes && bytes)
        segment->device->ops->segment_discard(segment, offset,
                                              bytes < segment->bytes - offset ? bytes : segment->bytes - offset);
}

static sluice_status create_stream(slc_device *device, uint32_t threads, bool first, sluice_stream *out)
{
    *out = (sluice_stream){.device = device, .threads = threads ? threads : 1, .first = first};
    sluice_status status = device->ops->stream_create(out);
    if (status) *out = (sluice_stream){0};
    return status;
}

sluice_status slc_stream_create(slc_device *device, uint32_t threads, sluice_stream *out)
{
    return create_stream(device, threads, false, out);
}

sluice_status slc_stream_create_first(slc_device *device, uint32_t threads, sluice_stream *out)
{
    return create_stream(device, threads, true, out);
}

void slc_stream_destroy(sluice_stream *stream)
{
    if (!stream->device) return;
    stream->device->ops->stream_destroy(stream);
    *stream = (sluice_stream){0};
}

sluice_status slc_stream_synchronize(sluice_stream *stream)
{
    return stream->device->ops->stream_synchronize(stream);
}

void *slc_stream_native(const sluice_stream *stream)
{
    return stream->device->ops->stream_native(stream);
}

sluice_status slc_copy(sluice_stream *stream, void *dst, const void *src, size_t bytes)
{
    if (!bytes || dst == src) return SLUICE_OK;
    return stream->device->ops->copy(stream, dst, src, bytes);
}

sluice_status slc_move_bytes(sluice_stream *stream, void *dst, const void *src, size_t bytes)
{
    if (!bytes || dst == src) return SLUICE_OK;
    return stream->device->ops->move(stream, dst, src, bytes);
}

sluice_status slc_fill_zero(sluice_stream *stream, void *dst, size_t bytes)
{
    if (!bytes) return SLUICE_OK;
    return stream->device->ops->fill_zero(stream, dst, bytes);
}

sluice_status slc_event_create(slc_device *device, slc_event *event)
{
    event->handle = NULL;
    return device->ops->event_create(device, event);
}

sluice_status slc_event_record(sluice_stream *stream, slc_event *event)
{
    return stream->device->ops->event_record(stream, event);
}

static const slc_device_ops *event_ops(const slc_event *event)
{
    return ((const slc_event_header *)event->handle)->device->ops;
}

void slc_event_destroy(slc_event *event)
{
    if (event->handle) event_ops(event)->event_destroy(event);
    event->handle = NULL;
}

bool slc_event_done(const slc_event *event)
{
    return !event->handle || event_ops(event)->event_done(event);
}

sluice_status slc_event_synchronize(slc_event *event)
{
    return event->handle ? event_ops(event)->event_synchronize(event) : SLUICE_OK;
}

sluice_status slc_stream_wait_event(sluice_stream *stream, const slc_event *event)
{
    return event->handle ? stream->device->ops->stream_wait_event(stream, event) : SLUICE_OK;
}

sluice_status slc_event_elapsed(const slc_event *begin, const slc_event *end, double *seconds)
{
    if (begin->handle && end->handle) return event_ops(begin)->event_elapsed(begin, end, seconds);
    return slc_error(SLUICE_ERR_UNSUPPORTED, "time between two events of the host, or that were never recorded");
}
