/* A train runs alone, compute runs alone, then both at the same time. Compute is a kernel on an array: on the host one
 * that fits in a core's cache, called again and again; on a device that runs ahead one that fills all of it, queued
 * without a pause for as long as the train takes, and counted by events. measure_link_test.c covers this file. */
#include "lib/engine/measure/overlap.h"

#include "lib/base/clock.h"
#include "lib/base/integer.h"
#include "lib/device/pieces.h"
#include "lib/engine/runtime.h"
#include "lib/kernels/gelu/gelu.h"
#include "lib/plan/measured/fit_link.h"

enum {
    LEAST_RUN = 64 << 10,
    LONGEST_RUN = 1 << 20,        /* of operations that are measured next to compute, */
    LONGEST_RUN_AHEAD = 64 << 20, /* on a device that runs ahead */
    OVERLAP_MOST = 64,            /* operations of a train while ranks compute: each may take very long then */
    FIRST_ELEMENTS = 16 << 10,    /* of a kernel on a device that runs ahead, of which more are taken, */
    LAUNCHES_MOST = 64,
    TRIES = 3
};

static const double overlap_s = 0.05, all_s = 0.3; /* durations of a train, of all trains of a kind */
static const double compute_alone_s = 0.015;
static const double kernel_s = 20e-6, piece_s = 100e-6; /* until a kernel lasts so long; a piece is several of them */

typedef slc_measure_lab lab;

/* ---- Compute ---- */

static sluice_status compute_piece(lab *l)
{
    const float *in = (const float *)(void *)l->compute;
    float *out = (float *)(void *)l->compute + l->compute_elements;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < l->launches; i++)
        status = slc_gelu_forward(&l->rt->compute, SLC_GELU_TANH, SLUICE_FP32, l->kernel_elements, in, out);
    return status;
}

/* Queues pieces for so long, and gives the seconds of one while nothing else runs. */
static sluice_status time_pieces(lab *l, double seconds, double *out)
{
    slc_pieces *pieces;
    *out = 0;
    sluice_status status = slc_pieces_create(&l->rt->compute, &pieces);
    const uint64_t start = slc_clock_ns();
    for (int i = 0; !status && (i < TRIES || slc_seconds(slc_clock_ns() - start) < seconds); i++) {
        status = compute_piece(l);
        if (!status) status = slc_pieces_note(pieces);
    }
    if (!status) status = slc_pieces_wait(pieces);
    if (!status) *out = slc_pieces_mean_s(pieces);
    slc_pieces_destroy(pieces);
    return status;
}

/* Chooses the length of a kernel, and how many launches make a piece: a kernel that is too short leaves the device idle
 * between launches. */
static sluice_status choose_pieces(lab *l)
{
    double seconds = 0;
    l->launches = 1;
    l->kernel_elements = slc_least(l->compute_elements, FIRST_ELEMENTS);
    sluice_status status = time_pieces(l, 0, &seconds);
    while (!status && seconds < kernel_s && l->kernel_elements < l->compute_elements) {
        l->kernel_elements = slc_least(2 * l->kernel_elements, l->compute_elements);
        status = time_pieces(l, 0, &seconds);
    }
    if (!status && seconds > 0 && seconds < piece_s)
        l->launches = (uint32_t)slc_least((uint64_t)(piece_s / seconds) + 1, LAUNCHES_MOST);
    return status;
}

sluice_status slc_overlap_prepare(lab *l)
{
    l->launches = 1;
    l->kernel_elements = l->compute_elements;
    sluice_status status = slc_fill_zero(&l->rt->compute, l->compute, 8 * l->compute_elements);
    if (!status) status = slc_stream_synchronize(&l->rt->compute);
    return status || !l->ahead ? status : choose_pieces(l);
}

/* Seconds of one piece while every rank computes and none communicates. */
static sluice_status compute_alone(lab *l, double *one_s)
{
    sluice_status status = sluice_world_barrier(l->rt->world);
    if (l->ahead) return status ? status : time_pieces(l, l->share * compute_alone_s, one_s);
    uint64_t start = slc_clock_ns(), now = start, pieces = 0;
    while (!status && slc_seconds(now - start) < l->share * compute_alone_s) {
        status = compute_piece(l);
        pieces++;
        now = slc_clock_ns();
    }
    *one_s = pieces ? slc_seconds(now - start) / (double)pieces : 0;
    return status;
}

/* ---- Both ---- */

/* Computes until the train is complete. *done is the number of pieces since its middle. */
static sluice_status compute_on_host(lab *l, const slc_train *train, double *done)
{
    const uint32_t middle = train->first + train->count / 2 + 1, end = train->first + train->count + 1;
    sluice_status status = SLUICE_OK;
    bool counts = false;
    uint64_t pieces = 0;
    while (!status && !slc_gate_passed(slc_comm_completed(l->rt->comm), end)) {
        if (!counts && slc_gate_passed(slc_comm_completed(l->rt->comm), middle)) {
            counts = true;
            pieces = 0;
        }
        status = compute_piece(l);
        pieces++;
    }
    *done = (double)pieces;
    return status ? status : slc_train_wait(l, train);
}

/* Returns true if the train is done on the device. A failure of the world counts as done. */
static bool train_is_over(const lab *l, const slc_train *train)
{
    return slc_gate_passed(slc_comm_completed(l->rt->comm), train->first + train->count + 1) &&
           slc_event_done(&l->m->train_events[train->count]);
}

/* Keeps the compute stream busy while the train is submitted, and until it is done. */
static sluice_status compute_on_device(lab *l, slc_train *train, slc_pieces *pieces, double *done)
{
    sluice_status status = slc_train_submit(l, train);
    do {
        if (!status) status = compute_piece(l);
        if (!status) status = slc_pieces_note(pieces);
    } while (!status && !train_is_over(l, train));
    if (!status) status = slc_pieces_wait(pieces);
    if (!status) status = slc_train_wait(l, train);
    if (!status)
        status =
            slc_pieces_between(pieces, &l->m->train_events[train->count / 2], &l->m->train_events[train->count], done);
    return status;
}

static sluice_status run_beside(lab *l, slc_train *train, double *done)
{
    slc_pieces *pieces = NULL;
    if (!l->ahead) {
        sluice_status status = slc_train_submit(l, train);
        return status ? status : compute_on_host(l, train, done);
    }
    sluice_status status = slc_pieces_create(&l->rt->compute, &pieces);
    if (!status) status = compute_on_device(l, train, pieces, done);
    slc_pieces_destroy(pieces);
    return status;
}

/* Takes one sample of compute beside a train and of each alone. Only the second half of each train counts. */
static sluice_status overlap_once(lab *l, slc_train *train, slc_overlap_sample *sample)
{
    double one_s = 0, steady_s, done = 0;
    const uint32_t half = train->count / 2;
    sluice_status status = slc_train_run(l, train, &steady_s);
    sample->link_alone_s = slc_train_s(l, half, train->count);
    if (!status) status = compute_alone(l, &one_s);
    if (!status) status = run_beside(l, train, &done);
    sample->link_beside_s = slc_train_s(l, half, train->count);
    sample->compute_alone_s = one_s * done;
    return status;
}

/* Returns the length of a first run, which must not take too long on a slow link. Updates begin with a short one. */
static uint64_t first_run(const lab *l, slc_train_kind kind, const slc_link *link)
{
    const slc_times times = {.link = *link};
    const uint64_t longest = l->ahead && kind != SLC_TRAIN_UPDATES ? LONGEST_RUN_AHEAD : LONGEST_RUN;
    uint64_t bytes = slc_lab_grains(l, slc_least(l->link_bytes, longest));
    while (l->rt->size > 1 && bytes > LEAST_RUN &&
           slc_transfer_s(&l->rt->job, &times, SLC_ITEM_REDUCE_SCATTER, bytes) >= overlap_s / SLC_TRAIN_LEAST)
        bytes = slc_lab_grains(l, bytes / 2);
    return bytes;
}

/* Sets the length of the train's operations, and finds what one takes. An update that is too short is an idle device's.
 */
static sluice_status choose_run(lab *l, const slc_link *link, slc_train *train, double *one_s, double *spent)
{
    train->bytes = first_run(l, train->kind, link);
    sluice_status status = slc_train_run_together(l, train, one_s, spent);
    while (!status && l->ahead && train->kind == SLC_TRAIN_UPDATES && *one_s < kernel_s &&
           2 * train->bytes <= slc_least(l->link_bytes, LONGEST_RUN_AHEAD)) {
        train->bytes *= 2;
        status = slc_train_run_together(l, train, one_s, spent);
    }
    return status;
}

sluice_status slc_overlap_measure(lab *l, slc_train_kind kind, const slc_link *link, double *out_kappa,
                                  double *out_sigma)
{
    enum { ROUNDS = 3 };
    double kappa[ROUNDS], sigma[ROUNDS], one_s, spent;
    slc_train train = {.kind = kind, .count = SLC_TRAIN_LEAST};
    sluice_status status = choose_run(l, link, &train, &one_s, &spent);
    if (status) return status;
    uint32_t most = kind == SLC_TRAIN_UPDATES ? SLC_TRAIN_MAX : OVERLAP_MOST;
    train.count = (uint32_t)slc_least(slc_train_length(l->share * overlap_s, one_s, SLC_TRAIN_LEAST), most);
    size_t rounds = 0;
    /* One round can take very long if threads block each other. */
    while (rounds < ROUNDS && (!rounds || spent < l->share * all_s)) {
        slc_overlap_sample sample;
        status = overlap_once(l, &train, &sample);
        if (status) return status;
        slc_fit_overlap(&sample, &kappa[rounds], &sigma[rounds]);
        rounds++;
        spent += sample.link_beside_s;
        status = slc_measure_slowest(l->rt, &spent, 1);
        if (status) return status;
    }
    double worst[2] = {slc_fit_median(kappa, rounds), slc_fit_median(sigma, rounds)};
    status = slc_measure_slowest(l->rt, worst, 2);
    *out_kappa = worst[0];
    *out_sigma = worst[1];
    return status;
}
