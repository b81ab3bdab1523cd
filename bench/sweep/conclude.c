/* Every output is written, even if another one has failed. tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/conclude.h"

#include "bench/cli/command.h"
#include "bench/cli/outcome.h"
#include "bench/sweep/figures/figures.h"
#include "bench/sweep/finished.h"
#include "bench/sweep/figures/label.h"
#include "bench/sweep/opening.h"
#include "bench/sweep/steady.h"
#include "bench/sweep/figures/table.h"
#include "bench/train/options/people.h"

FILE *slc_bench_people(const slc_bench_options *options)
{
    return slc_training_people(&options->training);
}

/* Counts the cells of the sweep. Budgets that were never found leave "auto:N" in the list, and none of its cells
 * finished. */
static sluice_status count_cells(const slc_bench_results *results, slc_bench_options *options, slc_bench_tally *tally)
{
    const slc_bench_ends ends = slc_bench_results_ends(results);
    sluice_status status = SLUICE_OK;
    if (ends.least && slc_bench_budgets_are_found(options)) status = slc_bench_budgets_set(options, &ends);
    return status ? status : slc_bench_tally_make(results, options, tally);
}

/* Warns if the machine seems to have been busy while runs were made. */
static void warn_of_busy_machine(FILE *out, const json_t *runs)
{
    size_t i, busy = 0;
    double worst = 0;
    json_t *run;
    json_array_foreach ((json_t *)runs, i, run) {
        const double median = json_number_value(json_object_get(run, "step_s")),
                     least = json_number_value(json_object_get(run, "step_min_s"));
        if (!slc_bench_is_disturbed(median, least)) continue;
        busy++;
        if (median / least > worst) worst = median / least;
    }
    if (busy)
        fprintf(
            out,
            "warning: in %zu of %zu runs the median step took up to %.1f times as long as the fastest one: something "
            "else used these cores, and comparisons are worth little; run it again when the machine is quiet\n",
            busy, json_array_size(runs), worst);
}

int slc_bench_conclude(const slc_bench_results *results, slc_bench_options *options)
{
    FILE *out = slc_bench_people(options);
    slc_outcome outcome = {0};
    slc_bench_tally tally = {0};
    slc_bench_label_rows((json_t *const[]){results->runs, results->misfits, results->failures}, 3);
    slc_outcome_add(&outcome, slc_bench_save(results, options));
    slc_outcome_add(&outcome, slc_bench_results_write_json(results, options->training.json));
    slc_outcome_add(&outcome, slc_bench_results_write_csv(results, options->training.csv));
    slc_outcome_add(&outcome, count_cells(results, options, &tally));
    bool sound = slc_bench_table_summary(out, results);
    slc_bench_table_tally(out, &tally);
    warn_of_busy_machine(out, results->runs);
    if (!outcome.status) fprintf(out, "results: %s/results.csv, results.json\n", options->output);
    slc_outcome_add(&outcome, slc_bench_picture_draw(results, options->output, out));
    slc_outcome_add(&outcome, slc_bench_micro_batches_draw(results, options->output, out));
    slc_outcome_add(&outcome, slc_bench_losses_draw(results, options->output, out));
    if (options->demo && !outcome.status) slc_bench_table_demo(out, results, options);
    if (slc_outcome_status(&outcome)) {
        slc_fail("sluice bench");
        return EXIT_FAILED;
    }
    if (tally.cells && tally.misfits == tally.cells) return EXIT_USAGE;
    return sound && !tally.failed ? 0 : EXIT_FAILED;
}
