/* `sluice perf`: measures collectives of both types and sums that are asked for, one size after another.
 * tests/command/measure/perf_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/device_transport.h"
#include "bench/cli/error_line.h"
#include "bench/cli/outcome.h"
#include "bench/cli/rank_report.h"
#include "bench/cli/output/result_file.h"
#include "bench/launch/self_launch.h"
#include "bench/perf/measure.h"
#include "bench/perf/options.h"
#include "bench/perf/report.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char command[] = "sluice perf";
enum { EXIT_UNREAD = 128 + SIGPIPE };

/* The state of one rank while it measures. */
typedef struct {
    sluice_world *world;
    const slc_perf_options *options;
    slc_perf_report report; /* of rank 0 */
    bool speaks;            /* it is rank 0 */
    bool unread;            /* nobody reads rank 0's table any more: all ranks end */
    slc_outcome file;       /* only rank 0 writes files: a failure to do so is not one of the other ranks */
} perf_run;

static sluice_status report_row(perf_run *run, const slc_perf_config *config, const slc_perf_row *row)
{
    sluice_status status = run->speaks ? slc_perf_report_row(&run->report, config, row) : SLUICE_OK;
    run->unread = run->report.unread;
    return status ? status : sluice_world_broadcast(run->world, &run->unread, sizeof run->unread, 0);
}

/* Sizes that are rounded to the same size are measured once. */
static sluice_status measure_sizes(perf_run *run, slc_perf *perf, const slc_perf_config *config)
{
    const slc_perf_options *o = run->options;
    const int ranks = sluice_world_size(run->world);
    const uint64_t least = slc_perf_size(config->dtype, ranks, 1);
    sluice_status status = SLUICE_OK;
    uint64_t last = UINT64_MAX;
    for (uint64_t size = o->least_bytes; !status && !run->unread && size <= o->most_bytes;
         size = slc_perf_next_size(o, size, least)) {
        const uint64_t bytes = slc_perf_size(config->dtype, ranks, size);
        slc_perf_row row;
        if (bytes == last) continue;
        last = bytes;
        status = slc_perf_measure(perf, bytes, &row);
        if (!status) status = report_row(run, config, &row);
    }
    return status;
}

static sluice_status measure_form(perf_run *run, sluice_dtype dtype, bool average, bool first)
{
    const slc_perf_options *o = run->options;
    const slc_perf_config config = {.device = o->device,
                                    .kind = o->operation->kind,
                                    .gather_after = o->operation->gather_after,
                                    .ring = o->operation->ring,
                                    .dtype = dtype,
                                    .in_place = o->in_place && !o->operation->ring,
                                    .ahead = o->ahead,
                                    .beside = o->beside,
                                    .copy = o->copy,
                                    .most_bytes = o->most_bytes,
                                    .block_bytes = o->block_bytes,
                                    .iterations = o->iterations,
                                    .warm_up = o->warm_up,
                                    .checks = o->checks,
                                    .any_order = !strcmp(o->sums, "nccl"),
                                    .average = average};
    slc_perf *perf = NULL;
    sluice_status status = slc_perf_open(run->world, &config, &perf);
    if (!status && run->speaks && first) slc_perf_report_begin(&run->report, run->world);
    if (!status) status = measure_sizes(run, perf, &config);
    slc_perf_close(perf);
    return status;
}

/* Measures everything in nccl-tests' order: types, then sums, then sizes. */
static sluice_status measure_all(perf_run *run)
{
    const slc_perf_options *o = run->options;
    const sluice_dtype dtypes[2] = {SLUICE_FP32, SLUICE_BF16};
    const bool types[2] = {o->fp32, o->bf16}, sums[2] = {o->sum, o->average};
    bool first = true;
    sluice_status status = run->speaks ? slc_perf_report_open(o, &run->report) : SLUICE_OK;
    for (int t = 0; t < 2; t++) {
        for (int s = 0; s < 2; s++) {
            if (status || run->unread || !types[t] || !sums[s]) continue;
            status = measure_form(run, dtypes[t], s == 1, first);
            first = false;
        }
    }
    if (!status && run->speaks) {
        slc_perf_report_end(&run->report);
        slc_outcome_add(&run->file, slc_perf_report_write(&run->report, run->world));
    }
    return status;
}

/* Gives up standard output, which nobody reads any more: without this, the rows that nobody read would be an error at
 * the end. */
static void leave_table(const slc_perf_report *report)
{
    if (report->table == stdout && !freopen("/dev/null", "w", stdout)) return;
    fprintf(stderr, "%s: nobody reads the table any more: stopped after %" PRIu64 " row%s\n", command,
            report->row_count, report->row_count == 1 ? "" : "s");
}

static int conclude(const perf_run *run)
{
    if (run->unread && run->speaks) leave_table(&run->report);
    if (run->file.status) return EXIT_FAILED;
    if (run->unread) return EXIT_UNREAD;
    return run->report.wrong ? EXIT_FAILED : 0;
}

/* Finds what needs no rank before any is started. */
static sluice_status check_world(const slc_perf_options *o)
{
    sluice_world_config config;
    sluice_status status = sluice_world_config_init(&config);
    return status ? status : slc_result_file_probe(o->json);
}

static int measure_here(const slc_perf_options *o)
{
    sluice_world_config config;
    perf_run run = {.options = o};
    sluice_status status = sluice_world_config_init(&config);
    slc_choose_transport(o->device, &config);
    if (!status && *o->throttle) config.throttle = o->throttle;
    if (!status && o->timeout_s > 0) config.timeout_s = o->timeout_s;
    if (!status && *o->path) config.direct = !strcmp(o->path, "direct");
    if (!status && o->ranks && (int)o->ranks != config.size)
        status = slc_error(SLUICE_ERR_MISMATCH, "--ranks %u, but the launcher started %d", o->ranks, config.size);
    if (status) return slc_rank_refuse(command);
    signal(SIGPIPE, SIG_IGN); /* a reader that leaves is seen where the table is written */
    status = sluice_world_create(&config, &run.world);
    run.speaks = config.rank == 0;
    if (!status) status = measure_all(&run);
    if (!status && run.report.wrong) fprintf(stderr, "%s: %" PRIu64 " elements are wrong\n", command, run.report.wrong);
    if (!status) status = sluice_world_barrier(run.world);
    if (run.file.status) slc_print_error(command, run.file.why);
    int code = status ? slc_rank_fail(command, run.world) : conclude(&run);
    if (!status) sluice_world_destroy(run.world);
    slc_perf_report_close(&run.report);
    return code;
}

static int run_perf(int argc, char **argv)
{
    slc_perf_options options;
    slc_perf_options_parse(argc, argv, &options);
    if (!slc_launched() && check_world(&options)) return slc_fail(command);
    if (slc_launched()) return measure_here(&options);
    int code, ranks = options.ranks ? (int)options.ranks : 1;
    return slc_launch_self(ranks, "perf", argv + 1, NULL, &code) ? slc_fail(command) : code;
}

const sluice_command slc_command_perf = {"perf", "measures and checks collectives and transfers, as nccl-tests does",
                                         run_perf};
