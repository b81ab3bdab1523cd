/* `sluice nccl`: what the NCCL shim recorded. */
#include "bench/cli/command.h"
#include "bench/cli/options/command_line.h"
#include "bench/cli/outcome.h"
#include "bench/cli/output/result_file.h"
#include "bench/nccl/profile/profile.h"
#include "bench/nccl/summary/summary.h"
#include "bench/nccl/summary/tables.h"
#include "bench/nccl/summary/timeline.h"
#include "bench/nccl/watch/watch.h"
#include "bench/plan/words/profile_table.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct {
    const char **paths;
    size_t path_count;
    const char *json, *timeline, *profile, *compute;
    uint64_t reserved_bytes;
    bool watch, columns;
    double stall_s;
} nccl_options;

#define FIELD(name) SLC_OPTION_FIELD(nccl_options, name)

static const slc_option option_rows[] = {
    {"json", "FILE", 0, SLC_OPTION_TEXT, FIELD(json), NULL, 0,
     "Write the summary as JSON; '-': standard output, and no tables"},
    {"timeline", "FILE", 0, SLC_OPTION_TEXT, FIELD(timeline), NULL, 0,
     "Write all calls, and operations whose times are known, as JSON for Perfetto or chrome://tracing; '-': standard "
     "output, and no tables"},
    {"watch", NULL, 0, SLC_OPTION_FLAG, FIELD(watch), NULL, 0,
     "Compare what the ranks call while they run, until a fault is found (exit code 1) or all have ended"},
    {"stall", "SECONDS", 0, SLC_OPTION_REAL, FIELD(stall_s), "10", 0,
     "A rank that others wait for is late after this time", 0.01, 1e6},
    {"output", "FILE", 0, SLC_OPTION_TEXT, FIELD(profile), NULL, 0,
     "Write a profile for sluice plan (needs records made with SLUICE_SHIM_TIME=1); '-': standard output, and no "
     "tables",
     .letter = 'o'},
    {"compute", "DIR", 0, SLC_OPTION_TEXT, FIELD(compute), NULL, 0,
     "With -o: take compute times from these records, of a run of the same program on one rank"},
    {"reserved", "SIZE", 0, SLC_OPTION_SIZE, FIELD(reserved_bytes), "0", 0,
     "With -o: what the program keeps itself on a rank, as 4GiB: activations, which no record shows"},
    {"columns", NULL, 0, SLC_OPTION_FLAG, FIELD(columns), NULL, SLC_OPTION_HIDDEN,
     "Print what the keys of the JSON mean, as Markdown"},
    {0},
};

static const char doc[] =
    "Reads what the NCCL shim recorded of programs that run or have ended: how much they communicated, in which "
    "operations, sizes and steps.\v"
    "DIR is a folder of records, or one record; several folders may hold those of several hosts. Without DIR it is "
    "SLUICE_SHIM_DIR, or /dev/shm/sluice-UID. To make records, start the program with the shim and keep them:\n"
    "  LD_PRELOAD=/usr/local/lib/libsluice_nccl.so SLUICE_SHIM_KEEP=1 python train.py\n"
    "With SLUICE_SHIM_TIME=1 they have the operations' times.\n\n"
    "Where ranks called different things, or wait for a rank that does not come, a line on standard error says who, "
    "where and from which code, and the exit code is 1. A rank that runs is late when nothing has moved for --stall "
    "seconds; --watch looks until there is a fault.\n\n"
    "Examples:\n"
    "  sluice nccl\n"
    "  sluice nccl records-of-host-a records-of-host-b --timeline step.json\n"
    "  sluice nccl --watch --stall 30\n"
    "  sluice nccl -o profile.json --reserved 4GiB && sluice plan --profile profile.json --budget 60%\n"
    "More: docs/nccl-shim.md";

static sluice_status take_path(void *options, char *path)
{
    nccl_options *o = options;
    o->paths[o->path_count++] = path;
    return SLUICE_OK;
}

static sluice_status check_options(void *options)
{
    const nccl_options *o = options;
    const char *why = NULL;
    if (slc_is_standard_output(o->json) + slc_is_standard_output(o->timeline) + slc_is_standard_output(o->profile) > 1)
        why = "only one of --json, --timeline and -o can be standard output";
    else if (!o->profile && (o->compute || o->reserved_bytes))
        why = "--compute and --reserved go with -o";
    else if (o->watch && o->profile)
        why = "a profile is written without --watch";
    else if (o->watch && o->timeline)
        why = "--timeline is written without --watch";
    return why ? slc_error(SLUICE_ERR_ARGUMENT, "%s", why) : SLUICE_OK;
}

/* The folder in which the shim of this user's programs records, as plugins/nccl/shim has it. */
static const char *standard_folder(char *room, size_t size)
{
    const char *given = getenv("SLUICE_SHIM_DIR");
    snprintf(room, size, "/dev/shm/sluice-%ld", (long)geteuid());
    return given && *given ? given : room;
}

static bool prints_tables(const nccl_options *o)
{
    return !slc_is_standard_output(o->json) && !slc_is_standard_output(o->timeline) &&
           !slc_is_standard_output(o->profile);
}

static sluice_status print_profile(const char *path)
{
    slc_profile *profile = NULL;
    sluice_status status = slc_profile_read(path, &profile);
    if (status) return status;
    printf("\nprofile\n");
    slc_profile_table(stdout, profile);
    printf("written to %s\n", path);
    slc_profile_destroy(profile);
    return SLUICE_OK;
}

static sluice_status write_profile(const nccl_options *o, const slc_nccl_records *records)
{
    slc_nccl_records compute = {0};
    sluice_status status = o->compute ? slc_nccl_records_read(&o->compute, 1, &compute) : SLUICE_OK;
    slc_nccl_records_tell_refused(&compute, 0);
    if (!status) status = slc_nccl_profile(records, o->compute ? &compute : NULL, o->reserved_bytes, o->profile);
    slc_nccl_records_free(&compute);
    return status || !prints_tables(o) ? status : print_profile(o->profile);
}

static sluice_status report(const nccl_options *o, const slc_nccl_records *records)
{
    slc_nccl_summary summary;
    slc_outcome outcome = {0};
    sluice_status status = slc_nccl_summarize(records, &summary);
    slc_outcome_add(&outcome, status);
    if (!status && prints_tables(o)) slc_nccl_summary_print(&summary, stdout);
    if (!status && o->json)
        slc_outcome_add(&outcome, slc_result_file_write_json(o->json, slc_nccl_summary_json(&summary)));
    if (o->timeline) slc_outcome_add(&outcome, slc_nccl_timeline_write(records, o->timeline));
    if (o->profile) slc_outcome_add(&outcome, write_profile(o, records));
    slc_nccl_summary_free(&summary);
    return slc_outcome_status(&outcome);
}

/* Reports what was recorded so far, and the faults in it. */
static int report_once(const nccl_options *o)
{
    slc_nccl_records records;
    sluice_status status = slc_nccl_records_read(o->paths, o->path_count, &records);
    if (!status) slc_nccl_records_tell_refused(&records, 0);
    if (!status) status = report(o, &records);
    const int code = status ? slc_fail("sluice nccl") : slc_nccl_judge(&records, o->paths, o->path_count, o->stall_s);
    slc_nccl_records_free(&records);
    return code;
}

static int run_nccl(int argc, char **argv)
{
    char folder[64];
    const slc_command_line line = {
        .rows = option_rows, .arguments = "[DIR...]", .take = take_path, .check = check_options, .doc = doc};
    nccl_options o = {.paths = calloc((size_t)argc + 1, sizeof *o.paths)};
    if (!o.paths) {
        slc_error(SLUICE_ERR_MEMORY, "options");
        return slc_fail("sluice nccl");
    }
    slc_command_line_parse(&line, argc, argv, &o);
    if (o.columns) {
        slc_nccl_tables_describe(stdout);
        free(o.paths);
        return 0;
    }
    if (!o.path_count) o.paths[o.path_count++] = standard_folder(folder, sizeof folder);
    int code = o.watch ? slc_nccl_watch(o.paths, o.path_count, o.stall_s, o.json) : report_once(&o);
    free(o.paths);
    return code;
}

const sluice_command slc_command_nccl = {"nccl", "shows what the NCCL shim recorded of a program", run_nccl};
