/* `sluice-lab overhead`: prints the engine's own cost as a table next to the aims.
 * tests/command/measure/overhead_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/outcome.h"
#include "bench/lab/overhead/measure.h"
#include "bench/cli/output/result_file.h"
#include "bench/launch/on_ranks.h"
#include "bench/cli/options/command_line.h"

#include <jansson.h>
#include <sluice/world.h>
#include <stdlib.h>

static const double aim_share = 0.01, aim_block_s = 5e-6, aim_wall = 1.01;

typedef struct {
    slc_overhead_config config;
    uint32_t ranks;
    const char *json;
} overhead_options;

#define FIELD(name) SLC_OPTION_FIELD(overhead_options, name)
static const double LEAST_BYTES = 64, MOST_BYTES = 0x1p34;

static const slc_option option_rows[] = {
    {"ranks", "N", 0, SLC_OPTION_COUNT, FIELD(ranks), NULL, 0, "Start N ranks on this machine", 1, SLUICE_RANKS_MOST},
    {"layers", "N", 0, SLC_OPTION_COUNT, FIELD(config.layers), "8", 0, "Layers of the model", 1, 10000},
    {"layer", "BYTES", 0, SLC_OPTION_SIZE, FIELD(config.layer_bytes), "4MiB", 0, "Parameters of a layer", LEAST_BYTES,
     MOST_BYTES},
    {"block", "BYTES", 0, SLC_OPTION_SIZE, FIELD(config.block_bytes), "64KiB", 0, "Base block", LEAST_BYTES,
     MOST_BYTES},
    {"slot", "TIME", 0, SLC_OPTION_TIME, FIELD(config.slot_s), "4ms", 0, "Compute of a forward or backward"},
    {"rounds", "N", 0, SLC_OPTION_COUNT, FIELD(config.rounds), "9", 0,
     "Rounds; each trains under the engine and by hand", 1, 10000},
    {"steps", "N", 0, SLC_OPTION_COUNT, FIELD(config.steps), "5", 0, "Steps of a run", 1, 100000},
    {"json", "FILE", 0, SLC_OPTION_TEXT, FIELD(json), NULL, 0, "Write the rows as JSON; '-': standard output"},
    {0},
};

static const char doc[] = "Measures what the engine itself costs: trains a model that only computes a fixed time, by "
                          "strategy dp and schedule "
                          "serial, then carries out the same operations, kernels and compute by hand, by turns.\v"
                          "Examples:\n"
                          "  sluice-lab overhead --ranks 2\n"
                          "  sluice-lab overhead --layers 4 --block 64K --json overhead.json";

/* ---- Output of rank 0 ---- */

typedef struct {
    FILE *table;
    slc_result_file file;
    slc_outcome outcome; /* only rank 0 writes: its failure is not the others' */
} overhead_output;

static double own_s(const slc_overhead_row *row)
{
    return row->caller_s + row->thread_s;
}

/* The share of the step's wall time or of its CPU time, whichever is less, because other work on the machine prolongs
 * the wall time. */
static double share(const slc_overhead_row *row)
{
    return own_s(row) / (row->step_s < row->cpu_s ? row->step_s : row->cpu_s);
}

static void print_head(FILE *out, const slc_overhead_config *c, const sluice_world *world)
{
    static const char *const heads[][11] = {
        {"plan", "blocks", "ops", "step", "caller", "thread", "+-", "a block", "an op", "share", "wall:same"},
        {"", "", "", "ms", "us", "us", "us", "us", "us", "%", ""},
        {"aim", "", "", "", "", "", "", "<= 5", "", "<= 1", "<= 1.01"}};
    int ranks = sluice_world_size(world);
    fprintf(out, "# %d rank%s, path %s; %u layers of %.4g KiB in blocks of %.4g KiB, %.4g ms a slot; %u rounds of %u\n",
            ranks, ranks == 1 ? "" : "s", sluice_world_path(world), c->layers, (double)c->layer_bytes / 1024,
            (double)c->block_bytes / 1024, c->slot_s * 1e3, c->rounds, c->steps);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const char *const *h = heads[i];
        fprintf(out, "# %-20s %6s %6s %8s | %8s %8s %7s %8s  %7s %7s  | %9s\n", h[0], h[1], h[2], h[3], h[4], h[5],
                h[6], h[7], h[8], h[9], h[10]);
    }
}

static const char *miss(bool missed)
{
    return missed ? "!" : " ";
}

static void print_row(FILE *out, const slc_overhead_row *row)
{
    double block_s = own_s(row) / row->blocks;
    fprintf(out, "  %-20s %6u %6u %8.2f | %8.1f %8.1f %7.1f %8.2f%s %7.2f %7.3f%s | %9.4f%s\n", "dp:serial",
            row->blocks, row->operations, row->step_s * 1e3, row->caller_s * 1e6, row->thread_s * 1e6,
            row->spread_s * 1e6, block_s * 1e6, miss(block_s > aim_block_s), own_s(row) / row->operations * 1e6,
            share(row) * 100, miss(share(row) > aim_share), row->wall_ratio, miss(row->wall_ratio > aim_wall));
    fflush(out);
}

static sluice_status write_json(overhead_output *out, const slc_overhead_config *c, const sluice_world *world,
                                const slc_overhead_row *row)
{
    json_t *item = json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "strategy", "dp",
                             "schedule", "serial", "operations", (int)row->operations, "blocks", (int)row->blocks,
                             "step_s", row->step_s, "cpu_s", row->cpu_s, "engine_caller_s", row->caller_s,
                             "engine_thread_s", row->thread_s, "engine_spread_s", row->spread_s, "engine_block_s",
                             own_s(row) / row->blocks, "engine_share", share(row), "wall_over_same", row->wall_ratio);
    json_t *all = json_pack(
        "{s:i, s:s, s:i, s:I, s:I, s:f, s:i, s:i, s:{s:f, s:f, s:f}, s:[o]}", "world", sluice_world_size(world), "path",
        sluice_world_path(world), "layers", (int)c->layers, "layer_bytes", (json_int_t)c->layer_bytes, "block_bytes",
        (json_int_t)c->block_bytes, "slot_s", c->slot_s, "rounds", (int)c->rounds, "steps", (int)c->steps, "aims",
        "engine_share", aim_share, "engine_block_s", aim_block_s, "wall_over_same", aim_wall, "rows", item);
    sluice_status status = slc_result_file_put_json(&out->file, all);
    return status ? status : slc_result_file_commit(&out->file);
}

/* ---- Measuring ---- */

static sluice_status measure(sluice_world *world, const overhead_options *o, overhead_output *out)
{
    slc_overhead_row row;
    if (out) print_head(out->table, &o->config, world);
    sluice_status status = slc_overhead_measure(world, &o->config, &row);
    if (status || !out) return status;
    print_row(out->table, &row);
    slc_outcome_add(&out->outcome, write_json(out, &o->config, world, &row));
    return SLUICE_OK;
}

static sluice_status measure_in(const void *context, sluice_world *world, slc_outcome *files)
{
    const overhead_options *o = context;
    if (sluice_world_rank(world)) return measure(world, o, NULL);
    overhead_output out = {.table = slc_is_standard_output(o->json) ? stderr : stdout};
    sluice_status status = slc_result_file_open(o->json, &out.file);
    if (!status) status = measure(world, o, &out);
    slc_result_file_abandon(&out.file);
    *files = out.outcome;
    return status;
}

static int run_overhead(int argc, char **argv)
{
    const slc_command_line line = {.rows = option_rows, .doc = doc};
    overhead_options o = {0};
    slc_command_line_parse(&line, argc, argv, &o);
    return slc_run_on_ranks(o.ranks ? (int)o.ranks : 1, "overhead", argv + 1, measure_in, &o);
}

const sluice_command slc_command_overhead = {"overhead", "measures what the engine itself costs", run_overhead};
