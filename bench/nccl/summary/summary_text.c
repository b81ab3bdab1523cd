/* The summary for people: one table after another, each with its heading, none without a row.
 * bench/nccl/nccl_test.c covers this file. */
#include "bench/nccl/summary/summary.h"
#include "bench/nccl/summary/tables.h"
#include "bench/plan/words/quantities.h"
#include "lib/base/text/size_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEP_LINES = 16 };

static void print_table(const slc_nccl_table *table, const slc_nccl_summary *s, FILE *out)
{
    if (slc_nccl_table_print(table, s, out)) fputc('\n', out);
}

static bool any_times(const slc_nccl_summary *s)
{
    for (size_t i = 0; i < s->traffic_count; i++)
        if (s->traffic[i].timed_calls) return true;
    return false;
}

static void print_traffic(const slc_nccl_summary *s, FILE *out)
{
    bool timed = any_times(s), asked = false;
    if (!s->traffic_count) return;
    for (size_t i = 0; i < s->records->count; i++) asked |= s->records->processes[i].header.times_at > 0;
    slc_nccl_table_print(&slc_nccl_traffic_rows, s, out);
    if (timed)
        fprintf(out, "(GB/s, as nccl-tests counts; a time includes waiting for the other ranks)\n\n");
    else
        fprintf(out, asked ? "(no times were taken yet)\n\n" : "(no times: SLUICE_SHIM_TIME=1 measures them)\n\n");
}

static void print_busy(const slc_nccl_summary *s, FILE *out)
{
    const slc_nccl_busy *most = NULL;
    for (size_t i = 0; i < s->records->count; i++)
        if (s->busy[i].span_s > 0 && (!most || s->busy[i].busy_s > most->busy_s)) most = &s->busy[i];
    if (!most) return;
    char rank[SLC_NCCL_RANKS_BYTES], busy[24], span[24];
    slc_nccl_own_ranks(&s->records->processes[most - s->busy], rank);
    fprintf(out, "NCCL ran for %s of %s (%.1f %%) on rank %.18s, the busiest one\n\n",
            slc_plan_seconds(most->busy_s, busy), slc_plan_seconds(most->span_s, span),
            100 * most->busy_s / most->span_s, rank);
}

static void print_step_call(const slc_nccl_process *p, const slc_nccl_entry *e, FILE *out)
{
    fprintf(out, "%04x %s %s", (unsigned)(p->communicators[e->communicator].key >> 48),
            slc_nccl_operation_name(e->operation), slc_nccl_dtype_name(e->dtype));
    if (e->redop != SLC_RECORD_NO_REDOP) fprintf(out, " %s", slc_nccl_redop_name(e->redop));
    fprintf(out, ", %s", slc_size_of(slc_nccl_entry_bytes(p, e)).text);
    if (e->operation == SLC_RECORD_SEND || e->operation == SLC_RECORD_RECEIVE)
        fprintf(out, " %s rank %d", e->operation == SLC_RECORD_SEND ? "to" : "from", e->peer);
    fputc('\n', out);
}

/* Returns how often in a row the same `length` calls come, beginning with call i of a step. */
static size_t repeats(const slc_nccl_steps *steps, size_t i, size_t length)
{
    const slc_nccl_entry **calls = steps->calls + steps->first;
    size_t end = i + length;
    while (end < steps->length && slc_nccl_calls_alike(calls[end], calls[end - length])) end++;
    return (end - i) / length;
}

/* Prints a step's calls; those that follow each other several times, alone or as a few, are printed once. */
static void print_step_calls(const slc_nccl_process *p, const slc_nccl_steps *steps, FILE *out)
{
    enum { MOST_TOGETHER = 8 };
    size_t lines = 0;
    for (size_t i = 0; i < steps->length;) {
        size_t length = 1, times = 1;
        if (lines >= MOST_STEP_LINES) {
            fprintf(out, "  … %zu more calls\n", steps->length - i);
            return;
        }
        for (size_t n = 1; n <= MOST_TOGETHER && times == 1 && i + n < steps->length; n++)
            if ((times = repeats(steps, i, n)) > 1) length = n;
        for (size_t k = 0; k < length; k++, lines++) {
            if (k == 0)
                fprintf(out, "  %5zu x ", times);
            else
                fprintf(out, "%*s", 10, "");
            print_step_call(p, steps->calls[steps->first + i + k], out);
        }
        i += length * times;
    }
}

/* Describes the step of the first rank that has one, and says how many others have the same. */
static void print_steps(const slc_nccl_summary *s, FILE *out)
{
    const slc_nccl_device_steps *first = NULL;
    size_t alike = 0, calls = 0;
    for (size_t i = 0; i < s->steps_count; i++) {
        const slc_nccl_steps *steps = &s->steps[i].steps;
        calls += steps->call_count;
        if (!first && steps->length) first = &s->steps[i];
        alike += first && steps->length == first->steps.length && steps->bytes == first->steps.bytes;
    }
    if (!first) {
        if (calls) fprintf(out, "steps: no sequence of calls repeats at least three times\n\n");
        return;
    }
    char period[24];
    fprintf(out, "steps: %zu call%s and %s each, %zu times every %s (rank %d; %zu of %zu ranks alike)\n",
            first->steps.length, first->steps.length == 1 ? "" : "s", slc_size_of(first->steps.bytes).text,
            first->steps.count, slc_plan_seconds(first->steps.period_s, period), first->rank, alike, s->steps_count);
    print_step_calls(first->process, &first->steps, out);
    fputc('\n', out);
}

static void print_grouping(const slc_nccl_summary *s, FILE *out)
{
    const slc_nccl_grouping *g = &s->grouping;
    char a[24], b[24], c[24];
    if (!g->count) return;
    fprintf(out, "small calls that could go together: n of V bytes save (n-1) alpha and cost 2 kappa + 4 sum V/M\n");
    slc_nccl_table_print(&slc_nccl_sequences, s, out);
    fprintf(out, "alpha: %s, %s; in a group %s, kappa %s, M %.3g TB/s, usual values of a GPU\n",
            slc_plan_seconds(g->costs.alpha_s, a),
            g->costs.alpha_is_measured ? "measured on operations of at most 4 KiB" : "a usual value of a GPU",
            slc_plan_seconds(g->costs.grouped_alpha_s, b), slc_plan_seconds(g->costs.kappa_s, c),
            g->costs.memory_bytes_per_s * 1e-12);
    fprintf(out,
            "(SLUICE_SHIM_FUSE=BYTES fuses all_reduces of a group; what is in no group needs ncclGroupStart and "
            "ncclGroupEnd first, and then all\nof it waits for the last one's data%s)\n\n",
            any_times(s) ? "" : ": SLUICE_SHIM_TIME=1 tells which calls wait");
}

/* Says what the transforms did on each communicator, and why calls passed unchanged. */
static void print_transforms(const slc_nccl_summary *s, FILE *out)
{
    for (size_t i = 0; i < s->communicator_count; i++) {
        const slc_nccl_transformed *t = &s->communicators[i].transformed;
        const char *separator = ": ";
        uint64_t passed = 0;
        for (unsigned r = 0; r < SLC_RECORD_PASS_REASONS; r++) passed += t->passed[r];
        if (!t->fused_calls && !t->compressed_calls && !passed) continue;
        fprintf(out, "transforms on %04x: %" PRIu64 " calls fused into %" PRIu64 "; %" PRIu64 " compressed",
                (unsigned)(s->communicators[i].key >> 48), t->fused_calls, t->fused_groups, t->compressed_calls);
        if (t->compressed_calls)
            fprintf(out, ", %s as %s", slc_size_of(t->bytes_compressed).text, slc_size_of(t->bytes_sent).text);
        fprintf(out, "; %" PRIu64 " passed", passed);
        for (unsigned r = 0; r < SLC_RECORD_PASS_REASONS; r++) {
            if (!t->passed[r] || !slc_nccl_pass_reason_name(r)) continue;
            fprintf(out, "%s%s %" PRIu64, separator, slc_nccl_pass_reason_name(r), t->passed[r]);
            separator = ", ";
        }
        fprintf(out, "\n\n");
    }
}

static void print_lost(const slc_nccl_summary *s, FILE *out)
{
    if (s->entries_lost)
        fprintf(out,
                "lost: the oldest %" PRIu64 " of %" PRIu64 " calls; what is said of bytes, sizes and steps is of those "
                "kept (SLUICE_SHIM_ENTRIES=N keeps more)\n",
                s->entries_lost, s->entries);
    if (s->entries_written)
        fprintf(out, "lost: %" PRIu64 " calls that were being written when they were read\n", s->entries_written);
    if (s->communicators_lost)
        fprintf(out, "lost: %" PRIu64 " communicators, which came after the first %d of their processes\n",
                s->communicators_lost, SLC_RECORD_COMMUNICATORS);
    if (s->times_lost) fprintf(out, "lost: times of %" PRIu64 " operations\n", s->times_lost);
    if (s->captured)
        fprintf(out, "graphs: %" PRIu64 " calls were captured; how often their graphs ran is not recorded\n",
                s->captured);
    if (s->failed) fprintf(out, "failed: %" PRIu64 " calls returned an error\n", s->failed);
}

void slc_nccl_summary_print(const slc_nccl_summary *summary, FILE *out)
{
    print_table(&slc_nccl_processes, summary, out);
    print_table(&slc_nccl_communicators, summary, out);
    print_traffic(summary, out);
    print_busy(summary, out);
    print_table(&slc_nccl_sizes, summary, out);
    print_steps(summary, out);
    print_grouping(summary, out);
    print_transforms(summary, out);
    print_lost(summary, out);
}
