/* A round queues the copy and the work behind it, with an event before, between and after, and waits once.
 * tests/command/measure/kernels_test.sh covers this file. */
#include "bench/lab/kernels/gpu_bench.h"

#include "bench/lab/numbers.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_LAUNCHES = 8, PATTERN = 1 << 20 };
static const uint64_t copy_bytes = 256 << 20, small_copy_bytes = 1 << 20;

/* ---- The bench ---- */

static void make_pattern(slc_pinned *pattern)
{
    float *numbers = pattern->base;
    uint16_t *rounded = (uint16_t *)(numbers + PATTERN);
    slc_lab_fill(SLUICE_FP32, PATTERN, numbers, 1);
    slc_lab_fill(SLUICE_BF16, PATTERN, rounded, 1);
}

static sluice_status print_head(const slc_gpu_bench *bench)
{
    slc_device_facts facts;
    sluice_status status = slc_device_get_facts(bench->device, &facts);
    if (status) return status;
    fprintf(bench->table, "# %s: %s, capability %u.%u; copy of %" PRIu64 " bytes; %u rounds%s\n",
            slc_device_describe("cuda"), facts.name, facts.capability / 10, facts.capability % 10,
            (uint64_t)bench->from.bytes, bench->rounds, bench->small ? "; small" : "");
    fprintf(bench->table, "# %-26s %4s %-18s %9s %8s %8s %7s %8s %5s %7s %6s %6s\n", "op", "type", "shape", "us",
            "GB/s", "copy", "of copy", "TFLOP/s", "regs", "shared", "local", "occup.");
    return SLUICE_OK;
}

sluice_status slc_gpu_bench_open(slc_gpu_bench *bench)
{
    const uint64_t bytes = bench->small ? small_copy_bytes : copy_bytes;
    sluice_status status = slc_device_open("cuda", &bench->device);
    if (status) return status;
    status = slc_stream_create(bench->device, 1, &bench->stream);
    if (status) bench->stream = (sluice_stream){0};
    if (!status) status = slc_segment_create(bench->device, bytes, &bench->from);
    if (!status) status = slc_segment_create(bench->device, bytes, &bench->to);
    if (!status) status = slc_pinned_create(bench->device, PATTERN * (sizeof(float) + 2), &bench->pattern);
    if (!status) make_pattern(&bench->pattern);
    slc_event *const events[] = {&bench->begin, &bench->between, &bench->end};
    for (int i = 0; !status && i < 3; i++) status = slc_event_create(bench->device, events[i]);
    return status ? status : print_head(bench);
}

void slc_gpu_bench_close(slc_gpu_bench *bench)
{
    if (!bench->device) return;
    slc_event_destroy(&bench->begin);
    slc_event_destroy(&bench->between);
    slc_event_destroy(&bench->end);
    slc_pinned_destroy(&bench->pattern);
    slc_segment_destroy(&bench->to);
    slc_segment_destroy(&bench->from);
    slc_stream_destroy(&bench->stream);
    slc_device_close(bench->device);
    bench->device = NULL;
}

bool slc_gpu_bench_wants(const slc_gpu_bench *bench, const char *op, sluice_dtype dtype)
{
    return (!bench->op || !strcmp(bench->op, op)) && (!bench->dtype || !strcmp(bench->dtype, sluice_dtype_name(dtype)));
}

/* ---- Contents ---- */

sluice_status slc_gpu_bench_repeat(slc_gpu_bench *bench, void *at, uint64_t some, uint64_t bytes)
{
    sluice_status status = SLUICE_OK;
    for (uint64_t done = some, next; !status && done < bytes; done += next) {
        next = done < bytes - done ? done : bytes - done;
        status = slc_copy(&bench->stream, (char *)at + done, at, next);
    }
    return status;
}

sluice_status slc_gpu_bench_fill(slc_gpu_bench *bench, sluice_dtype dtype, uint64_t count, void *at)
{
    const uint64_t each = sluice_dtype_bytes(dtype), some = (count < PATTERN ? count : PATTERN) * each;
    const float *numbers = bench->pattern.base;
    const void *from = dtype == SLUICE_BF16 ? (const void *)(numbers + PATTERN) : numbers;
    sluice_status status = slc_copy(&bench->stream, at, from, some);
    return status ? status : slc_gpu_bench_repeat(bench, at, some, count * each);
}

/* ---- Which kernels a call launches ---- */

typedef struct {
    slc_kernel_launch kinds[MOST_LAUNCHES]; /* equal ones are listed once */
    uint32_t count, all;
} launch_list;

static void keep_launch(void *context, const slc_kernel_launch *launch)
{
    launch_list *list = context;
    list->all++;
    for (uint32_t i = 0; i < list->count; i++) {
        const slc_kernel_launch *k = &list->kinds[i];
        if (!strcmp(k->kernel, launch->kernel) && k->function == launch->function && k->blocks == launch->blocks &&
            k->threads == launch->threads && k->shared_bytes == launch->shared_bytes)
            return;
    }
    if (list->count < MOST_LAUNCHES) list->kinds[list->count++] = *launch;
}

static json_t *launch_json(const slc_kernel_launch *k)
{
    json_t *item = json_pack("{s:s}", "kernel", k->kernel);
    if (item && k->known)
        json_object_update_new(item, json_pack("{s:I, s:i, s:I}", "blocks", (json_int_t)k->blocks, "threads",
                                               (int)k->threads, "shared_bytes", (json_int_t)k->shared_bytes));
    if (item && k->compiled)
        json_object_update_new(item, json_pack("{s:i, s:I, s:f}", "registers", (int)k->registers, "local_bytes",
                                               (json_int_t)k->local_bytes, "occupancy", k->occupancy));
    return item;
}

static void print_launch(FILE *table, const slc_kernel_launch *k)
{
    char registers[24] = "-", local[24] = "-", occupancy[24] = "-", shared[24] = "-";
    if (k->known) snprintf(shared, sizeof shared, "%" PRIu64, k->shared_bytes);
    if (k->compiled) {
        snprintf(registers, sizeof registers, "%u", k->registers);
        snprintf(local, sizeof local, "%" PRIu64, k->local_bytes);
        snprintf(occupancy, sizeof occupancy, "%.2f", k->occupancy);
    }
    fprintf(table, " %5s %7s %6s %6s\n", registers, shared, local, occupancy);
}

/* ---- Measuring ---- */

typedef struct {
    double time_s, copy_s, of_copy; /* medians; of_copy is 0 for work that is measured in operations */
} gpu_paces;

static sluice_status run_round(slc_gpu_bench *bench, const slc_gpu_work *work, double *copy_s, double *took_s)
{
    sluice_status status = slc_event_record(&bench->stream, &bench->begin);
    if (!status) status = slc_copy(&bench->stream, bench->to.base, bench->from.base, bench->from.bytes);
    if (!status) status = slc_event_record(&bench->stream, &bench->between);
    if (!status) status = work->call(work->context);
    if (!status) status = slc_event_record(&bench->stream, &bench->end);
    if (!status) status = slc_stream_synchronize(&bench->stream);
    if (!status) status = slc_event_elapsed(&bench->begin, &bench->between, copy_s);
    if (!status) status = slc_event_elapsed(&bench->between, &bench->end, took_s);
    return status;
}

static sluice_status warm_up(slc_gpu_bench *bench, const slc_gpu_work *work, launch_list *launches)
{
    slc_device_watch_launches(bench->device, keep_launch, launches);
    sluice_status status = work->call(work->context);
    slc_device_watch_launches(bench->device, NULL, NULL);
    return status ? status : slc_stream_synchronize(&bench->stream);
}

static sluice_status run_rounds(slc_gpu_bench *bench, const slc_gpu_work *work, launch_list *launches, gpu_paces *out)
{
    double times[SLC_GPU_MOST_ROUNDS], copies[SLC_GPU_MOST_ROUNDS], ratios[SLC_GPU_MOST_ROUNDS];
    sluice_status status = warm_up(bench, work, launches);
    for (uint32_t i = 0; !status && i < bench->rounds; i++) {
        status = run_round(bench, work, &copies[i], &times[i]);
        ratios[i] = work->bytes / times[i] / (2 * (double)bench->from.bytes / copies[i]);
    }
    if (status) return status;
    out->time_s = slc_median(times, bench->rounds);
    out->copy_s = slc_median(copies, bench->rounds);
    out->of_copy = work->bytes > 0 ? slc_median(ratios, bench->rounds) : 0;
    return SLUICE_OK;
}

static void print_row(const slc_gpu_bench *bench, const slc_gpu_work *work, const launch_list *launches,
                      const gpu_paces *p)
{
    char pace[24] = "-", share[24] = "-", operations[24] = "-";
    const double copied = 2 * (double)bench->from.bytes;
    if (work->bytes > 0) {
        snprintf(pace, sizeof pace, "%.2f", work->bytes / p->time_s * 1e-9);
        snprintf(share, sizeof share, "%.3f", p->of_copy);
    }
    if (work->flops > 0) snprintf(operations, sizeof operations, "%.4g", work->flops / p->time_s * 1e-12);
    fprintf(bench->table, "  %-26s %4s %-18s %9.1f %8s %8.2f %7s %8s", work->name, sluice_dtype_name(work->dtype),
            work->shape, p->time_s * 1e6, pace, copied / p->copy_s * 1e-9, share, operations);
    print_launch(bench->table, &launches->kinds[0]);
    for (uint32_t i = 1; i < launches->count; i++) {
        fprintf(bench->table, "    and %-88s", launches->kinds[i].kernel);
        print_launch(bench->table, &launches->kinds[i]);
    }
    fflush(bench->table);
}

static json_t *row_json(const slc_gpu_work *work)
{
    return json_pack("{s:s, s:s, s:s}", "op", work->name, "type", sluice_dtype_name(work->dtype), "shape", work->shape);
}

static json_t *measured_json(const slc_gpu_bench *bench, const slc_gpu_work *work, const launch_list *launches,
                             const gpu_paces *p)
{
    json_t *row = row_json(work), *kinds = json_array();
    if (!row || !kinds) {
        json_decref(row), json_decref(kinds);
        return NULL;
    }
    for (uint32_t i = 0; i < launches->count; i++) json_array_append_new(kinds, launch_json(&launches->kinds[i]));
    json_object_update_new(row, json_pack("{s:f, s:f, s:i, s:o}", "time_us", p->time_s * 1e6, "copybw",
                                          2e-9 * (double)bench->from.bytes / p->copy_s, "launches", (int)launches->all,
                                          "kernels", kinds));
    if (work->bytes > 0)
        json_object_update_new(row, json_pack("{s:f, s:f, s:f}", "bytes", work->bytes, "algbw",
                                              1e-9 * work->bytes / p->time_s, "of_copy", p->of_copy));
    if (work->flops > 0)
        json_object_update_new(
            row, json_pack("{s:f, s:f}", "flops", work->flops, "tflops_per_s", 1e-12 * work->flops / p->time_s));
    return row;
}

static sluice_status append(slc_gpu_bench *bench, json_t *row)
{
    if (row && !json_array_append_new(bench->rows, row)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MEMORY, "rows");
}

sluice_status slc_gpu_bench_measure(slc_gpu_bench *bench, const slc_gpu_work *work)
{
    launch_list launches = {0};
    gpu_paces paces;
    if (run_rounds(bench, work, &launches, &paces)) return slc_gpu_bench_fail(bench, work);
    bench->measured++;
    print_row(bench, work, &launches, &paces);
    return append(bench, measured_json(bench, work, &launches, &paces));
}

sluice_status slc_gpu_bench_fail(slc_gpu_bench *bench, const slc_gpu_work *work)
{
    json_t *row = row_json(work);
    bench->failed++;
    fprintf(bench->table, "  %-26s %4s %-18s FAILED: %s\n", work->name, sluice_dtype_name(work->dtype), work->shape,
            sluice_last_error());
    fflush(bench->table);
    if (row) json_object_set_new(row, "error", json_string(sluice_last_error()));
    return append(bench, row);
}
