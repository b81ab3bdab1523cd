/* Each figure is that of the second half of a train of operations without a pause (trains.h). A real link may let a
 * burst pass faster than it can go on, because a token bucket has filled up or sockets have buffers; this room is used
 * up first. The results of all ranks decide how long to go on. measure_link_test.c covers this file. */
#include "lib/engine/measure/lines.h"

#include "lib/base/integer.h"
#include "lib/engine/runtime.h"
#include "lib/plan/measured/fit_link.h"

#include <math.h>

enum {
    SMALLEST_RUN = 64 << 10, /* of the operations that tell a line on the host, of which each is twice the one before */
    BURST_RUN = 256 << 10,
    BURST_BYTES = 8 << 20, /* room for a burst on a link: this much is used up at least */
    SIZES_MAX = 16
};

static const double train_s = 0.04;       /* duration of a train, */
static const double kind_s = 0.3;         /* of all trains of RS or of AG */
static const double burst_least_s = 0.03; /* time in which a burst is used up on a fast link, */
static const double burst_most_s = 0.4;   /* and on a slow one */
static const double enough = 0.95;        /* share of the bandwidth */
static const double least_operation_s = 1e-9;

typedef slc_measure_lab lab;

/* Uses up what the link lets pass above its sustained rate. *s_per_byte becomes the time of a run's byte on it, alike
 * on every rank. */
static sluice_status use_up_bursts(lab *l, double *s_per_byte)
{
    uint64_t run = slc_lab_grains(l, l->link_bytes < BURST_RUN ? l->link_bytes : BURST_RUN),
             others = (uint64_t)l->rt->size - 1;
    slc_train train = {.kind = SLC_TRAIN_BOTH, .bytes = run, .count = 2};
    double spent = 0, sent = 0, seconds = 0;
    while ((spent < burst_least_s || sent < BURST_BYTES) && spent < burst_most_s) {
        double took_s;
        sluice_status status = slc_train_run_together(l, &train, &seconds, &took_s);
        if (status) return status;
        spent += took_s;
        sent += (double)train.count * (double)run * (double)others / l->rt->size;
        train.count = slc_train_length(l->share * train_s, seconds, 2);
    }
    *s_per_byte = seconds / (double)run;
    return SLUICE_OK;
}

static sluice_status measure_line(lab *l, slc_train_kind kind, double s_per_byte, double operation_s,
                                  slc_link_line *out)
{
    slc_link_sample samples[SIZES_MAX];
    size_t count = 0;
    const uint64_t longest = l->ahead ? SLC_RUN_AHEAD_MOST : SLC_RUN_MOST, step = l->ahead ? 4 : 2;
    const uint64_t shortest = l->ahead ? SLC_RUN_AHEAD_LEAST : SMALLEST_RUN;
    uint64_t largest = slc_lab_grains(l, slc_least(l->link_bytes, longest));
    uint64_t bytes = slc_lab_grains(l, largest >= step * step * shortest ? shortest : largest / (4 * step));
    double spent = 0, seconds = s_per_byte * (double)bytes / (double)step;
    for (; bytes <= largest && count < SIZES_MAX; bytes *= step) {
        double expected = (double)step * seconds;
        if (count >= 3 && spent + SLC_TRAIN_LEAST * expected > l->share * kind_s) break;
        slc_train train = {
            .kind = kind, .bytes = bytes, .count = slc_train_length(l->share * train_s, expected, SLC_TRAIN_LEAST)};
        double took_s;
        sluice_status status = slc_train_run_together(l, &train, &seconds, &took_s);
        if (status) return status;
        spent += took_s;
        /* A disturbance lengthens a short train by a larger share. */
        samples[count++] =
            (slc_link_sample){bytes, fmax(fmax(seconds - operation_s, 0.01 * seconds), least_operation_s), took_s};
    }
    *out = slc_fit_line((uint32_t)l->rt->size, samples, count);
    return SLUICE_OK;
}

sluice_status slc_lines_measure(lab *l, double operation_s, slc_link_line *reduce_scatter, slc_link_line *all_gather)
{
    double s_per_byte;
    sluice_status status = use_up_bursts(l, &s_per_byte);
    if (!status) status = measure_line(l, SLC_TRAIN_REDUCTIONS, s_per_byte, operation_s, reduce_scatter);
    return status ? status : measure_line(l, SLC_TRAIN_GATHERS, s_per_byte, operation_s, all_gather);
}

sluice_status slc_lines_warm_up(lab *l)
{
    const uint64_t runs[] = {slc_lab_grains(l, slc_least(l->link_bytes, SLC_RUN_AHEAD_LEAST)),
                             slc_lab_grains(l, slc_least(l->link_bytes, SLC_RUN_AHEAD_MOST))};
    sluice_status status = SLUICE_OK;
    double seconds;
    for (int i = 0; !status && i < 2; i++) {
        slc_train train = {.kind = SLC_TRAIN_BOTH, .bytes = runs[i], .count = 2, .alone = true};
        status = slc_train_run(l, &train, &seconds);
    }
    return status;
}

uint64_t slc_lines_enough_bytes(const lab *l, const slc_link *link)
{
    const uint32_t ranks = (uint32_t)l->rt->size;
    return slc_most(slc_fit_run_bytes(ranks, &link->reduce_scatter, link->operation_s, enough),
                    slc_fit_run_bytes(ranks, &link->all_gather, link->operation_s, enough));
}
