/* Each kind of split run is shown once, next to the joint runs that are equal in all but that.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/figures/figures.h"

#include "bench/sweep/figures/spread.h"

#include <math.h>
#include <string.h>

static const char *const pair_keys[] = {"throttle",  "budget", "strategy", "schedule",
                                        "optimizer", "world",  "label",    NULL};

static bool is_complete_and(const json_t *run, const char *tied)
{
    return slc_bench_complete(run) && !strcmp(slc_bench_text(run, "tied"), tied);
}

/* Returns the joint run to compare with run number `index`; NULL if that is not a split one, is not the first of its
 * kind, or has no joint counterpart. */
static const json_t *joint_beside(const json_t *runs, size_t index)
{
    const json_t *run = json_array_get(runs, index), *joint = NULL;
    if (!is_complete_and(run, "split")) return NULL;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *other = json_array_get(runs, i);
        if (i < index && is_complete_and(other, "split") && slc_bench_alike(other, run, slc_bench_cell_keys))
            return NULL;
        if (!joint && is_complete_and(other, "joint") && slc_bench_alike(other, run, pair_keys)) joint = other;
    }
    return joint;
}

static void show_pair(FILE *out, const json_t *runs, const json_t *split, const json_t *joint)
{
    slc_bench_spread a = slc_bench_figure(runs, split, "step_s"), b = slc_bench_figure(runs, joint, "step_s");
    double split_s = a.median, joint_s = b.median, gain = 1 - split_s / joint_s;
    char verdict[32] = "no difference";
    if (a.count < 2 || b.count < 2)
        snprintf(verdict, sizeof verdict, "not repeated");
    else if (slc_bench_spreads_apart(&a, &b))
        snprintf(verdict, sizeof verdict, "%5.1f %% %s", 100 * fabs(gain), gain >= 0 ? "faster" : "slower");
    fprintf(out, "  throttle %-8s budget %-10s %-10s %-9s split %8.1f ms, joint %8.1f ms: %s; exposed %.1f, %.1f ms\n",
            slc_bench_text(split, "throttle"), slc_bench_text(split, "budget"), slc_bench_text(split, "strategy"),
            slc_bench_text(split, "schedule"), split_s * 1e3, joint_s * 1e3, verdict,
            slc_bench_median(runs, split, slc_bench_cell_keys, "exposed_s") * 1e3,
            slc_bench_median(runs, joint, slc_bench_cell_keys, "exposed_s") * 1e3);
}

void slc_bench_tied_show(FILE *out, const slc_bench_results *results)
{
    const json_t *runs = results->runs;
    bool any = false;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *joint = joint_beside(runs, i);
        if (joint && !any) fprintf(out, "\ntied parameters split by their uses, beside joint\n");
        any |= joint != NULL;
        if (joint) show_pair(out, runs, json_array_get(runs, i), joint);
    }
}
