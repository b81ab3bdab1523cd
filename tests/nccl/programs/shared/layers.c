/* Options, naps, values that averages do not change, and the time of a step. */
#include "tests/nccl/programs/shared/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GRAIN = 48, AHEAD = 2 };

/* Reads numbers with commas between them; returns how many there are. */
static int read_list(const char *option, const char *text, double *numbers)
{
    int count = 0;
    for (;;) {
        char *end;
        CHECK(count < LAYERS_MAX, "%s: there are more than %d layers", option, LAYERS_MAX);
        numbers[count] = strtod(text, &end);
        CHECK(end > text && numbers[count] >= 0 && numbers[count] < 1e9, "%s %s: give numbers", option, text);
        count++;
        if (!*end) return count;
        CHECK(*end == ',', "%s %s: give numbers with commas between them", option, text);
        text = end + 1;
    }
}

static void set_times(slc_layers *layers, const double *ms, int count)
{
    layers->layers = count;
    for (int l = 0; l < count; l++) {
        layers->backward_ns[l] = (int64_t)(ms[l] * 1e6);
        layers->forward_ns[l] = layers->backward_ns[l] / 2;
    }
}

static void set_bytes(slc_layers *layers, const double *bytes, int count)
{
    for (int l = 0; l < LAYERS_MAX; l++) {
        size_t elements = (size_t)bytes[l < count ? l : count - 1] / sizeof(float);
        layers->elements[l] = elements < GRAIN ? GRAIN : elements / GRAIN * GRAIN;
    }
}

void slc_layers_read(slc_layers *layers, int argc, char **argv)
{
    static const double usual_ms[] = {5, 8, 6, 12, 4, 10}, usual_bytes[] = {256 << 10};
    double numbers[LAYERS_MAX];
    *layers = (slc_layers){.steps = 12, .prefetch = true};
    set_times(layers, usual_ms, sizeof usual_ms / sizeof *usual_ms);
    set_bytes(layers, usual_bytes, 1);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--processes")) continue;
        if (!strcmp(argv[i], "-n")) { /* these two are for slc_ranks_run */
            i++;
            continue;
        }
        if (!strcmp(argv[i], "--no-prefetch")) {
            layers->prefetch = false;
            continue;
        }
        CHECK(i + 1 < argc, "%s: no value follows; give --layers, --bytes, --optimizer, --steps or --no-prefetch",
              argv[i]);
        const char *option = argv[i++];
        int count = read_list(option, argv[i], numbers);
        if (!strcmp(option, "--layers"))
            set_times(layers, numbers, count);
        else if (!strcmp(option, "--bytes"))
            set_bytes(layers, numbers, count);
        else if (!strcmp(option, "--optimizer"))
            layers->optimizer_ns = (int64_t)(numbers[0] * 1e6);
        else if (!strcmp(option, "--steps"))
            layers->steps = (int)numbers[0];
        else
            CHECK(false, "%s: give --layers, --bytes, --optimizer, --steps or --no-prefetch", option);
    }
    CHECK(layers->steps >= 1, "--steps %d: give at least 1", layers->steps);
}

static void sleep_s(double seconds)
{
    int64_t ns = (int64_t)(seconds * 1e9);
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

/* Sleeping is never early, but late by what the machine's load makes it; the last part is spent awake. */
static void take_nap(void *argument)
{
    static const double awake_s = 200e-6;
    slc_nap *nap = argument;
    double begin_s = slc_layers_now_s(), end_s = begin_s + (double)nap->ns * 1e-9, left_s;
    while ((left_s = end_s - slc_layers_now_s()) > 0)
        if (left_s > awake_s) sleep_s(left_s - awake_s);
    if (nap->count < nap->room) nap->took_s[nap->count++] = slc_layers_now_s() - begin_s;
}

void slc_layers_nap(cudaStream_t stream, slc_nap *nap)
{
    if (nap->ns) CUDA(cudaLaunchHostFunc(stream, take_nap, nap));
}

void slc_naps_init(slc_naps *naps, const slc_layers *layers)
{
    size_t room = (size_t)layers->steps;
    *naps = (slc_naps){.took_s = calloc((2 * LAYERS_MAX + 1) * room, sizeof *naps->took_s)};
    CHECK(naps->took_s, "no memory");
    for (int l = 0; l < layers->layers; l++) {
        naps->forward[l] = (slc_nap){layers->forward_ns[l], naps->took_s + 2 * (size_t)l * room, 0, layers->steps};
        naps->backward[l] =
            (slc_nap){layers->backward_ns[l], naps->took_s + (2 * (size_t)l + 1) * room, 0, layers->steps};
    }
    naps->optimizer = (slc_nap){layers->optimizer_ns, naps->took_s + 2 * LAYERS_MAX * room, 0, layers->steps};
}

void slc_naps_fini(slc_naps *naps)
{
    free(naps->took_s);
}

void slc_layers_follow(cudaStream_t later, cudaStream_t earlier, cudaEvent_t event)
{
    CUDA(cudaEventRecord(event, earlier));
    CUDA(cudaStreamWaitEvent(later, event, 0));
}

void slc_layers_fill(float *memory, size_t count, float value)
{
    float *host = malloc(count * sizeof *host);
    CHECK(host, "no memory");
    for (size_t i = 0; i < count; i++) host[i] = value;
    CUDA(cudaMemcpy(memory, host, count * sizeof *host, cudaMemcpyHostToDevice));
    free(host);
}

void slc_layers_check(slc_rank *rank, const float *memory, size_t count, float value, int layer)
{
    float *host = malloc(count * sizeof *host);
    CHECK(host, "no memory");
    CUDA(cudaMemcpy(host, memory, count * sizeof *host, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        CHECK(memcmp(&host[i], &value, sizeof value) == 0, "rank %d: element %zu of layer %d is %g, not %g", rank->rank,
              i, layer, (double)host[i], (double)value);
    slc_rank_result(rank, host, count * sizeof *host);
    free(host);
}

double slc_layers_now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_s(double *times_s, int count)
{
    if (count < 1) return 0;
    qsort(times_s, (size_t)count, sizeof *times_s, by_size);
    return times_s[count / 2];
}

static double time_s(const slc_nap *nap, int step)
{
    return step < nap->count ? nap->took_s[step] : 0;
}

/* The optimizer of a step, the next step's forward, and its first backward. */
static double median_rest_s(const slc_layers *layers, const slc_naps *naps)
{
    int last = layers->layers - 1, count = layers->steps - 1;
    double *sums_s = calloc((size_t)layers->steps, sizeof *sums_s), median;
    CHECK(sums_s, "no memory");
    for (int s = 0; s < count; s++) {
        sums_s[s] = time_s(&naps->optimizer, s) + time_s(&naps->backward[last], s + 1);
        for (int l = 0; l < layers->layers; l++) sums_s[s] += time_s(&naps->forward[l], s + 1);
    }
    median = median_s(sums_s, count);
    free(sums_s);
    return median;
}

double *slc_layers_train(const slc_layers *layers, cudaStream_t compute, void (*step)(void *trainer), void *trainer)
{
    cudaEvent_t step_end[AHEAD];
    double *step_s = calloc((size_t)layers->steps + 1, sizeof *step_s), before_s = slc_layers_now_s();
    CHECK(step_s, "no memory");
    for (int i = 0; i < AHEAD; i++) CUDA(cudaEventCreateWithFlags(&step_end[i], cudaEventDisableTiming));
    for (int s = 0; s < layers->steps; s++) {
        step(trainer);
        CUDA(cudaEventRecord(step_end[s % AHEAD], compute));
        if (s + 1 < AHEAD) continue;
        CUDA(cudaEventSynchronize(step_end[(s + 1) % AHEAD]));
        step_s[s + 1 - AHEAD] = slc_layers_now_s() - before_s;
        before_s += step_s[s + 1 - AHEAD];
        slc_ranks_alive();
    }
    CUDA(cudaStreamSynchronize(compute));
    for (int i = 0; i < AHEAD; i++) CUDA(cudaEventDestroy(step_end[i]));
    return step_s;
}

void slc_layers_report(const slc_rank *rank, const slc_layers *layers, slc_naps *naps, double *step_s)
{
    char line[32 + 2 * LAYERS_MAX * 16];
    int used = snprintf(line, sizeof line, "compute_s %d", rank->rank);
    double rest_s = median_rest_s(layers, naps); /* the medians below reorder the times */
    for (int l = 0; l < layers->layers; l++)
        used += snprintf(line + used, sizeof line - (size_t)used, " %.6f",
                         median_s(naps->forward[l].took_s, naps->forward[l].count));
    for (int l = 0; l < layers->layers; l++)
        used += snprintf(line + used, sizeof line - (size_t)used, " %.6f",
                         median_s(naps->backward[l].took_s, naps->backward[l].count));
    fprintf(stderr, "%s %.6f\n", line, rest_s);
    if (!rank->rank) fprintf(stderr, "step_s %.6f\n", median_s(step_s + 1, layers->steps - AHEAD));
}
