/* Prints the table of a profile. tests/command/plan/profile_test.sh covers this file. */
#include "bench/plan/words/profile_table.h"

#include "lib/plan/roles.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Layers [first, end). */
typedef struct {
    uint32_t first, end;
} run_of_layers;

/* Returns true if the names are equal but for their last number. */
static bool alike(const char *a, const char *b)
{
    size_t length_a = strlen(a), length_b = strlen(b);
    while (length_a && isdigit((unsigned char)a[length_a - 1])) length_a--;
    while (length_b && isdigit((unsigned char)b[length_b - 1])) length_b--;
    return length_a == length_b && a[length_a] && b[length_b] && !memcmp(a, b, length_a);
}

static run_of_layers run_at(const slc_job *job, uint32_t first)
{
    run_of_layers run = {first, first + 1};
    while (run.end < job->layer_count && alike(job->layers[first], job->layers[run.end])) run.end++;
    return run;
}

/* Returns the parameters that a unit itself has: the rows of a split table are not parameters of their own. */
static uint64_t own_parameters(const slc_profile *profile, uint32_t unit)
{
    return slc_looks_up(&profile->job.units[unit]) ? 0 : profile->parameters[unit];
}

static uint64_t parameters_of(const slc_profile *profile, run_of_layers run)
{
    uint64_t sum = 0;
    for (uint32_t u = 0; u < profile->job.unit_count; u++) {
        uint32_t layer = profile->job.units[u].uses[0].layer;
        if (layer >= run.first && layer < run.end) sum += own_parameters(profile, u);
    }
    return sum;
}

static uint64_t activations_of(const slc_job *job, run_of_layers run)
{
    uint64_t sum = 0;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        uint32_t slot = job->activations[a].first_slot, layer = slc_slot_layer(job, slot);
        if (slc_slot_is_forward(job, slot) && layer >= run.first && layer < run.end) sum += job->activations[a].bytes;
    }
    return sum;
}

static void put_run(FILE *out, const slc_profile *profile, run_of_layers run)
{
    const slc_job *job = &profile->job;
    double forward = 0, backward = 0;
    char name[64];
    for (uint32_t l = run.first; l < run.end; l++) {
        forward += profile->times.slot_s[slc_forward_slot(l)];
        backward += profile->times.slot_s[slc_backward_slot(job, l)];
    }
    snprintf(name, sizeof name, run.end - run.first > 1 ? "%.28s to %.28s" : "%.60s", job->layers[run.first],
             job->layers[run.end - 1]);
    fprintf(out, "  %-24s %12.3f %14.2f %12.3f %12.3f\n", name, 1e-6 * (double)parameters_of(profile, run),
            (double)activations_of(job, run) / 0x1p20, 1e3 * forward, 1e3 * backward);
}

static void put_line(FILE *out, const char *name, const slc_link_line *line)
{
    fprintf(out, "  %-15s %9.1f MB/s, latency %.1f us\n", name, 1e-6 * line->bytes_per_s, 1e6 * line->latency_s);
}

static void put_link(FILE *out, const slc_link *link)
{
    fprintf(out, "link\n");
    put_line(out, "reduce-scatter", &link->reduce_scatter);
    put_line(out, "all-gather", &link->all_gather);
    fprintf(
        out,
        "  a second of communication lengthens compute beside it by %.2f s (kappa) and itself takes %.2f s (sigma)\n"
        "  a second of updates on the communication thread lengthens it by %.2f s\n"
        "  95 %% of the bandwidth from %.0f KiB on; an operation costs its thread %.2f us; %s\n",
        link->kappa, link->sigma, fmax(link->kappa, link->update_kappa), (double)link->block_bytes / 1024,
        1e6 * link->operation_s, link->thread_moves ? "that thread moves the bytes" : "the bytes move by themselves");
}

void slc_profile_table(FILE *out, const slc_profile *profile)
{
    const slc_job *job = &profile->job;
    uint64_t parameters = 0, narrow = 0;
    double compute = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        parameters += own_parameters(profile, u);
        if (job->units[u].dtype == SLUICE_BF16) narrow += own_parameters(profile, u);
    }
    for (uint32_t s = 0; s < slc_job_slots(job); s++) compute += profile->times.slot_s[s];
    fprintf(out, "%s, %s\n", profile->model, profile->source);
    fprintf(out, "  %-24s %12s %14s %12s %12s\n", "layers", "parameters M", "kept MiB", "forward ms", "backward ms");
    for (uint32_t l = 0; l < job->layer_count;) {
        run_of_layers run = run_at(job, l);
        put_run(out, profile, run);
        l = run.end;
    }
    fprintf(out, "%.3f M parameters", 1e-6 * (double)parameters);
    if (narrow) fprintf(out, " (%.3f M in bf16, wire %s)", 1e-6 * (double)narrow, sluice_dtype_name(job->wire));
    fprintf(out, ", %u rank%s, %u micro-batch%s of %.3f ms; update %.2f ns an element\n", job->world,
            job->world == 1 ? "" : "s", job->micro_batches, job->micro_batches == 1 ? "" : "es", 1e3 * compute,
            1e9 * profile->times.update_s_per_element);
    if (profile->compressed)
        fprintf(out, "  compressed phase: compressing takes %.2f ns an element, applying %.2f, averaging %.2f\n",
                1e9 * profile->times.compress_s_per_element, 1e9 * profile->times.apply_s_per_element,
                1e9 * profile->times.average_s_per_element);
    put_link(out, &profile->times.link);
}
