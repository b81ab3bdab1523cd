/* The summary as JSON; docs/formats.md describes it. */
#include "bench/nccl/summary/summary.h"

#include <inttypes.h>

#define NUMBER(value) ((json_int_t)(value))

static json_t *key_text(uint64_t key)
{
    return key ? json_sprintf("%016" PRIx64, key) : json_null();
}

static json_t *process_json(const slc_nccl_process *p, const slc_nccl_busy *busy)
{
    const slc_record_header *h = &p->header;
    bool has_row = h->communicators > 0, timed = busy->span_s > 0;
    return json_pack("{s:s, s:I, s:s, s:o, s:s, s:s, s:o, s:I, s:I, s:I, s:o, s:o}", "host", h->host, "pid",
                     NUMBER(h->pid), "state", slc_nccl_state_name(p->state), "rank",
                     has_row ? json_integer(p->communicators[0].rank) : json_null(), "command", h->command, "nccl",
                     h->nccl_path, "nccl_version", h->nccl_version ? json_integer(h->nccl_version) : json_null(),
                     "calls", NUMBER(h->entries), "calls_kept", NUMBER(p->entry_count), "times_lost",
                     NUMBER(h->times_lost), "nccl_s", timed ? json_real(busy->busy_s) : json_null(), "span_s",
                     timed ? json_real(busy->span_s) : json_null());
}

static json_t *transforms_json(const slc_nccl_transformed *t)
{
    json_t *reasons = json_object();
    for (unsigned r = 0; r < SLC_RECORD_PASS_REASONS; r++)
        if (t->passed[r] && slc_nccl_pass_reason_name(r))
            json_object_set_new(reasons, slc_nccl_pass_reason_name(r), json_integer(NUMBER(t->passed[r])));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "fused_calls", NUMBER(t->fused_calls), "fused_groups",
                     NUMBER(t->fused_groups), "compressed_calls", NUMBER(t->compressed_calls), "bytes_compressed",
                     NUMBER(t->bytes_compressed), "bytes_sent", NUMBER(t->bytes_sent), "passed", reasons);
}

static json_t *communicator_json(const slc_nccl_communicator_sum *c)
{
    json_t *ranks = json_array();
    for (size_t k = 0; k < c->rank_count; k++) json_array_append_new(ranks, json_integer(c->ranks[k].row->rank));
    return json_pack("{s:o, s:o, s:i, s:o, s:I, s:o}", "key", key_text(c->key), "parent", key_text(c->parent_key),
                     "size", c->size, "ranks", ranks, "calls", NUMBER(c->calls), "transforms",
                     transforms_json(&c->transformed));
}

static json_t *traffic_json(const slc_nccl_traffic *t)
{
    double rate = t->timed_s > 0 ? (double)t->timed_bytes / t->timed_s * 1e-9 : 0;
    double factor = slc_nccl_bus_factor(t->operation, t->communicator->size);
    return json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "communicator", key_text(t->communicator->key),
                     "operation", slc_nccl_operation_name(t->operation), "dtype", slc_nccl_dtype_name(t->dtype),
                     "calls", NUMBER(t->calls), "bytes", NUMBER(t->bytes), "calls_timed", NUMBER(t->timed_calls),
                     "time_s", rate > 0 ? json_real(t->timed_s) : json_null(), "algbw",
                     rate > 0 ? json_real(rate) : json_null(), "busbw",
                     rate > 0 ? json_real(rate * factor) : json_null());
}

static json_t *call_json(const slc_nccl_process *p, const slc_nccl_entry *e)
{
    return json_pack("{s:o, s:s, s:s, s:s, s:I, s:I, s:i}", "communicator",
                     key_text(p->communicators[e->communicator].key), "operation",
                     slc_nccl_operation_name(e->operation), "dtype", slc_nccl_dtype_name(e->dtype), "redop",
                     slc_nccl_redop_name(e->redop), "count", NUMBER(e->count), "bytes",
                     NUMBER(slc_nccl_entry_bytes(p, e)), "peer", e->peer);
}

static json_t *steps_json(const slc_nccl_device_steps *of)
{
    const slc_nccl_process *p = of->process;
    const slc_nccl_steps *steps = &of->steps;
    json_t *calls = json_array();
    for (size_t i = 0; i < steps->length; i++)
        json_array_append_new(calls, call_json(p, steps->calls[steps->first + i]));
    return json_pack("{s:s, s:I, s:i, s:i, s:I, s:I, s:f, s:o}", "host", p->header.host, "pid", NUMBER(p->header.pid),
                     "device", of->device, "rank", of->rank, "count", NUMBER(steps->count), "bytes",
                     NUMBER(steps->bytes), "period_s", steps->period_s, "calls", calls);
}

static json_t *sequence_json(const slc_nccl_sequence *q)
{
    char caller[300];
    return json_pack("{s:o, s:s, s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:s}", "communicator",
                     key_text(q->process->communicators[q->first->communicator].key), "operation",
                     slc_nccl_operation_name(q->first->operation), "dtype", slc_nccl_dtype_name(q->first->dtype),
                     "grouped", (int)q->grouped, "calls", NUMBER(q->calls), "bytes", NUMBER(q->bytes), "count",
                     NUMBER(q->count), "saved_s", q->saved_s, "spent_s", q->spent_s, "caller",
                     slc_nccl_caller(q->process, q->first, caller));
}

static json_t *grouping_json(const slc_nccl_grouping *g)
{
    json_t *sequences = json_array();
    for (size_t i = 0; i < g->count; i++) json_array_append_new(sequences, sequence_json(&g->sequences[i]));
    return json_pack("{s:f, s:b, s:f, s:f, s:f, s:o}", "alpha_s", g->costs.alpha_s, "alpha_is_measured",
                     (int)g->costs.alpha_is_measured, "grouped_alpha_s", g->costs.grouped_alpha_s, "kappa_s",
                     g->costs.kappa_s, "memory_bytes_per_s", g->costs.memory_bytes_per_s, "sequences", sequences);
}

static json_t *sizes_json(const slc_nccl_summary *s)
{
    json_t *sizes = json_array();
    for (unsigned i = 0; i < SLC_NCCL_SIZE_CLASSES; i++)
        if (s->sizes[i].calls)
            json_array_append_new(sizes, json_pack("{s:I, s:I, s:I}", "up_to", NUMBER(UINT64_C(1) << 2 * i), "calls",
                                                   NUMBER(s->sizes[i].calls), "bytes", NUMBER(s->sizes[i].bytes)));
    return sizes;
}

json_t *slc_nccl_summary_json(const slc_nccl_summary *s)
{
    json_t *processes = json_array(), *communicators = json_array(), *traffic = json_array(), *steps = json_array();
    for (size_t i = 0; i < s->records->count; i++)
        json_array_append_new(processes, process_json(&s->records->processes[i], &s->busy[i]));
    for (size_t i = 0; i < s->steps_count; i++)
        if (s->steps[i].steps.length) json_array_append_new(steps, steps_json(&s->steps[i]));
    for (size_t i = 0; i < s->communicator_count; i++)
        json_array_append_new(communicators, communicator_json(&s->communicators[i]));
    for (size_t i = 0; i < s->traffic_count; i++) json_array_append_new(traffic, traffic_json(&s->traffic[i]));
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I}, s:I, s:I}", "version", 1, "processes",
                     processes, "communicators", communicators, "traffic", traffic, "sizes", sizes_json(s), "steps",
                     steps, "grouping", grouping_json(&s->grouping), "lost", "calls", NUMBER(s->entries_lost),
                     "unwritten", NUMBER(s->entries_written), "communicators", NUMBER(s->communicators_lost), "times",
                     NUMBER(s->times_lost), "captured_calls", NUMBER(s->captured), "failed_calls", NUMBER(s->failed));
}
