/* `sluice nccl`: what the NCCL shim recorded. */
#include "bench/cli/command.h"
#include "bench/cli/options/parse.h"
#include "bench/cli/number.h"
#include "bench/cli/outcome.h"
#include "bench/cli/output/result_file.h"
#include "bench/nccl/profile/profile.h"
#include "bench/nccl/summary/summary.h"
#include "bench/nccl/summary/timeline.h"
#include "bench/nccl/watch/watch.h"
#include "bench/plan/profile_table.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"

#include <argp.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_JSON = 256, KEY_TIMELINE, KEY_WATCH, KEY_STALL, KEY_COMPUTE, KEY_RESERVED };

typedef struct {
    const char **paths;
    size_t path_count;
    const char *json, *timeline, *profile, *compute;
    uint64_t reserved_bytes;
    bool watch;
    double stall_s;
} nccl_options;

static const struct argp_option option_rows[] = {
    {"json", KEY_JSON, "FILE", 0, "Write the summary as JSON; '-': standard output, and no tables", 0},
    {"timeline", KEY_TIMELINE, "FILE", 0,
     "Write all calls, and operations whose times are known, as JSON for Perfetto or chrome://tracing; '-': standard "
     "output, and no tables",
     0},
    {"watch", KEY_WATCH, NULL, 0,
     "Compare what the ranks call while they run, until a fault is found (exit code 1) or all have ended", 0},
    {"stall", KEY_STALL, "SECONDS", 0, "A rank that others wait for is late after this time (default 10)", 0},
    {"output", 'o', "FILE", 0,
     "Write a profile for sluice plan (needs records made with SLUICE_SHIM_TIME=1); '-': standard output, and no "
     "tables",
     0},
    {"compute", KEY_COMPUTE, "DIR", 0,
     "With -o: take compute times from these records, of a run of the same program on one rank", 0},
    {"reserved", KEY_RESERVED, "SIZE", 0,
     "With -o: what the program keeps itself on a rank, as 4GiB: activations, which no record shows (default 0)", 0},
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

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    nccl_options *o = state->input;
    switch (key) {
    case KEY_JSON: o->json = text; return 0;
    case KEY_TIMELINE: o->timeline = text; return 0;
    case KEY_WATCH: o->watch = true; return 0;
    case KEY_STALL: o->stall_s = slc_number(text, 0.01, 1e6, false, state, "--stall"); return 0;
    case 'o': o->profile = text; return 0;
    case KEY_COMPUTE: o->compute = text; return 0;
    case KEY_RESERVED:
        if (slc_parse_bytes(text, &o->reserved_bytes)) argp_error(state, "--reserved: %s", sluice_last_error());
        return 0;
    case ARGP_KEY_ARG: o->paths[o->path_count++] = text; return 0;
    case ARGP_KEY_END:
        if (slc_is_standard_output(o->json) + slc_is_standard_output(o->timeline) + slc_is_standard_output(o->profile) >
            1)
            argp_error(state, "only one of --json, --timeline and -o can be standard output");
        if (!o->profile && (o->compute || o->reserved_bytes)) argp_error(state, "--compute and --reserved go with -o");
        if (o->watch && o->profile) argp_error(state, "a profile is written without --watch");
        if (o->watch && o->timeline) argp_error(state, "--timeline is written without --watch");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* The folder in which the shim of this user's programs records, as plugins/nccl/shim has it. */
static const char *standard_folder(char *room, size_t size)
{
    const char *given = getenv("SLUICE_SHIM_DIR");
    snprintf(room, size, "/dev/shm/sluice-%ld", (long)geteuid());
    return given && *given ? given : room;
}

static sluice_status write_json(const slc_nccl_summary *summary, const char *path)
{
    json_t *json = slc_nccl_summary_json(summary);
    if (!json) return slc_error(SLUICE_ERR_MEMORY, "summary for %s", path);
    sluice_status status = slc_result_file_write_json(path, json);
    json_decref(json);
    return status;
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
    if (!status && o->json) slc_outcome_add(&outcome, write_json(&summary, o->json));
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
    const struct argp parser = {.options = option_rows, .parser = parse_option, .args_doc = "[DIR...]", .doc = doc};
    nccl_options o = {.paths = calloc((size_t)argc + 1, sizeof *o.paths), .stall_s = 10};
    if (!o.paths) {
        slc_error(SLUICE_ERR_MEMORY, "options");
        return slc_fail("sluice nccl");
    }
    slc_parse(&parser, argc, argv, 0, &o);
    if (!o.path_count) o.paths[o.path_count++] = standard_folder(folder, sizeof folder);
    int code = o.watch ? slc_nccl_watch(o.paths, o.path_count, o.stall_s, o.json) : report_once(&o);
    free(o.paths);
    return code;
}

const sluice_command slc_command_nccl = {"nccl", "shows what the NCCL shim recorded of a program", run_nccl};
