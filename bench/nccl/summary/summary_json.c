/* The summary as JSON; docs/formats.md describes it. bench/nccl/nccl_test.c covers this file. */
#include "bench/nccl/summary/summary.h"
#include "bench/nccl/summary/tables.h"

#include <inttypes.h>

#define NUMBER(value) ((json_int_t)(value))

static json_t *key_text(uint64_t key)
{
    return key ? json_sprintf("%016" PRIx64, key) : json_null();
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

static json_t *grouping_json(const slc_nccl_summary *s)
{
    const slc_nccl_grouping *g = &s->grouping;
    return json_pack("{s:f, s:b, s:f, s:f, s:f, s:o}", "alpha_s", g->costs.alpha_s, "alpha_is_measured",
                     (int)g->costs.alpha_is_measured, "grouped_alpha_s", g->costs.grouped_alpha_s, "kappa_s",
                     g->costs.kappa_s, "memory_bytes_per_s", g->costs.memory_bytes_per_s, "sequences",
                     slc_nccl_table_json(&slc_nccl_sequences, s));
}

json_t *slc_nccl_summary_json(const slc_nccl_summary *s)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < s->steps_count; i++)
        if (s->steps[i].steps.length) json_array_append_new(steps, steps_json(&s->steps[i]));
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I}, s:I, s:I}", "version", 1,
                     slc_nccl_processes.name, slc_nccl_table_json(&slc_nccl_processes, s), slc_nccl_communicators.name,
                     slc_nccl_table_json(&slc_nccl_communicators, s), slc_nccl_traffic_rows.name,
                     slc_nccl_table_json(&slc_nccl_traffic_rows, s), slc_nccl_sizes.name,
                     slc_nccl_table_json(&slc_nccl_sizes, s), "steps", steps, "grouping", grouping_json(s), "lost",
                     "calls", NUMBER(s->entries_lost), "unwritten", NUMBER(s->entries_written), "communicators",
                     NUMBER(s->communicators_lost), "times", NUMBER(s->times_lost), "captured_calls",
                     NUMBER(s->captured), "failed_calls", NUMBER(s->failed));
}
