/* The table of a sweep, its summary and the progress line. */
#include "bench/sweep/figures/table.h"

#include "bench/cli/output/terminal.h"
#include "bench/sweep/figures/figures.h"
#include "bench/sweep/figures/spread.h"
#include "bench/train/options/onebit_options.h"
#include "lib/base/clock.h"
#include "lib/base/numbers/median.h"
#include "lib/plan/job.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Misfits that are equal under these keys are printed in one line. */
static const char *const misfit_keys[] = {"throttle", "strategy", "schedule", "optimizer", "tied",
                                          "world",    "label",    "source",   NULL};
static const char *const throttle_keys[] = {"throttle", NULL};

/* ---- Rows ---- */

enum { WHOLE_COLUMNS = 150 };

static void put_columns(FILE *out, bool labelled);

void slc_bench_table_continued(FILE *out, const char *folder, const slc_bench_results *results)
{
    const size_t runs = json_array_size(results->runs), misfits = json_array_size(results->misfits);
    if (!runs && !misfits) return;
    fprintf(out, "%s has %zu run%s already, and %zu cell%s that do%s not fit: they are not tried again\n", folder, runs,
            runs == 1 ? "" : "s", misfits, misfits == 1 ? "" : "s", misfits == 1 ? "es" : "");
    fflush(out);
}

void slc_bench_table_begin(FILE *out, const sluice_world *world, const slc_bench_options *options, const char *throttle,
                           uint32_t tokens)
{
    const slc_training_options *t = &options->training;
    int ranks = sluice_world_size(world);
    char batch[32] = "";
    if (options->batches.count == 1) snprintf(batch, sizeof batch, "%" PRIu64 "x", t->batch);
    fprintf(out, "\n%s %s on %d rank%s (%s), throttle %s; %s%u tokens a %s, %" PRIu64 " steps\n", t->model, t->size,
            ranks, ranks == 1 ? "" : "s", sluice_world_path(world), throttle, batch, tokens,
            *batch ? "rank and micro-batch" : "sequence", t->steps);
    put_columns(out, slc_bench_is_labelled(options));
}

/* On a terminal so narrow that it would break the lines, a row has only the most telling figures, on 78 columns. */
static bool is_narrow(FILE *out)
{
    const unsigned columns = slc_terminal_columns(out);
    return columns && columns < WHOLE_COLUMNS;
}

/* Prints the head of the table. `labelled`: cells differ in settings that no other column shows, so there is a column
 * for those. */
static void put_columns(FILE *out, bool labelled)
{
    if (is_narrow(out)) {
        fputs("(the terminal is narrow: results.csv has the columns that are left out)\n", out);
        fprintf(out, "%-14s %-11s %-10s %-10s %9s %9s %9s\n", "optimizer", "strategy", "schedule", "budget", "peak MiB",
                "step ms", "+- ms");
        fflush(out);
        return;
    }
    if (labelled) fprintf(out, "%-34s ", "settings");
    fprintf(out, "%-14s %-12s %-10s %-20s %9s %9s %9s %9s %9s %10s %9s %8s  %s\n", "optimizer", "strategy", "schedule",
            "budget", "needs MiB", "peak MiB", "predicted", "step ms", "+- ms", "exposed ms", "tokens/s", "loss",
            "weights");
    fflush(out);
}

/* On a narrow terminal the label has a line of its own. */
static void put_label(FILE *out, const json_t *row)
{
    const char *label = slc_bench_text(row, "label");
    if (*label) fprintf(out, is_narrow(out) ? "  %s:\n" : "%-34s ", label);
}

static void put_place(FILE *out, const json_t *row)
{
    char budget[64], strategy[64];
    const char *text = slc_bench_text(row, "budget");
    double bytes = slc_bench_number(row, "budget_bytes");
    char *end;
    strtod(text, &end);
    if (is_narrow(out)) {
        put_label(out, row);
        fprintf(out, "%-14s %-11s %-10s %-10.10s", slc_bench_text(row, "optimizer"), slc_bench_strategy(row, strategy),
                slc_bench_text(row, "schedule"), text);
        return;
    }
    if (isnan(bytes) || !strcmp(end, "MiB"))
        snprintf(budget, sizeof budget, "%s", text);
    else
        snprintf(budget, sizeof budget, "%.10s = %.1f MiB", text, bytes / 0x1p20);
    put_label(out, row);
    fprintf(out, "%-14s %-12s %-10s %-20s", slc_bench_text(row, "optimizer"), slc_bench_strategy(row, strategy),
            slc_bench_text(row, "schedule"), budget);
}

static double median_of(const json_t *runs, const json_t *run, const char *number)
{
    return slc_bench_figure(runs, run, number).median;
}

/* Returns the largest value of a number among the runs of a cell, because the needs of auto differ from plan to
 * plan. */
static double most_of(const json_t *runs, const json_t *run, const char *number)
{
    slc_bench_spread all = slc_bench_spread_of(runs, run, slc_bench_cell_keys, number);
    return all.count ? all.most : slc_bench_number(run, number);
}

static void put_ms(FILE *out, double seconds)
{
    slc_bench_put_number(out, 9, 1, seconds * 1e3, "-");
}

/* A run that was interrupted has a row of its own figures if there is no complete one. */
void slc_bench_table_case(FILE *out, const json_t *runs, size_t index)
{
    const json_t *run = json_array_get(runs, index), *losses = json_object_get(run, "losses");
    size_t count = json_array_size(losses);
    const size_t plans = slc_bench_count_plans(runs, run);
    slc_bench_spread step = slc_bench_figure(runs, run, "step_s");
    bool complete = step.count > 0 || slc_bench_complete(run);
    const double step_s = complete ? step.median : slc_bench_number(run, "step_s");
    put_place(out, run);
    if (is_narrow(out)) {
        slc_bench_put_number(out, 9, 1, most_of(runs, run, "peak_bytes") / 0x1p20, "-");
        put_ms(out, step_s);
        put_ms(out, slc_bench_spread_half(&step));
        fputs(complete ? "\n" : "  interrupted\n", out);
        fflush(out);
        return;
    }
    fprintf(out, " %9.1f %9.1f", most_of(runs, run, "planned_bytes") / 0x1p20,
            most_of(runs, run, "peak_bytes") / 0x1p20);
    put_ms(out, complete ? median_of(runs, run, "predicted_step_s") : slc_bench_number(run, "predicted_step_s"));
    put_ms(out, step_s);
    put_ms(out, slc_bench_spread_half(&step));
    slc_bench_put_number(
        out, 10, 1, 1e3 * (complete ? median_of(runs, run, "exposed_s") : slc_bench_number(run, "exposed_s")), "-");
    slc_bench_put_number(out, 9, 0,
                         complete ? median_of(runs, run, "tokens_per_s") : slc_bench_number(run, "tokens_per_s"), "-");
    fprintf(out, " %8.4f  %.8s%s", count ? json_number_value(json_array_get(losses, count - 1)) : NAN,
            slc_bench_text(run, "weights_sha256"), complete ? "" : "  interrupted");
    if (plans > 1) fprintf(out, "  %zu plans", plans);
    fputc('\n', out);
    fflush(out);
}

void slc_bench_table_cell(FILE *out, const json_t *runs, const slc_bench_case *one)
{
    json_t *cell = slc_bench_case_row(one);
    size_t index = 0;
    while (index < json_array_size(runs) && !slc_bench_alike(json_array_get(runs, index), cell, slc_bench_cell_keys))
        index++;
    json_t *row = json_array_get(runs, index), *label = json_object_get(cell, "label");
    if (row) json_object_del(row, "label"); /* it may be that of a sweep with other lists */
    if (row && label) json_object_set(row, "label", label);
    if (cell && row) slc_bench_table_case(out, runs, index);
    json_decref(cell);
}

void slc_bench_table_failure(FILE *out, const slc_bench_results *results)
{
    const json_t *row = json_array_get(results->failures, json_array_size(results->failures) - 1);
    put_place(out, row);
    fprintf(out, " failed: %s\n", slc_bench_text(row, "why"));
    fflush(out);
}

/* Returns true if the combination of this run has come to repetition `repeat`. */
static bool came_to(const json_t *runs, const json_t *run, uint64_t repeat)
{
    size_t index;
    json_t *other;
    json_array_foreach ((json_t *)runs, index, other) {
        if (slc_bench_number(other, "repeat") == (double)repeat && slc_bench_alike(other, run, slc_bench_cell_keys))
            return true;
    }
    return false;
}

/* The budgets that a strategy does not fit, in one line. The results have the whole error line of each. */
static void put_misfits(FILE *out, const json_t *misfits, size_t first)
{
    const json_t *like = json_array_get(misfits, first);
    const char *why = slc_bench_text(like, "why"), *between = "";
    double need = slc_bench_number(like, "needed_bytes");
    char strategy[64];
    put_label(out, like);
    fprintf(out, "%-14s %-12s %-10s does not fit ", slc_bench_text(like, "optimizer"),
            slc_bench_strategy(like, strategy), slc_bench_text(like, "schedule"));
    for (size_t i = first; i < json_array_size(misfits); i++) {
        const json_t *misfit = json_array_get(misfits, i);
        if (!slc_bench_alike(misfit, like, misfit_keys)) continue;
        fprintf(out, "%s%s", between, slc_bench_text(misfit, "budget"));
        between = ", ";
    }
    if (!isnan(need))
        fprintf(out, ": it needs %.1f MiB\n", need / 0x1p20);
    else
        fprintf(out, ": %.*s\n", (int)strcspn(why, ";"), why);
}

static bool is_of_part(const json_t *row, const slc_bench_options *options, uint64_t part)
{
    const uint64_t ranks = slc_bench_part_ranks(options, part);
    return !strcmp(slc_bench_text(row, "throttle"), slc_bench_part_throttle(options, part)) &&
           (!ranks || slc_bench_number(row, "world") == (double)ranks);
}

void slc_bench_table_rest(FILE *out, const slc_bench_results *results, const slc_bench_options *options, uint64_t part)
{
    for (size_t i = 0; i < json_array_size(results->runs); i++) {
        const json_t *run = json_array_get(results->runs, i);
        if (!is_of_part(run, options, part)) continue;
        if (slc_bench_is_first(results->runs, i, slc_bench_cell_keys) && !came_to(results->runs, run, options->repeat))
            slc_bench_table_case(out, results->runs, i);
    }
    for (size_t i = 0; i < json_array_size(results->misfits); i++)
        if (is_of_part(json_array_get(results->misfits, i), options, part) &&
            slc_bench_is_first(results->misfits, i, misfit_keys))
            put_misfits(out, results->misfits, i);
    fflush(out);
}

/* ---- Summary ---- */

/* Prints how many steps are needed, if there are runs whose step time has no median. */
static void print_wanted(FILE *out, const json_t *runs)
{
    size_t index, count = 0;
    json_t *run;
    double most = 0;
    json_array_foreach ((json_t *)runs, index, run) {
        if (!slc_bench_complete(run) || !isnan(slc_bench_number(run, "step_s"))) continue;
        most = fmax(most, slc_bench_number(run, "steps_wanted"));
        count++;
    }
    if (count)
        fprintf(out,
                "no step time in %zu run%s: two steps under the last plan do not count, and three must; give --steps "
                "%.0f\n",
                count, count == 1 ? "" : "s", most);
}

static void print_predictions(FILE *out, const json_t *runs)
{
    size_t index, count = 0;
    json_t *run;
    double *off = malloc((json_array_size(runs) + 1) * sizeof *off);
    json_array_foreach ((json_t *)runs, index, run) {
        double ratio = slc_bench_number(run, "predicted_step_s") / slc_bench_number(run, "step_s");
        if (off && isfinite(ratio) && slc_bench_complete(run)) off[count++] = fabs(ratio - 1);
    }
    if (count) {
        slc_sort(off, count);
        fprintf(out, "predicted steps are off by %.1f %% in the median, %.1f %% at most (%zu runs)\n",
                100 * off[count / 2], 100 * off[count - 1], count);
    }
    free(off);
}

/* Prints the rows of one throttle. */
static void put_joined(FILE *out, const slc_bench_results *results, const json_t *like, bool labelled)
{
    const json_t *runs = results->runs, *misfits = results->misfits;
    fprintf(out, "\nthrottle %s\n", slc_bench_text(like, "throttle"));
    put_columns(out, labelled);
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (slc_bench_alike(json_array_get(runs, i), like, throttle_keys) &&
            slc_bench_is_first(runs, i, slc_bench_cell_keys))
            slc_bench_table_case(out, runs, i);
    for (size_t i = 0; i < json_array_size(misfits); i++)
        if (slc_bench_alike(json_array_get(misfits, i), like, throttle_keys) &&
            slc_bench_is_first(misfits, i, misfit_keys))
            put_misfits(out, misfits, i);
}

void slc_bench_table_joined(FILE *out, const slc_bench_results *results, uint64_t sources)
{
    const json_t *runs = results->runs;
    bool labelled = false;
    for (size_t i = 0; i < json_array_size(runs); i++)
        labelled |= *slc_bench_text(json_array_get(runs, i), "label") != 0;
    fprintf(out, "%zu runs of %" PRIu64 " sweep%s\n", json_array_size(runs), sources, sources == 1 ? "" : "s");
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (slc_bench_is_first(runs, i, throttle_keys)) put_joined(out, results, json_array_get(runs, i), labelled);
    fprintf(out, "\nfastest for each budget\n");
    slc_bench_winners_show(out, runs);
    fflush(out);
}

/* Returns true if two runs must end with the same weights. Split and joint ones differ by rounding, and the layers that
 * auto, mixed, ... compress may differ from run to run. */
static bool must_be_equal(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"optimizer",
                                       "tied",
                                       "world",
                                       "settings.lr",
                                       "settings.batch",
                                       "settings.micro_batches",
                                       "settings.pipeline",
                                       "settings.precision",
                                       "recipe_file",
                                       NULL};
    if (!slc_bench_alike(a, b, keys)) return false;
    if (!slc_training_is_compressed(slc_bench_text(a, "optimizer"))) return true;
    slc_strategy left, right;
    if (!slc_strategy_parse(slc_bench_text(a, "strategy"), &left)) return false;
    if (!slc_strategy_parse(slc_bench_text(b, "strategy"), &right)) return false;
    return (left == SLC_ONEBIT) == (right == SLC_ONEBIT);
}

/* Returns NULL if no such run comes before it. */
static const json_t *first_of_equals(const json_t *runs, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (slc_bench_complete(json_array_get(runs, i)) &&
            must_be_equal(json_array_get(runs, i), json_array_get(runs, index)))
            return json_array_get(runs, i);
    return NULL;
}

static bool check_weights(FILE *out, const json_t *runs)
{
    size_t index, complete = 0, differ = 0, kinds = 0;
    char strategy[64];
    json_t *run;
    json_array_foreach ((json_t *)runs, index, run) {
        if (!slc_bench_complete(run)) continue;
        const json_t *first = first_of_equals(runs, index);
        complete++;
        kinds += !first;
        if (!first || !strcmp(slc_bench_text(first, "weights_sha256"), slc_bench_text(run, "weights_sha256"))) continue;
        differ++;
        fprintf(out, "  %s %s %s, budget %s, throttle %s ended with other weights\n", slc_bench_text(run, "optimizer"),
                slc_bench_strategy(run, strategy), slc_bench_text(run, "schedule"), slc_bench_text(run, "budget"),
                slc_bench_text(run, "throttle"));
    }
    fprintf(out, "weights equal to the bit: %s (%zu runs", differ ? "no" : "yes", complete);
    if (kinds > 1)
        fprintf(out,
                " of %zu kinds by optimizer, compression, tied and what else training depends on, each within itself",
                kinds);
    fprintf(out, ")\n");
    return !differ;
}

static bool check_peaks(FILE *out, const json_t *runs)
{
    size_t index, differ = 0;
    char strategy[64];
    json_t *run;
    json_array_foreach ((json_t *)runs, index, run) {
        json_int_t planned = json_integer_value(json_object_get(run, "planned_bytes"));
        json_int_t peak = json_integer_value(json_object_get(run, "peak_bytes"));
        if (planned == peak) continue;
        differ++;
        fprintf(out, "  %s %s, budget %s, throttle %s: planned %lld bytes, peak %lld\n",
                slc_bench_strategy(run, strategy), slc_bench_text(run, "schedule"), slc_bench_text(run, "budget"),
                slc_bench_text(run, "throttle"), (long long)planned, (long long)peak);
    }
    fprintf(out, "peak equals plan: %s\n", differ ? "no" : "yes");
    return !differ;
}

/* Prints the losses of the first complete run; with equal weights, all of its kind have the same. */
static void print_losses(FILE *out, const json_t *runs)
{
    size_t index;
    json_t *run;
    json_array_foreach ((json_t *)runs, index, run) {
        const json_t *losses = json_object_get(run, "losses");
        size_t count = json_array_size(losses);
        if (!count || !slc_bench_complete(run)) continue;
        fprintf(out, "loss: %.4f -> %.4f in %zu steps\n", json_number_value(json_array_get(losses, 0)),
                json_number_value(json_array_get(losses, count - 1)), count);
        return;
    }
}

/* Prints the growth of the resident set since just before commit; it includes the whole arena. */
static void print_resident(FILE *out, const json_t *runs)
{
    size_t index;
    json_t *run;
    double worst = -INFINITY, allowed = INFINITY;
    json_array_foreach ((json_t *)runs, index, run) {
        double peak = slc_bench_number(run, "peak_bytes");
        double grown = slc_bench_number(run, "rss_bytes") - slc_bench_number(run, "rss_commit_bytes");
        if (grown - peak > worst) worst = grown - peak;
        allowed = fmin(allowed, 0.05 * peak + 0x1p26 - fabs(grown - peak));
    }
    if (isfinite(worst))
        fprintf(out, "resident set grew within 5 %% + 64 MiB of the peak: %s (at most %+.1f MiB)\n",
                allowed >= 0 ? "yes" : "no", worst / 0x1p20);
}

bool slc_bench_table_summary(FILE *out, const slc_bench_results *results)
{
    const json_t *runs = results->runs;
    if (!json_array_size(runs)) {
        fprintf(out, "\nno run%s\n", json_array_size(results->failures) ? "" : ": nothing fits");
        return true;
    }
    fprintf(out, "\nfastest for each budget\n");
    slc_bench_winners_show(out, runs);
    slc_bench_auto_show(out, runs);
    slc_bench_tied_show(out, results);
    print_wanted(out, runs);
    print_predictions(out, runs);
    print_losses(out, runs);
    slc_bench_losses_show(out, results);
    bool weights = check_weights(out, runs), peaks = check_peaks(out, runs);
    print_resident(out, runs);
    fflush(out);
    return weights && peaks;
}

void slc_bench_table_tally(FILE *out, const slc_bench_tally *tally)
{
    if (tally->failed)
        fprintf(out, "failed: %" PRIu64 " of %" PRIu64 " cells; the same command tries them again\n", tally->failed,
                tally->cells);
    if (tally->finished + tally->failed < tally->cells) {
        fprintf(out, "stopped: %" PRIu64 " of %" PRIu64 " cells are finished", tally->finished, tally->cells);
        if (tally->runs > tally->cells) fprintf(out, ", %" PRIu64 " of %" PRIu64 " runs", tally->ran, tally->runs);
        fprintf(out, "; the same command goes on\n");
    }
    fflush(out);
}

void slc_bench_table_demo(FILE *out, const slc_bench_results *results, const slc_bench_options *options)
{
    double least = INFINITY, most = 0;
    size_t index;
    json_t *run;
    json_array_foreach (results->runs, index, run) {
        least = fmin(least, slc_bench_number(run, "peak_bytes"));
        most = fmax(most, slc_bench_number(run, "peak_bytes"));
    }
    fprintf(out,
            "\nShown: one %s %s trained %zu times on %" PRIu64
            " ranks in %.1f to %.1f MiB a rank, to the same weights,\n"
            "  by the planner's own choice (auto) and by uniform strategies, with and without a slow network.\n"
            "Pictures: %s/step_time.svg, step_time.png; each run's figures: results.csv, results.json\n",
            options->training.model, options->training.size, json_array_size(results->runs), options->training.ranks,
            least / 0x1p20, most / 0x1p20, options->output);
    fflush(out);
}

/* ---- Progress ---- */

void slc_bench_progress_begin(slc_bench_progress *progress, uint64_t done, uint64_t count, uint64_t total)
{
    *progress = (slc_bench_progress){.out = isatty(STDERR_FILENO) ? stderr : NULL,
                                     .total = total,
                                     .part_end = (done / count + 1) * count,
                                     .done = done,
                                     .start_ns = slc_clock_ns()};
}

/* Writes "about 0:12 left", and the number of later runs whose time nobody knows. `share` is the part of the present
 * run that is done. */
static void put_left(const slc_bench_progress *progress, double share, char *text, size_t bytes)
{
    const double mean_s = slc_seconds(slc_clock_ns() - progress->start_ns) / ((double)progress->made + share);
    const double left_s = mean_s * ((double)(progress->part_end - progress->done) - share);
    const unsigned left = left_s > 0 && left_s < 1e9 ? (unsigned)(left_s + 0.5) : 0;
    const uint64_t later = progress->total - progress->part_end;
    const int used = snprintf(text, bytes, "about %u:%02u left", left / 60, left % 60);
    if (later && used < (int)bytes)
        snprintf(text + used, bytes - (size_t)used, ", and then %" PRIu64 " runs of other throttles or ranks", later);
}

void slc_bench_progress_step(const slc_bench_progress *progress, const slc_bench_case *one,
                             const slc_training_step *step)
{
    char left[128], line[512];
    if (!progress->out) return;
    put_left(progress, (double)step->step / (double)one->training.steps, left, sizeof left);
    snprintf(line, sizeof line,
             "[%" PRIu64 "/%" PRIu64 "] %s %s, budget %s%s%s: step %" PRIu64 "/%" PRIu64 ", %.1f ms, loss %.4f; %s",
             progress->done + 1, progress->total, one->strategy, one->schedule, one->budget, *one->label ? ", " : "",
             one->label, step->step, one->training.steps, step->step_s * 1e3, step->loss, left);
    slc_terminal_rewrite(progress->out, line);
}

void slc_bench_progress_round(const slc_bench_progress *progress, uint64_t round, uint64_t rounds)
{
    char left[128];
    put_left(progress, 0, left, sizeof left);
    fprintf(stderr, "round %" PRIu64 " of %" PRIu64 " is done: %" PRIu64 " of %" PRIu64 " runs, %s\n", round, rounds,
            progress->done, progress->total, left);
}

void slc_bench_progress_clear(const slc_bench_progress *progress)
{
    if (!progress->out) return;
    fputs("\r\x1b[K", progress->out);
    fflush(progress->out);
}
