/* A table is written line by line, as sizes are measured. tests/command/measure/perf_test.sh covers this file. */
#include "bench/perf/report.h"

#include "bench/cli/environment.h"
#include "lib/device/device.h"
#include "lib/base/status.h"

#include <errno.h>
#include <inttypes.h>

sluice_status slc_perf_report_open(const slc_perf_options *options, slc_perf_report *out)
{
    *out = (slc_perf_report){
        .options = options, .table = slc_is_standard_output(options->json) ? stderr : stdout, .rows = json_array()};
    if (!out->rows) return slc_error(SLUICE_ERR_MEMORY, "rows");
    return slc_result_file_open(options->json, &out->file);
}

void slc_perf_report_close(slc_perf_report *report)
{
    slc_result_file_abandon(&report->file);
    json_decref(report->rows);
}

/* ---- The table ---- */

/* Writes out the rows so far. A full disk is an error at the end, and a reader that leaves has seen enough: neither
 * ends the measurement here. */
static void flush(slc_perf_report *report)
{
    errno = 0;
    if (fflush(report->table) && errno == EPIPE) report->unread = true;
}

void slc_perf_report_begin(slc_perf_report *report, const sluice_world *world)
{
    const slc_perf_options *o = report->options;
    const int ranks = sluice_world_size(world);
    fprintf(report->table, "# %s: %d rank%s, path %s, transport %s, block %" PRIu64 " bytes, %u iterations after %u\n",
            o->operation->name, ranks, ranks == 1 ? "" : "s", sluice_world_path(world), sluice_world_transport(world),
            o->block_bytes, o->iterations, o->warm_up);
    if (o->on_gpu)
        fprintf(report->table, "# device %s, sums %s, times by events\n", slc_device_describe(o->device), o->sums);
    fprintf(report->table, "# %10s %12s %8s %8s %12s %10s %10s %8s %12s %12s%s%s\n", "size", "count", "type", "redop",
            "time", "algbw", "busbw", "#wrong", "min", "max", o->beside ? "      alone     beside  share" : "",
            o->copy ? "         copy of copy" : "");
    fprintf(report->table, "# %10s %12s %8s %8s %12s %10s %10s %8s %12s %12s%s%s\n", "(B)", "(elements)", "", "",
            "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", o->beside ? "   (GFLOP/s) (GFLOP/s)" : "",
            o->copy ? "         (us)" : "");
    flush(report);
}

/* Types and sums have the names that nccl-tests gives them. */
static const char *type_name(const slc_perf_config *config)
{
    return config->dtype == SLUICE_BF16 ? "bfloat16" : "float";
}

static const char *sum_name(const slc_perf_options *o, const slc_perf_config *config)
{
    return !o->operation->sums ? "none" : config->average ? "avg" : "sum";
}

static void print_row(slc_perf_report *report, const slc_perf_config *config, const slc_perf_row *row)
{
    const slc_perf_options *o = report->options;
    FILE *table = report->table;
    fprintf(table, "  %10" PRIu64 " %12" PRIu64 " %8s %8s %12.2f %10.3f %10.3f ", row->bytes, row->count,
            type_name(config), sum_name(o, config), row->time_s * 1e6, row->algorithm_bytes_per_s * 1e-9,
            row->bus_bytes_per_s * 1e-9);
    if (o->checks)
        fprintf(table, "%8" PRIu64, row->wrong);
    else
        fprintf(table, "%8s", "N/A");
    fprintf(table, " %12.2f %12.2f", row->time_min_s * 1e6, row->time_max_s * 1e6);
    if (o->beside)
        fprintf(table, " %10.2f %10.2f %6.3f", row->compute_alone * 1e-9, row->compute_beside * 1e-9,
                row->compute_beside / row->compute_alone);
    if (o->copy && row->copy_time_s > 0)
        fprintf(table, " %12.2f %7.3f", row->copy_time_s * 1e6, row->copy_time_s / row->time_s);
    else if (o->copy)
        fprintf(table, " %12s %7s", "N/A", "N/A");
    fputc('\n', table);
    flush(report);
}

void slc_perf_report_end(slc_perf_report *report)
{
    if (report->unread) return;
    if (report->options->checks)
        fprintf(report->table, "# Out of bounds values : %" PRIu64 " %s\n", report->wrong,
                report->wrong ? "FAILED" : "OK");
    else
        fputs("# Out of bounds values : not checked\n", report->table);
    fprintf(report->table, "# Avg bus bandwidth    : %g\n",
            report->row_count ? report->bus_sum_bytes_per_s * 1e-9 / (double)report->row_count : 0.0);
    flush(report);
}

/* ---- JSON ---- */

sluice_status slc_perf_report_row(slc_perf_report *report, const slc_perf_config *config, const slc_perf_row *row)
{
    const slc_perf_options *o = report->options;
    print_row(report, config, row);
    report->bus_sum_bytes_per_s += row->bus_bytes_per_s;
    report->row_count++;
    report->wrong += row->wrong;
    json_t *item =
        json_pack("{s:I, s:I, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:o}", "size", (json_int_t)row->bytes, "count",
                  (json_int_t)row->count, "type", type_name(config), "redop", sum_name(o, config), "time_us",
                  row->time_s * 1e6, "time_min_us", row->time_min_s * 1e6, "time_max_us", row->time_max_s * 1e6,
                  "algbw", row->algorithm_bytes_per_s * 1e-9, "busbw", row->bus_bytes_per_s * 1e-9, "wrong",
                  o->checks ? json_integer((json_int_t)row->wrong) : json_null());
    if (item && o->beside) {
        json_object_set_new(item, "compute_alone_gflops", json_real(row->compute_alone * 1e-9));
        json_object_set_new(item, "compute_beside_gflops", json_real(row->compute_beside * 1e-9));
    }
    if (item && o->copy) {
        bool copied = row->copy_time_s > 0;
        json_object_set_new(item, "copy_time_us", copied ? json_real(row->copy_time_s * 1e6) : json_null());
        json_object_set_new(item, "of_copy", copied ? json_real(row->copy_time_s / row->time_s) : json_null());
    }
    return item && !json_array_append_new(report->rows, item) ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "rows");
}

sluice_status slc_perf_report_write(slc_perf_report *report, const sluice_world *world)
{
    const slc_perf_options *o = report->options;
    json_t *all = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:I, s:s, s:b, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:O, s:o}", "op",
        o->operation->name, "world", sluice_world_size(world), "device", slc_device_describe(o->device), "sums",
        o->sums, "path", sluice_world_path(world), "transport", sluice_world_transport(world), "block_bytes",
        (json_int_t)o->block_bytes, "throttle", *o->throttle ? o->throttle : "none", "in_place", (int)o->in_place,
        "iterations", (json_int_t)o->iterations, "warm_up", (json_int_t)o->warm_up, "checks", (json_int_t)o->checks,
        "ahead", (json_int_t)o->ahead, "beside", (int)o->beside, "copy", (int)o->copy, "interrupted",
        (int)report->unread, "rows", report->rows, "environment", slc_environment_json(world));
    sluice_status status = slc_result_file_put_json(&report->file, all);
    return status ? status : slc_result_file_commit(&report->file);
}
