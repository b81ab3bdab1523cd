/* A finding's text is written as one writes to a file; its JSON has the same facts for programs.
 * compare_test.c covers this file. */
#include "bench/nccl/watch/findings.h"

#include "lib/base/array.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *slc_nccl_finding_kind_name(slc_nccl_finding_kind kind)
{
    static const char *const names[SLC_NCCL_FINDING_KINDS] = {
        [SLC_NCCL_FOUND_DIFFERS] = "differs",
        [SLC_NCCL_FOUND_UNEQUAL] = "unequal",
        [SLC_NCCL_FOUND_CROSSED] = "crossed",
        [SLC_NCCL_FOUND_FAILED] = "failed",
        [SLC_NCCL_FOUND_GONE] = "gone",
        [SLC_NCCL_FOUND_STOPPED] = "stopped",
        [SLC_NCCL_FOUND_MISSING] = "missing",
        [SLC_NCCL_FOUND_ENDED] = "ended",
        [SLC_NCCL_FOUND_LAGS] = "lags",
        [SLC_NCCL_FOUND_SEND_UNMATCHED] = "send_unmatched",
        [SLC_NCCL_FOUND_RECEIVE_UNMATCHED] = "receive_unmatched",
        [SLC_NCCL_FOUND_CIRCLE] = "circle",
        [SLC_NCCL_FOUND_UNFINISHED] = "unfinished",
    };
    return kind < SLC_NCCL_FINDING_KINDS ? names[kind] : "unknown";
}

static void free_finding(slc_nccl_finding *finding)
{
    free(finding->text);
    free(finding->involved);
    json_decref(finding->json);
}

sluice_status slc_nccl_finding_begin(slc_nccl_findings *findings, slc_nccl_finding_kind kind,
                                     const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                     slc_nccl_finding **begun)
{
    static size_t text_bytes; /* open_memstream writes it; the text ends with 0 */
    if (!SLC_ROOM_FOR_ONE(findings->rows, findings->count)) return slc_error(SLUICE_ERR_MEMORY, "findings");
    slc_nccl_finding *f = &findings->rows[findings->count];
    *f = (slc_nccl_finding){.kind = kind, .key = communicator->key, .involved_count = all->records->count};
    f->involved = calloc(all->records->count + 1, sizeof *f->involved);
    f->json = json_pack("{s:o, s:i}", "communicator", json_sprintf("%016" PRIx64, communicator->key), "size",
                        communicator->size);
    f->out = f->involved && f->json ? open_memstream(&f->text, &text_bytes) : NULL;
    if (!f->out) {
        free_finding(f);
        return slc_error(SLUICE_ERR_MEMORY, "findings");
    }
    findings->count++;
    slc_nccl_write_name(f->out, communicator);
    *begun = f;
    return SLUICE_OK;
}

sluice_status slc_nccl_finding_end(slc_nccl_findings *findings)
{
    slc_nccl_finding *f = &findings->rows[findings->count - 1];
    bool lost = ferror(f->out) || f->lost;
    lost = fclose(f->out) || lost;
    if (!lost) return SLUICE_OK;
    slc_nccl_finding_drop(findings, findings->count - 1);
    return slc_error(SLUICE_ERR_MEMORY, "findings");
}

void slc_nccl_finding_involve(slc_nccl_finding *finding, const slc_nccl_members *all, const slc_nccl_member *member)
{
    finding->involved[all->nodes[member->node].process_index] = true;
}

void slc_nccl_finding_not_before(slc_nccl_finding *finding, const slc_nccl_member *member, const slc_nccl_entry *entry)
{
    int64_t when = (entry ? entry->time_ns : member->touched_ns) + member->process->header.realtime_minus_monotonic_ns;
    if (when > finding->time_ns) finding->time_ns = when;
}

void slc_nccl_finding_set(slc_nccl_finding *finding, const char *key, json_t *value)
{
    if (json_object_set_new(finding->json, key, value)) finding->lost = true;
}

void slc_nccl_finding_append(slc_nccl_finding *finding, const char *key, json_t *value)
{
    if (!json_object_get(finding->json, key)) slc_nccl_finding_set(finding, key, json_array());
    if (json_array_append_new(json_object_get(finding->json, key), value)) finding->lost = true;
}

void slc_nccl_finding_drop(slc_nccl_findings *findings, size_t index)
{
    free_finding(&findings->rows[index]);
    findings->count--;
    memmove(&findings->rows[index], &findings->rows[index + 1], (findings->count - index) * sizeof *findings->rows);
}

void slc_nccl_findings_free(slc_nccl_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) free_finding(&findings->rows[i]);
    free(findings->rows);
    *findings = (slc_nccl_findings){0};
}

bool slc_nccl_finding_same(const slc_nccl_finding *a, const slc_nccl_finding *b)
{
    return a->kind == b->kind && a->key == b->key && a->number == b->number;
}

json_t *slc_nccl_findings_json(const slc_nccl_findings *findings)
{
    json_t *all = json_array();
    for (size_t i = 0; all && i < findings->count; i++) {
        const slc_nccl_finding *f = &findings->rows[i];
        json_t *row = json_pack("{s:s, s:s, s:s*}", "kind", slc_nccl_finding_kind_name(f->kind), "text", f->text,
                                "hint", f->hint);
        if (row && f->number) json_object_set_new(row, "number", json_integer((json_int_t)f->number));
        if (!row || json_object_update(row, f->json) || json_array_append(all, row)) {
            json_decref(all);
            all = NULL;
        }
        json_decref(row);
    }
    return all;
}

void slc_nccl_write_name(FILE *out, const slc_nccl_communicator *communicator)
{
    fprintf(out, "communicator %04x", (unsigned)(communicator->key >> 48));
    if (communicator->size) fprintf(out, " (%d rank%s)", communicator->size, communicator->size > 1 ? "s" : "");
}

void slc_nccl_write_ranks(FILE *out, const int *ranks, size_t count)
{
    fputs(count == 1 ? "rank " : "ranks ", out);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && ranks[end] == ranks[end - 1] + 1) end++;
        if (i) fputs(end == count ? " and " : ", ", out);
        if (end - i > 1)
            fprintf(out, "%d%s%d", ranks[i], end - i > 2 || count > 2 ? "-" : " and ", ranks[end - 1]);
        else
            fprintf(out, "%d", ranks[i]);
        i = end;
    }
}

static bool has_redop(const slc_nccl_entry *entry)
{
    return entry->redop != SLC_RECORD_NO_REDOP;
}

static bool has_root(const slc_nccl_entry *entry)
{
    unsigned o = entry->operation;
    return o == SLC_RECORD_REDUCE || o == SLC_RECORD_BROADCAST || o == SLC_RECORD_GATHER || o == SLC_RECORD_SCATTER;
}

void slc_nccl_write_call(FILE *out, const slc_nccl_entry *entry)
{
    fputs(slc_nccl_operation_name(entry->operation), out);
    if (entry->operation == SLC_RECORD_SPLIT) return;
    fprintf(out, " %s[%" PRIu64 "]", slc_nccl_dtype_name(entry->dtype), entry->count);
    if (has_redop(entry)) fprintf(out, " %s", slc_nccl_redop_name(entry->redop));
    if (has_root(entry)) fprintf(out, " root %d", entry->peer);
}

void slc_nccl_write_data(FILE *out, const slc_nccl_entry *entry)
{
    fprintf(out, "%s[%" PRIu64 "] (%" PRIu64 " bytes)", slc_nccl_dtype_name(entry->dtype), entry->count,
            entry->count * slc_nccl_dtype_bytes(entry->dtype));
}

void slc_nccl_write_caller(FILE *out, const slc_nccl_member *member, const slc_nccl_entry *entry)
{
    char caller[300];
    const char *name = slc_nccl_caller(member->process, entry, caller);
    if (strcmp(name, "-")) fprintf(out, " from %s", name);
}

void slc_nccl_write_process(FILE *out, const slc_nccl_process *process)
{
    fprintf(out, "host %s, pid %" PRId64, process->header.host, process->header.pid);
}

void slc_nccl_write_member(FILE *out, const slc_nccl_member *member)
{
    const slc_record_header *h = &member->process->header;
    fprintf(out, "rank %d (", member->rank);
    if (h->launch_rank >= 0 && h->launch_size > member->row->size)
        fprintf(out, "rank %d of the job's %d, ", h->launch_rank, h->launch_size);
    slc_nccl_write_process(out, member->process);
    fputc(')', out);
}

json_t *slc_nccl_call_json(const slc_nccl_member *member, const slc_nccl_entry *entry)
{
    char caller[300];
    json_t *call = json_pack("{s:s, s:s}", "operation", slc_nccl_operation_name(entry->operation), "caller",
                             slc_nccl_caller(member->process, entry, caller));
    if (!call || entry->operation == SLC_RECORD_SPLIT) return call;
    int failed = json_object_set_new(call, "count", json_integer((json_int_t)entry->count));
    failed |= json_object_set_new(call, "dtype", json_string(slc_nccl_dtype_name(entry->dtype)));
    if (has_redop(entry)) failed |= json_object_set_new(call, "redop", json_string(slc_nccl_redop_name(entry->redop)));
    if (entry->peer >= 0)
        failed |= json_object_set_new(call, has_root(entry) ? "root" : "peer", json_integer(entry->peer));
    if (!failed) return call;
    json_decref(call);
    return NULL;
}

json_t *slc_nccl_member_json(const slc_nccl_member *member)
{
    return json_pack("{s:i, s:s, s:I, s:s, s:I}", "rank", member->rank, "host", member->process->header.host, "pid",
                     (json_int_t)member->process->header.pid, "state", slc_nccl_state_name(member->process->state),
                     "called", (json_int_t)member->called);
}
