/* Trace events are written one by one, since there may be millions: complete events ("X") for operations, instants
 * ("i") for calls. Times are in microseconds after the first call of all; hosts are put together by their clocks.
 * bench/nccl/nccl_test.c covers this file. */
#include "bench/nccl/summary/timeline.h"

#include "bench/cli/output/result_file.h"
#include "bench/nccl/summary/time_shares.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <stdlib.h>

enum { FIRST_STREAM = 100000, MOST_STREAMS = 1000 };

typedef struct {
    FILE *out;
    const slc_nccl_process *process;
    int64_t zero_ns; /* real time */
    int number;      /* of the process, from 1 */
    uint64_t streams[MOST_STREAMS];
    int devices[MOST_STREAMS];
    size_t stream_count;
    bool threads[65536];
    const char *before; /* what separates the next event from the one before */
} writer;

static void put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out); /* records have no control characters */
    }
    fputc('"', out);
}

static void begin_event(writer *w)
{
    fputs(w->before, w->out);
    w->before = ",\n";
}

static void put_name(writer *w, const char *what, int lane, const char *name)
{
    begin_event(w);
    fprintf(w->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", what, w->number, lane);
    put_text(w->out, name);
    fputs("}}", w->out);
}

/* Returns the moment in microseconds. The clocks are in range, so their difference is. */
static double moment_us(const writer *w, int64_t ns)
{
    return (double)(ns + w->process->header.realtime_minus_monotonic_ns - w->zero_ns) * 1e-3;
}

static int device_of(const slc_nccl_process *p, const slc_nccl_entry *e)
{
    return e->communicator < p->header.communicators ? p->communicators[e->communicator].device : -1;
}

/* Returns the stream's lane, which is named at its first use. Streams beyond the last lane share it. */
static int lane_of_stream(writer *w, const slc_nccl_entry *e)
{
    int device = device_of(w->process, e);
    size_t i = 0;
    while (i < w->stream_count && (w->streams[i] != e->stream || w->devices[i] != device)) i++;
    if (i == MOST_STREAMS) return FIRST_STREAM + MOST_STREAMS - 1;
    if (i == w->stream_count) {
        char name[80];
        w->streams[w->stream_count] = e->stream;
        w->devices[w->stream_count++] = device;
        snprintf(name, sizeof name, "device %d stream %" PRIx64, device, e->stream);
        put_name(w, "thread_name", FIRST_STREAM + (int)i, name);
    }
    return FIRST_STREAM + (int)i;
}

static void put_arguments(writer *w, const slc_nccl_entry *e, uint64_t bytes)
{
    const slc_nccl_process *p = w->process;
    char caller[300];
    fprintf(w->out, ",\"args\":{\"number\":%" PRIu64 ",\"count\":%" PRIu64 ",\"dtype\":\"%s\",\"redop\":\"%s\"",
            e->number, e->count, slc_nccl_dtype_name(e->dtype), slc_nccl_redop_name(e->redop));
    if (e->communicator != SLC_RECORD_NO_COMMUNICATOR)
        fprintf(w->out, ",\"communicator\":\"%016" PRIx64 "\",\"rank\":%d", p->communicators[e->communicator].key,
                p->communicators[e->communicator].rank);
    fprintf(w->out, ",\"bytes\":%" PRIu64 ",\"peer\":%d,\"group\":%u,\"captured\":%s,\"failed\":%s,\"caller\":", bytes,
            e->peer, e->group, e->flags & SLC_RECORD_CAPTURED ? "true" : "false",
            e->flags & SLC_RECORD_FAILED ? "true" : "false");
    put_text(w->out, slc_nccl_caller(p, e, caller));
    fputs("}}", w->out);
}

/* Puts an operation on its stream's lane; those that were timed together are one. */
static void put_operation(writer *w, const slc_nccl_entry *e, const slc_nccl_time_share *share)
{
    char name[80];
    int lane = lane_of_stream(w, e);
    snprintf(name, sizeof name, "%s", slc_nccl_operation_name(e->operation));
    if (share->members > 1)
        snprintf(name, sizeof name, "group of %u, first %s", share->members, slc_nccl_operation_name(e->operation));
    begin_event(w);
    fprintf(w->out,
            "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"operation\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", name,
            w->number, lane, moment_us(w, e->begin_ns), (double)(e->end_ns - e->begin_ns) * 1e-3);
    put_arguments(w, e, share->bytes);
}

static void put_call(writer *w, const slc_nccl_entry *e)
{
    const char *name = slc_nccl_operation_name(e->operation);
    int lane = (int)e->thread;
    if (!w->threads[e->thread]) {
        char thread[32];
        w->threads[e->thread] = true;
        snprintf(thread, sizeof thread, e->thread ? "calls of thread %u" : "calls of other threads", e->thread);
        put_name(w, "thread_name", lane, thread);
    }
    begin_event(w);
    fprintf(w->out, "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"%s\",\"cat\":\"call\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f",
            name, w->number, lane, moment_us(w, e->time_ns));
    put_arguments(w, e, slc_nccl_entry_bytes(w->process, e));
}

static sluice_status put_process(writer *w)
{
    const slc_nccl_process *p = w->process;
    char name[256], rank[32] = "";
    if (p->header.communicators && p->communicators[0].rank >= 0)
        snprintf(rank, sizeof rank, "rank %d, ", p->communicators[0].rank);
    snprintf(name, sizeof name, "%s%s %" PRId64, rank, p->header.host, p->header.pid);
    put_name(w, "process_name", 0, name);
    slc_nccl_time_share *shares = malloc((p->entry_count + 1) * sizeof *shares);
    if (!shares) return slc_error(SLUICE_ERR_MEMORY, "times of %s", p->path);
    sluice_status status = slc_nccl_time_shares_find(p, shares);
    for (size_t i = 0; !status && i < p->entry_count; i++) {
        put_call(w, &p->entries[i]);
        if (shares[i].first) put_operation(w, &p->entries[i], &shares[i]);
    }
    free(shares);
    return status;
}

static int64_t first_call(const slc_nccl_records *records)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < records->count; i++) {
        const slc_record_header *h = &records->processes[i].header;
        int64_t real = h->first_call_ns + h->realtime_minus_monotonic_ns;
        if (real < first) first = real;
    }
    return first;
}

sluice_status slc_nccl_timeline_write(const slc_nccl_records *records, const char *path)
{
    slc_result_file file;
    sluice_status status = slc_result_file_open(path, &file);
    if (status) return status;
    writer *w = malloc(sizeof *w);
    if (!w) {
        slc_result_file_abandon(&file);
        return slc_error(SLUICE_ERR_MEMORY, "timeline %s", path);
    }
    const char *before = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    for (size_t i = 0; !status && i < records->count && slc_result_file_check(&file); i++) {
        *w = (writer){.out = file.file,
                      .process = &records->processes[i],
                      .zero_ns = first_call(records),
                      .number = (int)i + 1,
                      .before = before};
        status = put_process(w);
        before = ",\n";
    }
    fputs("\n]}\n", file.file);
    free(w);
    if (!status) return slc_result_file_commit(&file);
    slc_result_file_abandon(&file);
    return status;
}
