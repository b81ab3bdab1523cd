/* The document of a trade-off and its table. tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/tradeoff/tradeoff_results.h"

#include "bench/sweep/figures/figures.h"
#include "bench/cli/outcome.h"
#include "bench/cli/output/result_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TOLERANCE = 0.02; /* changes of less than this share of the least step count as level */

/* ---- The shapes of the curves ---- */

typedef struct {
    double share, step_s;
} curve_point;

static int by_share(const void *a, const void *b)
{
    const curve_point *x = a, *y = b;
    return (x->share > y->share) - (x->share < y->share);
}

/* Names the shape of the curve of "predicted" or "measured" steps; each choice counts once, and a curve without points
 * has none. */
static bool name_shape(json_t *document, const char *kind)
{
    char shape_key[32];
    bool predicted = *kind == 'p', named = false;
    json_t *points = json_object_get(document, "points"), *row;
    size_t index, room = json_array_size(points) + 1, count = 0;
    curve_point *curve = malloc(room * sizeof *curve);
    double *step_s = malloc(room * sizeof *step_s);
    uint32_t valleys;
    if (!curve || !step_s) goto free_all;
    json_array_foreach (points, index, row) {
        double value = slc_bench_number(row, predicted ? "predicted_step_s" : "step_s");
        if (!isnan(value) && json_is_null(json_object_get(row, "same_as")))
            curve[count++] = (curve_point){slc_bench_number(row, "share"), value};
    }
    qsort(curve, count, sizeof *curve, by_share);
    for (size_t i = 0; i < count; i++) step_s[i] = curve[i].step_s;
    slc_curve_shape shape = slc_curve_shape_of(step_s, (uint32_t)count, TOLERANCE, &valleys);
    snprintf(shape_key, sizeof shape_key, "%s_shape", kind);
    named =
        (!predicted && !count) || !json_object_set_new(document, shape_key, json_string(slc_curve_shape_name(shape)));
    if (predicted) json_object_set_new(document, "predicted_valleys", json_integer(valleys));
free_all:
    free(curve);
    free(step_s);
    return named;
}

/* ---- Planned results ---- */

static json_t *optional(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *strategies_json(const slc_job *job, const slc_strategy *strategies)
{
    json_t *names = json_object();
    for (uint32_t u = 0; names && u < job->unit_count; u++)
        json_object_set_new(names, job->units[u].name, json_string(slc_strategy_name(strategies[u])));
    return names;
}

static json_t *point_json(const slc_job *job, const slc_tradeoff *t, const slc_tradeoff_point *p)
{
    bool fits = p->fits;
    json_int_t left = (json_int_t)t->free_bytes - (json_int_t)p->strategy_bytes;
    return json_pack("{s:o, s:f, s:I, s:I, s:o, s:b, s:o, s:o, s:o, s:s, s:o, s:[]}", "asked", optional(p->asked),
                     "share", p->share, "strategy_bytes", (json_int_t)p->strategy_bytes, "schedule_bytes", left,
                     "same_as", p->same_as == SLC_NONE ? json_null() : json_integer(p->same_as), "fits", fits,
                     "predicted_step_s", fits ? json_real(p->forecast.step_s) : json_null(), "predicted_exposed_s",
                     fits ? json_real(p->forecast.exposed_s) : json_null(), "predicted_peak_bytes",
                     fits ? json_integer((json_int_t)p->forecast.peak_bytes) : json_null(), "planned_by", p->member,
                     "strategies", strategies_json(job, p->strategies), "runs");
}

json_t *slc_tradeoff_json(const slc_profile *profile, const slc_tradeoff *t, uint64_t budget, const char *throttle)
{
    const slc_job *job = &profile->job;
    json_t *points = json_array();
    for (uint32_t i = 0; points && i < t->count; i++) json_array_append_new(points, point_json(job, t, &t->points[i]));
    json_t *document =
        json_pack("{s:s, s:s, s:i, s:o, s:I, s:I, s:I, s:b, s:f, s:n, s:n, s:n, s:o, s:o}", "model", profile->model,
                  "source", profile->source, "world", (int)job->world, "throttle",
                  throttle ? json_string(throttle) : json_null(), "budget_bytes", (json_int_t)budget, "floor_bytes",
                  (json_int_t)(t->floor_bytes + job->reserved_bytes), "free_bytes", (json_int_t)t->free_bytes,
                  "floor_recomputes", t->floor_recomputes, "tolerance", TOLERANCE, "predicted_shape",
                  "predicted_valleys", "measured_shape", "points", points, "joint", point_json(job, t, &t->joint));
    return document && name_shape(document, "predicted") ? document : NULL;
}

/* ---- Measured results ---- */

bool slc_tradeoff_add_run(json_t *row, const slc_training_result *run)
{
    json_t *one = json_pack("{s:o, s:o, s:o, s:I, s:s}", "step_s", optional(run->step_s), "exposed_s",
                            optional(run->exposed_s), "predicted_step_s", optional(run->predicted_step_s), "peak_bytes",
                            (json_int_t)run->memory.peak_bytes, "weights_sha256", run->weights_sha256);
    return one && !json_array_append_new(json_object_get(row, "runs"), one);
}

static json_t *medians_of(const json_t *row, const char *key)
{
    static const char *const all[] = {NULL};
    const json_t *runs = json_object_get(row, "runs");
    return optional(slc_bench_median(runs, json_array_get(runs, 0), all, key));
}

static void put_medians(json_t *document, json_t *row)
{
    const json_t *same = json_object_get(row, "same_as"), *from = row;
    if (json_is_integer(same))
        from = json_array_get(json_object_get(document, "points"), (size_t)json_integer_value(same));
    json_object_set_new(row, "step_s", medians_of(from, "step_s"));
    json_object_set_new(row, "exposed_s", medians_of(from, "exposed_s"));
}

void slc_tradeoff_conclude(json_t *document)
{
    json_t *points = json_object_get(document, "points"), *row;
    size_t index;
    json_array_foreach (points, index, row) put_medians(document, row);
    put_medians(document, json_object_get(document, "joint"));
    name_shape(document, "measured");
}

/* ---- The table ---- */

static bool measures(const json_t *document)
{
    return json_is_string(json_object_get(document, "throttle"));
}

void slc_tradeoff_show_head(FILE *out, const json_t *document)
{
    double budget = slc_bench_number(document, "budget_bytes"), floor = slc_bench_number(document, "floor_bytes");
    fprintf(out, "\ntrade-off of %s, %.0f ranks (%s)", slc_bench_text(document, "model"),
            slc_bench_number(document, "world"), slc_bench_text(document, "source"));
    if (measures(document)) fprintf(out, ", throttle %s", slc_bench_text(document, "throttle"));
    fprintf(out,
            "\nbudget %.2f MiB: %.2f that every plan keeps (fsdp's parts, activations%s), %.2f free for strategies "
            "and schedule\n",
            budget / 0x1p20, floor / 0x1p20,
            json_is_true(json_object_get(document, "floor_recomputes")) ? " recomputed" : "",
            slc_bench_number(document, "free_bytes") / 0x1p20);
    fprintf(out, "%7s %14s %14s %10s %12s", "share", "strategies MiB", "schedule MiB", "sdp layers", "predicted ms");
    if (measures(document)) fprintf(out, " %11s %11s", "measured ms", "exposed ms");
    fputs("  plan\n", out);
    fflush(out);
}

/* Counts the units that are not fsdp, and all units. */
static void count_kept(const json_t *row, size_t *kept, size_t *all)
{
    json_t *names = json_object_get(row, "strategies"), *name;
    const char *key;
    *kept = 0;
    *all = json_object_size(names);
    json_object_foreach (names, key, name) *kept += strcmp(json_string_value(name), "fsdp") != 0;
}

void slc_tradeoff_show_row(FILE *out, const json_t *document, const json_t *row)
{
    char share[16], kept_text[32];
    size_t kept, all;
    double asked = slc_bench_number(row, "asked");
    count_kept(row, &kept, &all);
    snprintf(kept_text, sizeof kept_text, "%zu of %zu", kept, all);
    snprintf(share, sizeof share, isnan(asked) ? "joint" : "%.0f %%", 100 * asked);
    fprintf(out, "%7s %14.2f %14.2f %10s", share, slc_bench_number(row, "strategy_bytes") / 0x1p20,
            slc_bench_number(row, "schedule_bytes") / 0x1p20, kept_text);
    if (!json_is_true(json_object_get(row, "fits"))) {
        fprintf(out, " %12s\n", "does not fit");
    } else {
        slc_bench_put_number(out, 12, 2, 1e3 * slc_bench_number(row, "predicted_step_s"), "-");
        if (measures(document)) slc_bench_put_number(out, 11, 2, 1e3 * slc_bench_number(row, "step_s"), "-");
        if (measures(document)) slc_bench_put_number(out, 11, 2, 1e3 * slc_bench_number(row, "exposed_s"), "-");
        const json_t *same = json_object_get(row, "same_as");
        fprintf(out, "  %s%s\n", slc_bench_text(row, "planned_by"), json_is_integer(same) ? " (as above)" : "");
    }
    fflush(out);
}

/* ---- The end of the table ---- */

static const json_t *best_of(const json_t *document, const char *key)
{
    const json_t *points = json_object_get(document, "points"), *best = NULL;
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *row = json_array_get(points, i);
        double value = slc_bench_number(row, key);
        if (!isnan(value) && (!best || value < slc_bench_number(best, key))) best = row;
    }
    return best;
}

static void show_curve(FILE *out, const json_t *document, const char *what, const char *key, const char *shape)
{
    const json_t *best = best_of(document, key), *joint = json_object_get(document, "joint");
    if (!best) return;
    double best_s = slc_bench_number(best, key), joint_s = slc_bench_number(joint, key);
    fprintf(out, "%s: the curve is %s (within %.0f %%); fastest at %.0f %%: %.2f ms", what,
            slc_bench_text(document, shape), 100 * slc_bench_number(document, "tolerance"),
            100 * slc_bench_number(best, "share"), best_s * 1e3);
    if (!isnan(joint_s))
        fprintf(out, "; the joint plan at %.0f %%: %.2f ms, %.1f %% %s", 100 * slc_bench_number(joint, "share"),
                joint_s * 1e3, 100 * fabs(1 - joint_s / best_s), joint_s <= best_s ? "faster" : "slower");
    fputc('\n', out);
}

void slc_tradeoff_show_end(FILE *out, const json_t *document)
{
    fputc('\n', out);
    show_curve(out, document, "predicted", "predicted_step_s", "predicted_shape");
    if (measures(document)) show_curve(out, document, "measured", "step_s", "measured_shape");
    fflush(out);
}

typedef struct {
    const char *weights;
    size_t runs, other_weights, over_budget;
} promises;

static void check_row(const json_t *row, double budget, promises *p)
{
    const json_t *runs = json_object_get(row, "runs");
    for (size_t i = 0; i < json_array_size(runs); i++, p->runs++) {
        const json_t *run = json_array_get(runs, i);
        const char *weights = slc_bench_text(run, "weights_sha256");
        if (!p->weights) p->weights = weights;
        p->other_weights += strcmp(p->weights, weights) != 0;
        p->over_budget += slc_bench_number(run, "peak_bytes") > budget;
    }
}

bool slc_tradeoff_sound(FILE *out, const json_t *document)
{
    promises p = {0};
    const json_t *points = json_object_get(document, "points");
    double budget = slc_bench_number(document, "budget_bytes");
    for (size_t i = 0; i < json_array_size(points); i++) check_row(json_array_get(points, i), budget, &p);
    check_row(json_object_get(document, "joint"), budget, &p);
    if (!p.runs) return true;
    fprintf(out, "weights equal to the bit: %s; within the budget: %s (%zu runs)\n", p.other_weights ? "no" : "yes",
            p.over_budget ? "no" : "yes", p.runs);
    return !p.other_weights && !p.over_budget;
}

/* ---- Files ---- */

static void put_csv_row(FILE *file, const json_t *row)
{
    static const char *const keys[] = {"asked",   "share",    "strategy_bytes",   "schedule_bytes",
                                       "same_as", "fits",     "predicted_step_s", "predicted_exposed_s",
                                       "step_s",  "exposed_s"};
    if (json_is_null(json_object_get(row, "asked"))) fputs("joint", file);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        slc_bench_put_csv(file, json_object_get(row, keys[i]));
        fputc(',', file);
    }
    fprintf(file, "\"%s\"\n", slc_bench_text(row, "planned_by"));
}

sluice_status slc_tradeoff_write_csv(const json_t *document, const char *path)
{
    slc_result_file file;
    sluice_status status = slc_result_file_open(path, &file);
    if (status || !file.file) return status;
    const json_t *points = json_object_get(document, "points");
    fputs("asked,share,strategy_bytes,schedule_bytes,same_as,fits,predicted_step_s,predicted_exposed_s,step_s,"
          "exposed_s,planned_by\n",
          file.file);
    for (size_t i = 0; i < json_array_size(points); i++) put_csv_row(file.file, json_array_get(points, i));
    put_csv_row(file.file, json_object_get(document, "joint"));
    return slc_result_file_commit(&file);
}

sluice_status slc_tradeoff_write_json(json_t *document, const char *path)
{
    return slc_result_file_write_json(path, json_incref(document));
}

sluice_status slc_tradeoff_write(json_t *document, const char *folder, FILE *out)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tradeoff.json", folder);
    slc_outcome outcome = {0};
    slc_outcome_add(&outcome, slc_tradeoff_write_json(document, path));
    snprintf(path, sizeof path, "%s/tradeoff.csv", folder);
    slc_outcome_add(&outcome, slc_tradeoff_write_csv(document, path));
    if (!outcome.status) fprintf(out, "results: %s/tradeoff.csv, tradeoff.json; plan.json of the joint plan\n", folder);
    slc_outcome_add(&outcome, slc_tradeoff_draw(document, folder, out));
    return slc_outcome_status(&outcome);
}
