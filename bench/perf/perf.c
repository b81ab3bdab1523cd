/* `sluice perf`: its command line and the table of measured collectives, with nccl-tests' flags and columns. */
#include "bench/cli/command.h"
#include "bench/cli/error_line.h"
#include "bench/cli/outcome.h"
#include "bench/perf/measure.h"
#include "bench/cli/result_file.h"
#include "bench/cli/rank_report.h"
#include "bench/launch/self_launch.h"
#include "bench/cli/throttle_option.h"
#include "bench/cli/parse.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"

#include <argp.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <sluice/world.h>
#include <stdlib.h>
#include <string.h>

static const char command[] = "sluice perf";

enum {
    KEY_OP = 256,
    KEY_RANKS,
    KEY_BLOCK,
    KEY_PATH,
    KEY_THROTTLE,
    KEY_TIMEOUT,
    KEY_JSON,
    KEY_AHEAD,
    KEY_BESIDE,
    KEY_DTYPE,
    KEY_IN_PLACE,
    KEY_COPY
};

typedef struct {
    const char *op, *dtype, *path, *throttle, *json;
    uint64_t least_bytes, most_bytes, step_bytes, block_bytes;
    double factor, timeout_s;
    uint32_t iterations, warm_up, ranks, ahead;
    bool check, beside, in_place, copy;
} perf_options;

static const struct argp_option option_rows[] = {
    {"op", KEY_OP, "NAME=all_reduce,reduce_scatter,all_gather,broadcast,reduce_scatter_all_gather", 0,
     "all_reduce, reduce_scatter, all_gather, broadcast, or reduce_scatter_all_gather: each block reduced, then "
     "gathered "
     "(default all_reduce)",
     0},
    {"minbytes", 'b', "SIZE", 0, "Smallest size, as 64K or 1M (default 64K)", 0},
    {"maxbytes", 'e', "SIZE", 0, "Largest size (default 16M)", 0},
    {"stepfactor", 'f', "X", 0, "Factor between sizes (default 4)", 0},
    {"stepbytes", 'i', "SIZE", 0, "Instead of a factor: step between sizes", 0},
    {"iters", 'n', "N", 0, "Iterations that are measured (default 20)", 0},
    {"warmup_iters", 'w', "N", 0, "Iterations before them (default 5)", 0},
    {"check", 'c', "0|1", 0, "Check the results (default 1)", 0},
    {"ranks", KEY_RANKS, "N", 0, "Start N ranks on this machine", 1},
    {"block", KEY_BLOCK, "BYTES", 0, "Base block (default 1MiB)", 1},
    {"dtype", KEY_DTYPE, "TYPE=fp32,bf16", 0, "fp32 or bf16 (default fp32)", 1},
    {"in-place", KEY_IN_PLACE, NULL, 0, "reduce_scatter, all_gather: in one buffer, as the others always are", 1},
    {"path", KEY_PATH, "HOW=direct,messages", 0,
     "direct: the memory of peers on this host; messages: the transport (default: SLUICE_COMM_DIRECT)", 1},
    {"ahead", KEY_AHEAD, "N", 0,
     "reduce_scatter_all_gather: blocks that are reduced before the first is gathered (default 4)", 1},
    {"beside", KEY_BESIDE, NULL, 0, "Multiply matrices meanwhile; say how fast, alone and beside", 1},
    {"copy", KEY_COPY, NULL, 0, "Time plain copies too, of as many bytes in all ranks at once; say the ratio", 1},
    {"throttle", KEY_THROTTLE, "RATE", 0, "Slow the network down, as 1gbit,50us", 1},
    {"timeout", KEY_TIMEOUT, "S", 0, "A rank that is silent or absent this long is an error", 1},
    {"json", KEY_JSON, "FILE", 0, "Write the rows as JSON; '-': standard output", 1},
    {0},
};

static const struct {
    const char *name;
    slc_op_kind kind;
    const char *sum; /* redop of nccl-tests */
    bool gather_after;
} operations[] = {
    {"all_reduce", SLC_ALL_REDUCE, "sum", false},
    {"reduce_scatter", SLC_REDUCE_SCATTER, "sum", false},
    {"all_gather", SLC_ALL_GATHER, "none", false},
    {"broadcast", SLC_BROADCAST, "none", false},
    {"reduce_scatter_all_gather", SLC_REDUCE_SCATTER, "sum", true},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* ---- Options ---- */

static int find_operation(const char *name)
{
    for (int i = 0; i < OPERATIONS; i++)
        if (!strcmp(operations[i].name, name)) return i;
    return -1;
}

static double number(const char *text, double least, double most, struct argp_state *state, const char *option)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        argp_error(state, "%s: \"%s\" is not between %g and %g", option, text, least, most);
    return value;
}

static uint32_t whole(const char *text, double least, double most, struct argp_state *state, const char *option)
{
    double value = number(text, least, most, state, option);
    if (value != floor(value)) argp_error(state, "%s: \"%s\" is no whole number", option, text);
    return (uint32_t)value;
}

static uint64_t bytes(const char *text, struct argp_state *state, const char *option)
{
    uint64_t value = 0;
    if (slc_parse_bytes(text, &value) || !value || value > UINT64_C(1) << 40)
        argp_error(state, "%s: \"%s\" is no size from 1 byte to 1 TiB", option, text);
    return value;
}

static void check_options(const perf_options *o, struct argp_state *state)
{
    if (find_operation(o->op) < 0)
        argp_error(state, "--op %s: use all_reduce, reduce_scatter, all_gather, broadcast or reduce_scatter_all_gather",
                   o->op);
    if (*o->path && strcmp(o->path, "direct") && strcmp(o->path, "messages"))
        argp_error(state, "--path %s: use direct or messages", o->path);
    if (o->copy && o->beside) argp_error(state, "--copy and --beside measure different things: give one of them");
    if (strcmp(o->dtype, "fp32") && strcmp(o->dtype, "bf16"))
        argp_error(state, "--dtype %s: use fp32 or bf16", o->dtype);
    if (slc_throttle_check(o->throttle)) argp_error(state, "%s", sluice_last_error());
    if (o->least_bytes > o->most_bytes) argp_error(state, "-b is larger than -e");
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    perf_options *o = state->input;
    switch (key) {
    case KEY_OP: o->op = text; return 0;
    case 'b': o->least_bytes = bytes(text, state, "-b"); return 0;
    case 'e': o->most_bytes = bytes(text, state, "-e"); return 0;
    case 'f': o->factor = number(text, 1.0001, 1e6, state, "-f"); return 0;
    case 'i': o->step_bytes = bytes(text, state, "-i"); return 0;
    case 'n': o->iterations = whole(text, 1, 1e6, state, "-n"); return 0;
    case 'w': o->warm_up = whole(text, 0, 1e6, state, "-w"); return 0;
    case 'c': o->check = number(text, 0, 1e6, state, "-c") > 0; return 0;
    case KEY_RANKS: o->ranks = whole(text, 1, SLUICE_RANKS_MOST, state, "--ranks"); return 0;
    case KEY_BLOCK: o->block_bytes = bytes(text, state, "--block"); return 0;
    case KEY_PATH: o->path = text; return 0;
    case KEY_THROTTLE: o->throttle = text; return 0;
    case KEY_TIMEOUT: o->timeout_s = number(text, 0.001, 1e9, state, "--timeout"); return 0;
    case KEY_JSON: o->json = text; return 0;
    case KEY_AHEAD: o->ahead = whole(text, 0, 1024, state, "--ahead"); return 0;
    case KEY_BESIDE: o->beside = true; return 0;
    case KEY_DTYPE: o->dtype = text; return 0;
    case KEY_IN_PLACE: o->in_place = true; return 0;
    case KEY_COPY: o->copy = true; return 0;
    case ARGP_KEY_ARG: argp_error(state, "\"%s\" is no option", text); return 0;
    case ARGP_KEY_END: check_options(o, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Output of rank 0 ---- */

typedef struct {
    FILE *table;
    slc_result_file file;
    json_t *rows;
    double bus_sum_bytes_per_s; /* of all rows */
    uint64_t row_count;
} perf_output;

static sluice_status open_output(const perf_options *o, perf_output *out)
{
    out->table = slc_is_standard_output(o->json) ? stderr : stdout;
    out->rows = json_array();
    if (!out->rows) return slc_error(SLUICE_ERR_MEMORY, "rows");
    return slc_result_file_open(o->json, &out->file);
}

static void print_head(FILE *table, const perf_options *o, const sluice_world *world)
{
    fprintf(table, "# %s: %d ranks, path %s, transport %s, block %" PRIu64 " bytes, %u iterations after %u\n", o->op,
            sluice_world_size(world), sluice_world_path(world), sluice_world_transport(world), o->block_bytes,
            o->iterations, o->warm_up);
    fprintf(table, "# %10s %12s %8s %8s %12s %10s %10s %8s%s%s\n", "size", "count", "type", "redop", "time", "algbw",
            "busbw", "#wrong", o->beside ? "      alone     beside  share" : "",
            o->copy ? "         copy of copy" : "");
    fprintf(table, "# %10s %12s %8s %8s %12s %10s %10s %8s%s%s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)",
            "(GB/s)", "", o->beside ? "   (GFLOP/s) (GFLOP/s)" : "", o->copy ? "         (us)" : "");
}

static const char *type_name(const perf_options *o) /* as nccl-tests names types */
{
    return strcmp(o->dtype, "bf16") ? "float" : "bfloat16";
}

static sluice_status put_row(perf_output *out, const perf_options *o, const slc_perf_row *row)
{
    const char *sum = operations[find_operation(o->op)].sum, *type = type_name(o);
    double us = row->time_s * 1e6, algbw = row->algorithm_bytes_per_s * 1e-9, busbw = row->bus_bytes_per_s * 1e-9;
    fprintf(out->table, "  %10" PRIu64 " %12" PRIu64 " %8s %8s %12.2f %10.3f %10.3f ", row->bytes, row->count, type,
            sum, us, algbw, busbw);
    if (o->check)
        fprintf(out->table, "%8" PRIu64, row->wrong);
    else
        fprintf(out->table, "%8s", "N/A");
    if (o->beside)
        fprintf(out->table, " %10.2f %10.2f %6.3f", row->compute_alone * 1e-9, row->compute_beside * 1e-9,
                row->compute_beside / row->compute_alone);
    if (o->copy && row->copy_time_s > 0)
        fprintf(out->table, " %12.2f %7.3f", row->copy_time_s * 1e6, row->copy_time_s / row->time_s);
    else if (o->copy)
        fprintf(out->table, " %12s %7s", "N/A", "N/A");
    fputc('\n', out->table);
    fflush(out->table);
    out->bus_sum_bytes_per_s += row->bus_bytes_per_s;
    out->row_count++;
    json_t *item = json_pack("{s:I, s:I, s:s, s:s, s:f, s:f, s:f, s:o}", "size", (json_int_t)row->bytes, "count",
                             (json_int_t)row->count, "type", type, "redop", sum, "time_us", us, "algbw", algbw, "busbw",
                             busbw, "wrong", o->check ? json_integer((json_int_t)row->wrong) : json_null());
    if (item && o->beside) {
        json_object_set_new(item, "compute_alone_gflops", json_real(row->compute_alone * 1e-9));
        json_object_set_new(item, "compute_beside_gflops", json_real(row->compute_beside * 1e-9));
    }
    if (item && o->copy) {
        bool copied = row->copy_time_s > 0;
        json_object_set_new(item, "copy_time_us", copied ? json_real(row->copy_time_s * 1e6) : json_null());
        json_object_set_new(item, "of_copy", copied ? json_real(row->copy_time_s / row->time_s) : json_null());
    }
    return item && !json_array_append_new(out->rows, item) ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "rows");
}

/* The two lines with which nccl-tests ends, for scripts that look for them. */
static void print_end(const perf_output *out, const perf_options *o, uint64_t wrong)
{
    if (o->check)
        fprintf(out->table, "# Out of bounds values : %" PRIu64 " %s\n", wrong, wrong ? "FAILED" : "OK");
    else
        fputs("# Out of bounds values : not checked\n", out->table);
    fprintf(out->table, "# Avg bus bandwidth    : %g\n",
            out->row_count ? out->bus_sum_bytes_per_s * 1e-9 / (double)out->row_count : 0.0);
}

static sluice_status write_json(perf_output *out, const perf_options *o, const sluice_world *world)
{
    if (!out->file.file) return SLUICE_OK;
    json_t *all = json_pack("{s:s, s:i, s:s, s:s, s:I, s:O}", "op", o->op, "world", sluice_world_size(world), "path",
                            sluice_world_path(world), "transport", sluice_world_transport(world), "block_bytes",
                            (json_int_t)o->block_bytes, "rows", out->rows);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "rows");
    slc_result_file_put_json(&out->file, all);
    json_decref(all);
    return slc_result_file_commit(&out->file);
}

static void close_output(perf_output *out)
{
    slc_result_file_abandon(&out->file);
    json_decref(out->rows);
}

/* ---- Measuring ---- */

static uint64_t next_size(const perf_options *o, uint64_t size)
{
    if (o->step_bytes) return size + o->step_bytes;
    double next = (double)size * o->factor;
    return (uint64_t)next > size ? (uint64_t)next : size + 1;
}

/* `out` NULL: this rank only takes part. Sizes that are rounded to the same size are measured once. */
static sluice_status measure_all(slc_perf *perf, const perf_options *o, perf_output *out, uint64_t *wrong)
{
    sluice_status status = SLUICE_OK;
    uint64_t last = 0;
    for (uint64_t size = o->least_bytes; !status && size <= o->most_bytes; size = next_size(o, size)) {
        slc_perf_row row;
        status = slc_perf_measure(perf, size, &row);
        if (status || row.bytes == last) continue;
        last = row.bytes;
        *wrong += row.wrong;
        if (out) status = put_row(out, o, &row);
    }
    return status;
}

static sluice_status measure_in(sluice_world *world, const perf_options *o, uint64_t *wrong, slc_outcome *file)
{
    int operation = find_operation(o->op);
    const slc_perf_config config = {.kind = operations[operation].kind,
                                    .gather_after = operations[operation].gather_after,
                                    .dtype = strcmp(o->dtype, "bf16") ? SLUICE_FP32 : SLUICE_BF16,
                                    .in_place = o->in_place,
                                    .ahead = o->ahead,
                                    .beside = o->beside,
                                    .copy = o->copy,
                                    .most_bytes = o->most_bytes,
                                    .block_bytes = o->block_bytes,
                                    .iterations = o->iterations,
                                    .warm_up = o->warm_up,
                                    .check = o->check};
    bool speaks = sluice_world_rank(world) == 0;
    slc_perf *perf = NULL;
    perf_output out = {0};
    sluice_status status = speaks ? open_output(o, &out) : SLUICE_OK;
    if (!status) status = slc_perf_open(world, &config, &perf);
    if (!status && speaks) print_head(out.table, o, world);
    if (!status) status = measure_all(perf, o, speaks ? &out : NULL, wrong);
    if (!status && speaks) print_end(&out, o, *wrong);
    if (!status && speaks) slc_outcome_add(file, write_json(&out, o, world));
    slc_perf_close(perf);
    close_output(&out);
    return status;
}

/* Finds what needs no rank before any is started. */
static sluice_status check_world(const perf_options *o)
{
    sluice_world_config config;
    sluice_status status = sluice_world_config_init(&config);
    return status ? status : slc_result_file_probe(o->json);
}

static int measure_here(const perf_options *o)
{
    sluice_world_config config;
    sluice_world *world = NULL;
    uint64_t wrong = 0;
    slc_outcome file = {0}; /* only rank 0 writes files: a failure to do so is not one of the other ranks */
    sluice_status status = sluice_world_config_init(&config);
    if (!status && *o->throttle) config.throttle = o->throttle;
    if (!status && o->timeout_s > 0) config.timeout_s = o->timeout_s;
    if (!status && *o->path) config.direct = !strcmp(o->path, "direct");
    if (!status && o->ranks && (int)o->ranks != config.size)
        status = slc_error(SLUICE_ERR_MISMATCH, "--ranks %u, but the launcher started %d", o->ranks, config.size);
    if (status) return slc_rank_refuse(command);
    status = sluice_world_create(&config, &world);
    if (!status) status = measure_in(world, o, &wrong, &file);
    if (!status && wrong && config.rank == 0) fprintf(stderr, "sluice perf: %" PRIu64 " elements are wrong\n", wrong);
    if (!status) status = sluice_world_barrier(world);
    if (file.status) slc_print_error(command, file.why);
    if (status) return slc_rank_fail(command, world);
    sluice_world_destroy(world);
    if (file.status) return EXIT_FAILED;
    return wrong && config.rank == 0 ? EXIT_FAILED : 0;
}

static int run_perf(int argc, char **argv)
{
    const struct argp parser = {
        .options = option_rows,
        .parser = parse_option,
        .doc = "Measures a collective at a range of sizes, and checks its results.\v"
               "Sizes and columns are those of nccl-tests: size is the whole buffer, algbw is size over time, busbw is "
               "what the busiest link carried. A wrong element makes the exit code 1.\n\n"
               "Examples:\n"
               "  sluice perf --op all_reduce --ranks 2 -b 64K -e 64M -f 4\n"
               "  sluice perf --op all_gather --ranks 2 -b 64M -e 64M --copy\n"
               "  sluice run -n 4 -- sluice perf --op all_gather --path messages\n"
               "More: docs/benchmarks.md",
    };
    perf_options options = {.op = "all_reduce",
                            .dtype = "fp32",
                            .path = "",
                            .throttle = "",
                            .least_bytes = 64 << 10,
                            .most_bytes = 16 << 20,
                            .block_bytes = 1 << 20,
                            .factor = 4,
                            .iterations = 20,
                            .warm_up = 5,
                            .ahead = 4,
                            .check = true};
    slc_parse(&parser, argc, argv, 0, &options);
    if (!slc_launched() && check_world(&options)) return slc_fail(command);
    if (slc_launched()) return measure_here(&options);
    int code, ranks = options.ranks ? (int)options.ranks : 1;
    return slc_launch_self(ranks, "perf", argv + 1, NULL, &code) ? slc_fail(command) : code;
}

const sluice_command slc_command_perf = {"perf", "measures and checks collectives, as nccl-tests does", run_perf};
