/* `sluice-lab pipeline`: prints the idle share of pipelines whose slots sleep, next to the formula and the simulator,
 * and the engine's own CPU for a message. tests/command/measure/lab_pipeline_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/outcome.h"
#include "bench/cli/options/command_line.h"
#include "bench/cli/output/result_file.h"
#include "bench/lab/pipeline/sleeping.h"
#include "bench/launch/on_ranks.h"
#include "lib/base/status.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double aim_message_s = 50e-6, aim_share = 0.01, aim_idle = 0.05;

typedef struct {
    slc_sleeping model;
    uint32_t ranks;
    const char *micro_batches, *json;
} pipeline_options;

#define FIELD(name) SLC_OPTION_FIELD(pipeline_options, name)

static const slc_option option_rows[] = {
    {"ranks", "N", 0, SLC_OPTION_COUNT, FIELD(ranks), "2", 0, "Stages, each on a rank of this machine", 2,
     SLUICE_RANKS_MOST},
    {"micro-batches", "LIST", 0, SLC_OPTION_TEXT, FIELD(micro_batches), "4,8,16", 0, "Micro-batches of a step"},
    {"pipeline-schedule", "NAME", 0, SLC_OPTION_TEXT, FIELD(model.schedule), "1f1b", 0,
     "1f1b, gpipe, or interleaved with 2 chunks a stage"},
    {"layers", "N", 0, SLC_OPTION_COUNT, FIELD(model.layers), "2", 0, "Layers of a chunk", 1, 1000},
    {"forward", "TIME", 0, SLC_OPTION_TIME, FIELD(model.forward_s), "10ms", 0, "A layer's forward sleeps so long"},
    {"backward", "TIME", 0, SLC_OPTION_TIME, FIELD(model.backward_s), "20ms", 0, "A layer's backward sleeps so long"},
    {"factor", "X", 0, SLC_OPTION_REAL, FIELD(model.factor), "1", 0, "The first layer takes so much longer", 1, 1000},
    {"message", "BYTES", 0, SLC_OPTION_SIZE, FIELD(model.message_bytes), "64KiB", 0, "Bytes that cross a cut", 64,
     0x1p30},
    {"steps", "N", 0, SLC_OPTION_COUNT, FIELD(model.steps), "5", 0, "Steps that count, after two others", 1, 10000},
    {"json", "FILE", 0, SLC_OPTION_TEXT, FIELD(json), NULL, 0, "Write the rows as JSON; '-': standard output"},
    {0},
};

static const char doc[] = "Measures how long the stages of a pipeline stand idle, with layers that sleep a given time, "
                          "next to the formula and "
                          "the simulator, and what the engine itself computes for a message.\v"
                          "Examples:\n"
                          "  sluice-lab pipeline --ranks 4\n"
                          "  sluice-lab pipeline --ranks 2 --factor 2 --pipeline-schedule gpipe --json idle.json";

/* A row of the table: all ranks together. */
typedef struct {
    uint32_t micro_batches;
    double formula;             /* idle share of equal stages; NaN: they are not */
    double simulated, measured; /* idle shares, means of the stages */
    double step_s;              /* the mean of the ranks, as cpu_s a step */
    double cpu_s, message_s;    /* the engine's own CPU on the rank that takes most for a message */
    double all_s, messages;     /* of a step, all ranks together */
    double more_s;              /* what each send or receive takes that the row before lacks; NaN: the first row */
} pipeline_row;

static sluice_status join_ranks(sluice_world *world, const slc_sleeping_row *own, pipeline_row *row)
{
    const int ranks = sluice_world_size(world);
    slc_sleeping_row *all = calloc((size_t)ranks, sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "rows of %d ranks", ranks);
    sluice_status status = sluice_world_all_gather(world, own, sizeof *own, all);
    for (int r = 0; !status && r < ranks; r++) {
        row->measured += all[r].idle_share / ranks;
        row->simulated += all[r].simulated_share / ranks;
        row->step_s += all[r].step_s / ranks;
        row->all_s += all[r].cpu_s;
        row->messages += all[r].messages;
        if (all[r].cpu_s / all[r].messages < row->message_s) continue;
        row->message_s = all[r].cpu_s / all[r].messages;
        row->cpu_s = all[r].cpu_s;
    }
    free(all);
    return status;
}

/* ---- Output of rank 0 ---- */

static double expected(const pipeline_row *row)
{
    return isnan(row->formula) ? row->simulated : row->formula;
}

static const char *miss(bool missed)
{
    return missed ? "!" : " ";
}

static void print_head(FILE *out, const slc_sleeping *m, const sluice_world *world)
{
    fprintf(out,
            "# %d stages, %s, %u chunk%s of %u layer%s, path %s; forward %.4g ms, backward %.4g ms, the first layer "
            "%.4g times; %.4g KiB a message; %u steps\n",
            sluice_world_size(world), m->schedule, m->chunks, m->chunks == 1 ? "" : "s", m->layers,
            m->layers == 1 ? "" : "s", sluice_world_path(world), 1e3 * m->forward_s, 1e3 * m->backward_s, m->factor,
            (double)m->message_bytes / 1024, m->steps);
    fprintf(out, "# %13s %9s | %8s %9s %8s %8s | %10s %9s %9s\n", "micro-batches", "step", "formula", "simulator",
            "measured", "off", "a message", "of a step", "each more");
    fprintf(out, "# %13s %9s | %8s %9s %8s %8s | %10s %9s\n", "aim", "", "", "", "", "<= 5 %", "<= 50 us", "<= 1 %");
}

static void print_row(FILE *out, const pipeline_row *row)
{
    const double off = row->measured / expected(row) - 1, share = row->cpu_s / row->step_s;
    char formula[16] = "-", more[16] = "-";
    if (!isnan(row->formula)) snprintf(formula, sizeof formula, "%.2f %%", 100 * row->formula);
    if (!isnan(row->more_s)) snprintf(more, sizeof more, "%.1f us", 1e6 * row->more_s);
    fprintf(out, "  %13u %6.1f ms | %8s %7.2f %% %6.2f %% %+6.1f %%%s | %7.1f us%s %7.3f %%%s %8s\n",
            row->micro_batches, 1e3 * row->step_s, formula, 100 * row->simulated, 100 * row->measured, 100 * off,
            miss(fabs(off) > aim_idle), 1e6 * row->message_s, miss(row->message_s > aim_message_s), 100 * share,
            miss(share > aim_share), more);
    fflush(out);
}

static json_t *row_json(const pipeline_row *row)
{
    return json_pack("{s:i, s:f, s:o, s:f, s:f, s:f, s:f, s:f, s:o}", "micro_batches", (int)row->micro_batches,
                     "step_s", row->step_s, "formula", isnan(row->formula) ? json_null() : json_real(row->formula),
                     "simulated", row->simulated, "measured", row->measured, "off", row->measured / expected(row) - 1,
                     "cpu_a_message_s", row->message_s, "cpu_share", row->cpu_s / row->step_s, "cpu_each_more_s",
                     isnan(row->more_s) ? json_null() : json_real(row->more_s));
}

static sluice_status write_json(slc_result_file *file, const pipeline_options *o, const sluice_world *world,
                                json_t *rows)
{
    const slc_sleeping *m = &o->model;
    json_t *all =
        json_pack("{s:i, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:I, s:i, s:O}", "stages", sluice_world_size(world),
                  "schedule", m->schedule, "path", sluice_world_path(world), "chunks", (int)m->chunks, "layers",
                  (int)m->layers, "forward_s", m->forward_s, "backward_s", m->backward_s, "factor", m->factor,
                  "message_bytes", (json_int_t)m->message_bytes, "steps", (int)m->steps, "rows", rows);
    sluice_status status = slc_result_file_put_json(file, all);
    return status ? status : slc_result_file_commit(file);
}

/* ---- Measuring ---- */

static sluice_status measure_row(sluice_world *world, const pipeline_options *o, uint32_t micro_batches,
                                 pipeline_row *row)
{
    const double others = sluice_world_size(world) - 1.0;
    slc_sleeping_row own;
    *row = (pipeline_row){.micro_batches = micro_batches,
                          .more_s = NAN,
                          .formula = o->model.factor > 1 ? NAN : others / (o->model.chunks * micro_batches + others)};
    sluice_status status = slc_sleeping_train(world, &o->model, micro_batches, &own);
    return status ? status : join_ranks(world, &own, row);
}

static sluice_status measure(sluice_world *world, const pipeline_options *o, FILE *table, json_t *rows)
{
    sluice_status status = SLUICE_OK;
    const char *at = o->micro_batches;
    pipeline_row before = {0};
    if (table) print_head(table, &o->model, world);
    while (!status && *at) {
        pipeline_row row;
        char *end;
        const unsigned long micro_batches = strtoul(at, &end, 10);
        if (end == at || (*end && *end != ',') || !micro_batches || micro_batches > 10000)
            return slc_error(SLUICE_ERR_ARGUMENT, "--micro-batches %s: give numbers with commas, as 4,8,16",
                             o->micro_batches);
        at = *end ? end + 1 : end;
        status = measure_row(world, o, (uint32_t)micro_batches, &row);
        if (status || !table) continue;
        if (before.messages > 0 && row.messages > before.messages)
            row.more_s = (row.all_s - before.all_s) / (row.messages - before.messages);
        before = row;
        print_row(table, &row);
        json_array_append_new(rows, row_json(&row));
    }
    return status;
}

static sluice_status measure_in(const void *context, sluice_world *world, slc_outcome *files)
{
    const pipeline_options *o = context;
    slc_result_file file = {0};
    if (sluice_world_rank(world)) return measure(world, o, NULL, NULL);
    json_t *rows = json_array();
    sluice_status status = rows ? slc_result_file_open(o->json, &file) : slc_error(SLUICE_ERR_MEMORY, "rows");
    if (!status) status = measure(world, o, slc_is_standard_output(o->json) ? stderr : stdout, rows);
    if (!status) slc_outcome_add(files, write_json(&file, o, world, rows));
    slc_result_file_abandon(&file);
    json_decref(rows);
    return status;
}

static int run_pipeline(int argc, char **argv)
{
    const slc_command_line line = {.rows = option_rows, .doc = doc};
    pipeline_options o = {0};
    slc_command_line_parse(&line, argc, argv, &o);
    o.model.chunks = strcmp(o.model.schedule, "interleaved") ? 1 : 2;
    return slc_run_on_ranks((int)o.ranks, "pipeline", argv + 1, measure_in, &o);
}

const sluice_command slc_command_pipeline = {"pipeline", "measures how long stages of a pipeline stand idle",
                                             run_pipeline};
