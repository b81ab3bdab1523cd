/* Turns a pace into a profile's times. tests/command/plan/estimate_test.sh covers this file. */
#include "bench/estimate/pace.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/device/device.h"
#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/gemm/gemm.h"
#include "lib/model/params.h"
#include "lib/weights/family.h"
#include "sched/study/made_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SIDE = 512, LINE = 64, ELEMENTS = 1 << 20, ARRAYS = 4, BYTES_OF_UPDATE = 28, BYTES_OF_EXCHANGE = 16 };
static const uint64_t measured_ns = 100000000u;

/* ---- The compute part ---- */

typedef struct {
    sluice_stream stream;
    slc_gemm_shape shape;
    float *arrays[ARRAYS]; /* of an update, and in the first three the matrices of a product */
    void *workspace;
    uint64_t workspace_bytes;
} bed;

static void *lines(uint64_t bytes)
{
    return aligned_alloc(LINE, bytes / LINE * LINE + LINE);
}

static sluice_status prepare(bed *b, slc_device *device, uint32_t threads)
{
    sluice_status status = slc_stream_create(device, threads, &b->stream);
    if (!status) status = slc_gemm_workspace_bytes(&b->stream, &b->shape, &b->workspace_bytes);
    if (status) return status;
    b->workspace = lines(b->workspace_bytes);
    for (int i = 0; i < ARRAYS; i++) {
        b->arrays[i] = lines(ELEMENTS * sizeof(float));
        if (!b->arrays[i] || !b->workspace) return slc_error(SLUICE_ERR_MEMORY, "matrices to measure the pace with");
        for (int e = 0; e < ELEMENTS; e++) b->arrays[i][e] = 1;
    }
    return SLUICE_OK;
}

static void release(bed *b, slc_device *device)
{
    slc_stream_destroy(&b->stream);
    for (int i = 0; i < ARRAYS; i++) free(b->arrays[i]);
    free(b->workspace);
    slc_device_close(device);
}

static sluice_status multiply(bed *b)
{
    const slc_gemm_operands operands = {.a = b->arrays[0], .b = b->arrays[1], .c = b->arrays[2]};
    return slc_gemm(&b->stream, &b->shape, &operands, b->workspace, b->workspace_bytes);
}

static sluice_status update(bed *b)
{
    const slc_adamw_settings settings = slc_adamw_usual_settings();
    const slc_adamw_range range = {.count = ELEMENTS,
                                   .gradient = b->arrays[0],
                                   .value = b->arrays[1],
                                   .exp_avg = b->arrays[2],
                                   .exp_avg_sq = b->arrays[3]};
    return slc_adamw_many(&b->stream, &settings, 1, &range);
}

/* Finds the fastest of repeated runs, because everything else that this machine does only makes them slower. */
static sluice_status time_work(bed *b, sluice_status (*work)(bed *), double *best_s)
{
    uint64_t begin = slc_clock_ns();
    sluice_status status = work(b); /* the first one makes what is kept */
    for (*best_s = 1e9; !status;) {
        uint64_t start = slc_clock_ns();
        status = work(b);
        double took = slc_seconds(slc_clock_ns() - start);
        if (took < *best_s) *best_s = took;
        if (slc_clock_ns() - begin > measured_ns) break;
    }
    return status;
}

sluice_status slc_pace_measure(sluice_dtype dtype, uint32_t threads, slc_pace *pace)
{
    bed b = {.shape = {.dtype = dtype, .out = dtype, .transpose_b = true, .m = SIDE, .n = SIDE, .k = SIDE}};
    slc_device *device = NULL;
    double product_s = 0, update_s = 0;
    sluice_status status = slc_device_open("cpu", &device);
    if (!status) status = prepare(&b, device, threads);
    if (!status) status = time_work(&b, multiply, &product_s);
    if (!status) status = time_work(&b, update, &update_s);
    if (!status) {
        pace->flops = 2.0 * SIDE * SIDE * SIDE / product_s;
        pace->bytes_per_s = (double)BYTES_OF_UPDATE * ELEMENTS / update_s;
        snprintf(pace->compute, sizeof pace->compute, "measured on this machine with %u thread%s", threads,
                 threads == 1 ? "" : "s");
    }
    release(&b, device);
    return status;
}

sluice_status slc_pace_measure_products(sluice_dtype dtype, uint32_t threads, double *flops)
{
    bed b = {.shape = {.dtype = dtype, .out = dtype, .transpose_b = true, .m = SIDE, .n = SIDE, .k = SIDE}};
    slc_device *device = NULL;
    double product_s = 0;
    sluice_status status = slc_device_open("cpu", &device);
    if (!status) status = prepare(&b, device, threads);
    if (!status) status = time_work(&b, multiply, &product_s);
    if (!status) *flops = 2.0 * SIDE * SIDE * SIDE / product_s;
    release(&b, device);
    return status;
}

sluice_status slc_pace_parse(const char *text, slc_pace *pace)
{
    static const char units[] = "kmgtp";
    char *end;
    const char *comma = strchr(text, ',');
    double flops = strtod(text, &end);
    for (int i = 0; units[i] && *end && end != text; i++)
        if ((*end | 0x20) == units[i]) {
            for (int k = 0; k <= i; k++) flops *= 1e3;
            end++;
            break;
        }
    bool whole = comma && end > text && comma - end == 5 && !strncasecmp(end, "flops", 5);
    if (!whole || !(flops > 0 && flops < 1e21))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--pace %s: give what a rank reaches in matrix products and through memory, as 100gflops,20GB",
                         text);
    sluice_status status = slc_parse_bandwidth(comma + 1, &pace->bytes_per_s);
    if (status) return slc_error_context(status, "--pace");
    pace->flops = flops;
    snprintf(pace->compute, sizeof pace->compute, "as --pace says");
    return SLUICE_OK;
}

sluice_status slc_pace_of_cluster(const char *name, slc_pace *pace)
{
    slc_made_options made = {0};
    sluice_status status = slc_made_cluster(name, &made);
    if (status) return slc_error_context(status, "--machines");
    pace->flops = made.device_flops * made.efficiency;
    pace->bytes_per_s = BYTES_OF_UPDATE / made.update_s_per_element;
    pace->link_bytes_per_s = made.bytes_per_s;
    pace->link_latency_s = made.latency_s;
    pace->kappa = made.kappa;
    pace->sigma = made.sigma;
    pace->thread_moves = made.thread_moves;
    pace->ranks = made.world;
    snprintf(pace->compute, sizeof pace->compute, "published for %s, %.0f %% of the peak", name, 100 * made.efficiency);
    snprintf(pace->link, sizeof pace->link, "published for %s", name);
    return SLUICE_OK;
}

/* ---- The link ---- */

/* Round figures for links that were not measured: a network, which moves data by itself, and the memory of a host,
 * through which the communication threads copy. */
enum { NETWORK, MEMORY_OF_HOST };
static const slc_pace links[] = {
    [NETWORK] = {.link_latency_s = 50e-6, .kappa = 0.2, .sigma = 1.1},
    [MEMORY_OF_HOST] = {
        .link_bytes_per_s = 4e9, .link_latency_s = 20e-6, .kappa = 1, .sigma = 1.5, .thread_moves = true}};

static void take_link(const slc_pace *from, slc_pace *pace)
{
    pace->link_bytes_per_s = from->link_bytes_per_s;
    pace->link_latency_s = from->link_latency_s;
    pace->kappa = from->kappa;
    pace->sigma = from->sigma;
    pace->thread_moves = from->thread_moves;
}

sluice_status slc_pace_link(const char *throttle, bool one_host, slc_pace *pace)
{
    char bandwidth[64];
    if (*throttle) {
        const char *comma = strchr(throttle, ',');
        take_link(&links[NETWORK], pace);
        snprintf(bandwidth, sizeof bandwidth, "%.*s", (int)(comma ? comma - throttle : (long)strlen(throttle)),
                 throttle);
        sluice_status status = slc_parse_bandwidth(bandwidth, &pace->link_bytes_per_s);
        if (!status && comma) status = slc_parse_seconds(comma + 1, &pace->link_latency_s);
        snprintf(pace->link, sizeof pace->link, "as --throttle says");
        return slc_error_context(status, "--throttle");
    }
    if (pace->link_bytes_per_s > 0) return SLUICE_OK;
    if (!one_host)
        return slc_error(SLUICE_ERR_ARGUMENT, "ranks of several hosts: say how fast their network is, with --throttle "
                                              "as 10gbit,20us or with --machines");
    take_link(&links[MEMORY_OF_HOST], pace);
    snprintf(pace->link, sizeof pace->link, "a round figure for ranks that share a host's memory");
    return SLUICE_OK;
}

/* ---- Times ---- */

/* FLOPs of a layer's forward. `layers` counts the embedding and the head too. */
static double forward_flops(const sluice_model_config *model, uint32_t layer, uint32_t layers, double rows,
                            double length, double batch)
{
    const bool head = layer + 1 == layers, classes = model->head == SLUICE_HEAD_CLASSES;
    slc_param_info info;
    double elements = 0, flops = 0;
    for (uint32_t i = 0; slc_param_info_at(model, i, &info); i++) {
        uint32_t of = info.layer == SLC_LAYER_EMBED ? 0 : info.layer == SLC_LAYER_HEAD ? layers - 1 : 1 + info.block;
        bool looked_up = info.place == SLC_TOKEN_TABLE || info.place == SLC_POSITION_TABLE ||
                         info.place == SLC_TYPE_TABLE || info.place == SLC_RELATIVE_TABLE;
        if (of == layer && !looked_up) elements += (double)info.count;
        if (head && !classes && info.place == SLC_TOKEN_TABLE) elements += (double)info.count;
    }
    flops = 2 * elements * (head && classes ? batch : rows);
    if (layer && !head) flops += (slc_family_of(model->family)->causal ? 2 : 4) * length * model->channels * rows;
    return flops;
}

double slc_pace_model_flops(const sluice_model_config *model, uint32_t batch, uint32_t length)
{
    const double sequence = sluice_model_tokens(model, length), rows = sequence * batch;
    double flops = 0;
    for (uint32_t l = 0; l < model->layers + 2; l++)
        flops += 3 * forward_flops(model, l, model->layers + 2, rows, sequence, batch);
    return flops;
}

static void set_link(const slc_pace *pace, slc_profile *profile)
{
    slc_link *link = &profile->times.link;
    const double saturating = 19 * pace->link_latency_s * profile->job.world * pace->link_bytes_per_s;
    uint64_t block = 1;
    for (uint32_t u = 0; u < profile->job.unit_count; u++)
        if (profile->block_bytes[u] > block) block = profile->block_bytes[u];
    link->reduce_scatter = link->all_gather = (slc_link_line){pace->link_latency_s, pace->link_bytes_per_s};
    link->kappa = pace->kappa;
    link->sigma = pace->sigma;
    link->thread_moves = pace->thread_moves;
    link->block_bytes = saturating < (double)block ? block : saturating < 0x1p40 ? (uint64_t)saturating : 1ull << 40;
    link->operation_s = 0;
}

void slc_pace_set_slots(const slc_pace *pace, const sluice_model_config *model, uint32_t batch, uint32_t length,
                        double filled, const slc_job *job, slc_times *times)
{
    const double sequence = sluice_model_tokens(model, length), rows = sequence * batch;
    for (uint32_t l = 0; l < job->layer_count; l++)
        times->slot_s[l] = forward_flops(model, l, job->layer_count, rows, sequence, batch) / pace->flops;
    for (uint32_t a = 0; a < job->activation_count; a++)
        if (slc_slot_is_forward(job, job->activations[a].first_slot))
            times->slot_s[job->activations[a].first_slot] +=
                2 * filled * (double)job->activations[a].bytes / pace->bytes_per_s;
    for (uint32_t l = 0; l < job->layer_count; l++) {
        times->recompute_s[l] = times->slot_s[l];
        times->slot_s[slc_backward_slot(job, l)] = 2 * times->slot_s[l];
    }
}

void slc_pace_set_times(const slc_pace *pace, const sluice_model_config *model, uint32_t batch, uint32_t length,
                        slc_profile *profile)
{
    slc_times *times = &profile->times;
    slc_pace_set_slots(pace, model, batch, length, 1, &profile->job, times);
    times->update_s_per_element = BYTES_OF_UPDATE / pace->bytes_per_s;
    times->update_compute_s_per_element = 0;
    times->compress_s_per_element = times->apply_s_per_element = BYTES_OF_EXCHANGE / pace->bytes_per_s;
    times->average_s_per_element = BYTES_OF_EXCHANGE / 2 / pace->bytes_per_s;
    set_link(pace, profile);
}
