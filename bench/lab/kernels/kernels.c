/* `sluice-lab kernels`: compares memory-bound kernels with a copy; each kernel is measured in turn with it. With
 * --device cuda see gpu_kernels.h. tests/command/measure/kernels_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/lab/kernels/copy_pace.h"
#include "bench/lab/kernels/gpu_kernels.h"
#include "bench/lab/kernels/kernel_table.h"
#include "bench/cli/memory_fit.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/options/command_line.h"
#include "lib/base/clock.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "lib/kernels/isa.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1000, WORKSPACE = 64 << 20 };
typedef struct {
    const char *op, *dtype, *device, *json;
    uint64_t bytes, copy_bytes, channels;
    uint32_t rounds, threads;
    bool cuda, small;
    const char *typed[16];
} kernels_options;

#define FIELD(name) SLC_OPTION_FIELD(kernels_options, name)
static const double LEAST_BYTES = 4096, MOST_BYTES = 0x1p34;

static const slc_option option_rows[] = {
    {"op", "NAME", 0, SLC_OPTION_TEXT, FIELD(op), NULL, 0, "One kernel (default: all of them)"},
    {"dtype", "TYPE", 0, SLC_OPTION_WORD, FIELD(dtype), NULL, 0, "fp32 or bf16 (default: both)",
     .choices = "fp32,bf16"},
    {"size", "BYTES", 0, SLC_OPTION_SIZE, FIELD(bytes), "64MiB", 0, "Of one array", LEAST_BYTES, MOST_BYTES},
    {"copy", "BYTES", 0, SLC_OPTION_SIZE, FIELD(copy_bytes), "256MiB", 0,
     "Of the copy, which is never smaller than an array", LEAST_BYTES, MOST_BYTES},
    {"channels", "N", 0, SLC_OPTION_COUNT, FIELD(channels), "768", 0, "Elements of a row", 1, 1 << 20},
    {"rounds", "N", 0, SLC_OPTION_COUNT, FIELD(rounds), "9", 0, "Rounds; each runs the copy and the kernel once", 1,
     MOST_ROUNDS},
    {"threads", "N", 0, SLC_OPTION_COUNT, FIELD(threads), "1", 0, "Threads of a kernel; the copy has one", 1, 4096},
    {"device", "NAME", 0, SLC_OPTION_WORD, FIELD(device), "cpu", 0, "cpu or cuda", .choices = "cpu,cuda"},
    {"small", NULL, 0, SLC_OPTION_FLAG, FIELD(small), NULL, 0, "On cuda: sizes that an emulated GPU can afford"},
    {"json", "FILE", 0, SLC_OPTION_TEXT, FIELD(json), NULL, 0, "Write the rows as JSON; '-': standard output"},
    {0},
};
static_assert(sizeof option_rows / sizeof *option_rows - 1 <= sizeof((kernels_options *)NULL)->typed / sizeof(char *),
              "each option has a place in `typed`");

static const char doc[] =
    "Measures the kernels whose pace memory sets beside a copy by one thread, by turns.\v"
    "Columns: bytes moved an element (each array read or written once), time of a call, gigabytes a second of the "
    "kernel and of the copy (what it reads and what it writes), medians over the rounds; of copy: the median ratio; "
    "best: the ratio of the fastest call to the fastest copy. With one thread, times are of the thread, not of the "
    "clock on the wall.\n"
    "With --device cuda, sizes are those of GPT-2 124M's training and ViT's images, attention and products are "
    "measured "
    "too, times come from the GPU's events, the copy is from its memory to its memory, and further columns are a "
    "thread's registers and local memory, a block's shared memory, and the share of a multiprocessor's threads that "
    "it holds at once; '-' is not known.\n"
    "Examples:\n"
    "  sluice-lab kernels --op gelu_forward --dtype bf16\n"
    "  sluice-lab kernels --size 128MiB --json kernels.json\n"
    "  sluice-lab kernels --device cuda --json gpu.json";

/* ---- Options ---- */

static bool known(const kernels_options *o)
{
    const char *op = o->op;
    if (o->cuda) return slc_gpu_kernels_know(op);
    for (uint32_t i = 0; i < slc_kernel_table_rows; i++)
        if (!strcmp(op, slc_kernel_table[i].name)) return true;
    return false;
}

static sluice_status refuse_op(const kernels_options *o)
{
    char names[1024] = "";
    for (uint32_t i = 0; i < slc_kernel_table_rows; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", slc_kernel_table[i].name);
    }
    return slc_error(SLUICE_ERR_ARGUMENT, "--op %s: use one of %s%s%s", o->op, names, o->cuda ? ", " : "",
                     o->cuda ? slc_gpu_kernels_others() : "");
}

/* Refuses options that exclude each other, which can be seen only once all of them are read. */
static sluice_status check_options(void *options)
{
    static const char *const of_the_host[] = {"size", "copy", "channels", "threads"};
    kernels_options *o = options;
    o->cuda = !strcmp(o->device, "cuda");
    for (size_t i = 0; o->cuda && i < sizeof of_the_host / sizeof *of_the_host; i++)
        if (slc_option_typed(option_rows, o->typed, of_the_host[i]))
            return slc_error(SLUICE_ERR_ARGUMENT, "--size, --copy, --channels and --threads are not for --device cuda");
    if (!o->cuda && o->small)
        return slc_error(SLUICE_ERR_ARGUMENT, "--small is for --device cuda; give --size on the host");
    return o->op && !known(o) ? refuse_op(o) : SLUICE_OK;
}

/* ---- Measuring ---- */

typedef struct {
    double time_s, bytes_per_s, copy_bytes_per_s, of_copy, best_of_copy;
} paces;

static sluice_status call_once(const slc_kernel_row *row, slc_kernel_case *c, const slc_copy_pace *copy, double *took_s)
{
    const uint64_t start_ns = slc_clock_read_ns(copy->clock);
    sluice_status status = row->call(c);
    if (!status) status = slc_stream_synchronize(&c->stream);
    *took_s = slc_seconds(slc_clock_read_ns(copy->clock) - start_ns);
    return status;
}

static sluice_status measure(const slc_kernel_row *row, slc_kernel_case *c, slc_copy_pace *copy, uint32_t rounds,
                             paces *out)
{
    double time[MOST_ROUNDS], copy_time[MOST_ROUNDS], ratio[MOST_ROUNDS];
    const double bytes = row->bytes[c->dtype] * (double)c->count, copied = 2 * (double)copy->bytes;
    slc_kernel_case_fill(c);
    sluice_status status = row->prepare ? row->prepare(c) : SLUICE_OK;
    if (!status) status = call_once(row, c, copy, &time[0]); /* warm-up */
    for (uint32_t i = 0; !status && i < rounds; i++) {
        copy_time[i] = slc_copy_pace_seconds(copy);
        status = call_once(row, c, copy, &time[i]);
        ratio[i] = bytes / time[i] / (copied / copy_time[i]);
    }
    if (status) return status;
    out->of_copy = slc_median(ratio, rounds);
    out->time_s = slc_median(time, rounds);
    out->bytes_per_s = bytes / out->time_s;
    out->copy_bytes_per_s = copied / slc_median(copy_time, rounds);
    out->best_of_copy = bytes / time[0] / (copied / copy_time[0]); /* `time` is sorted by now */
    return SLUICE_OK;
}

static sluice_status put_row(FILE *table, json_t *rows, const slc_kernel_row *row, const slc_kernel_case *c,
                             const paces *p)
{
    const char *type = sluice_dtype_name(c->dtype);
    fprintf(table, "  %-28s %5s %10.5g %10.1f %9.2f %9.2f %8.3f %8.3f\n", row->name, type, row->bytes[c->dtype],
            p->time_s * 1e6, p->bytes_per_s * 1e-9, p->copy_bytes_per_s * 1e-9, p->of_copy, p->best_of_copy);
    fflush(table);
    json_t *item =
        json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "op", row->name, "type", type, "size",
                  (json_int_t)(c->count * sluice_dtype_bytes(c->dtype)), "count", (json_int_t)c->count, "element_bytes",
                  row->bytes[c->dtype], "time_us", p->time_s * 1e6, "algbw", p->bytes_per_s * 1e-9, "copybw",
                  p->copy_bytes_per_s * 1e-9, "of_copy", p->of_copy, "best_of_copy", p->best_of_copy);
    return item && !json_array_append_new(rows, item) ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "rows");
}

static slc_kernel_case case_of(const kernels_options *o, sluice_dtype dtype)
{
    const uint64_t row_count = o->bytes / sluice_dtype_bytes(dtype) / o->channels;
    return (slc_kernel_case){.dtype = dtype,
                             .rows = row_count,
                             .channels = o->channels,
                             .count = row_count * o->channels,
                             .workspace_bytes = WORKSPACE};
}

/* `copy_bytes` is the size of each of the two arrays of a copy, which are in memory together with those of a kernel. */
static sluice_status check_memory(const kernels_options *o, uint64_t copy_bytes)
{
    /* Arrays have room for as many floats as they have elements. */
    const slc_kernel_case largest = case_of(o, o->dtype && !strcmp(o->dtype, "fp32") ? SLUICE_FP32 : SLUICE_BF16);
    const slc_memory_need need = {.bytes = 2 * copy_bytes + slc_kernel_case_bytes(&largest), .ranks = 1};
    slc_host_memory memory;
    slc_host_memory_read("", &memory);
    return slc_memory_fit(&memory, &need, "--size, --copy");
}

static sluice_status measure_type(slc_device *device, const kernels_options *o, sluice_dtype dtype, slc_copy_pace *copy,
                                  FILE *table, json_t *rows)
{
    slc_kernel_case c = case_of(o, dtype);
    if (!c.rows) return slc_error(SLUICE_ERR_ARGUMENT, "--size: not one row of %" PRIu64 " channels", o->channels);
    slc_segment segment;
    sluice_status status = slc_stream_create(device, o->threads, &c.stream);
    if (status) return status;
    status = slc_segment_create(device, slc_kernel_case_bytes(&c), &segment);
    if (status) goto destroy_stream;
    slc_kernel_case_lay_out(&c, segment.base);
    for (uint32_t i = 0; !status && i < slc_kernel_table_rows; i++) {
        const slc_kernel_row *row = &slc_kernel_table[i];
        paces p;
        if (o->op && strcmp(o->op, row->name)) continue;
        status = measure(row, &c, copy, o->rounds, &p);
        if (!status) status = put_row(table, rows, row, &c, &p);
    }
    slc_segment_destroy(&segment);
destroy_stream:
    slc_stream_destroy(&c.stream);
    return status;
}

static void print_head(FILE *table, const kernels_options *o, const slc_copy_pace *copy)
{
    fprintf(table, "# %s, %u thread%s; arrays of %" PRIu64 " bytes; copy: %s of %" PRIu64 " bytes; %u rounds\n",
            slc_isa_name(slc_isa_level()), o->threads, o->threads == 1 ? "" : "s", o->bytes, slc_copy_pace_name(copy),
            copy->bytes, o->rounds);
    fprintf(table, "# %-28s %5s %10s %10s %9s %9s %8s %8s\n", "op", "type", "B/element", "us", "GB/s", "copy",
            "of copy", "best");
}

static sluice_status measure_all(slc_device *device, const kernels_options *o, FILE *table, json_t *rows,
                                 const char **copy_name)
{
    slc_copy_pace copy;
    const uint64_t bytes = o->bytes > o->copy_bytes ? o->bytes : o->copy_bytes;
    const clockid_t clock = o->threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    sluice_status status = check_memory(o, bytes);
    if (!status) status = slc_copy_pace_open(device, bytes, 5, clock, &copy);
    if (status) return status;
    *copy_name = slc_copy_pace_name(&copy);
    print_head(table, o, &copy);
    for (sluice_dtype dtype = SLUICE_FP32; !status && dtype <= SLUICE_BF16; dtype++)
        if (!o->dtype || !strcmp(o->dtype, sluice_dtype_name(dtype)))
            status = measure_type(device, o, dtype, &copy, table, rows);
    slc_copy_pace_close(&copy);
    return status;
}

static sluice_status measure_and_write(const kernels_options *o)
{
    FILE *table = slc_is_standard_output(o->json) ? stderr : stdout;
    slc_device *device = NULL;
    const char *copy = NULL;
    slc_result_file file = {0};
    json_t *rows = json_array();
    sluice_status status = rows ? slc_result_file_open(o->json, &file) : slc_error(SLUICE_ERR_MEMORY, "rows");
    if (!status) status = slc_device_open("cpu", &device);
    if (!status) status = measure_all(device, o, table, rows, &copy);
    if (!status)
        status = slc_result_file_put_json(&file, json_pack("{s:s, s:i, s:s, s:O}", "isa", slc_isa_name(slc_isa_level()),
                                                           "threads", (int)o->threads, "copy", copy, "rows", rows));
    if (!status) status = slc_result_file_commit(&file);
    if (device) slc_device_close(device);
    slc_result_file_abandon(&file);
    json_decref(rows);
    return status;
}

/* ---- On a GPU ---- */

static json_t *gpu_results(const slc_gpu_bench *bench)
{
    slc_device_facts facts;
    if (slc_device_get_facts(bench->device, &facts)) facts = (slc_device_facts){0}; /* after a kernel that failed */
    return json_pack("{s:s, s:s, s:b, s:I, s:i, s:i, s:i, s:O}", "device", slc_device_describe("cuda"), "gpu",
                     facts.name, "small", (int)bench->small, "copy_bytes", (json_int_t)bench->from.bytes, "rounds",
                     (int)bench->rounds, "measured", (int)bench->measured, "failed", (int)bench->failed, "rows",
                     bench->rows);
}

/* The rows that could be measured are written even if others failed. */
static sluice_status measure_on_gpu(const kernels_options *o)
{
    slc_gpu_bench bench = {
        .op = o->op, .dtype = o->dtype, .rounds = o->rounds, .small = o->small, .rows = json_array()};
    slc_result_file file = {0};
    bench.table = slc_is_standard_output(o->json) ? stderr : stdout;
    sluice_status status = bench.rows ? slc_result_file_open(o->json, &file) : slc_error(SLUICE_ERR_MEMORY, "rows");
    if (!status) status = slc_gpu_bench_open(&bench);
    if (!status) status = slc_gpu_kernels_measure(&bench);
    if (!status) status = slc_result_file_put_json(&file, gpu_results(&bench));
    if (!status) status = slc_result_file_commit(&file);
    if (!status && bench.failed)
        status = slc_error(SLUICE_ERR_SYSTEM, "%u of %u rows failed; the table says why", bench.failed,
                           bench.failed + bench.measured);
    slc_gpu_bench_close(&bench);
    slc_result_file_abandon(&file);
    json_decref(bench.rows);
    return status;
}

static int run_kernels(int argc, char **argv)
{
    const slc_command_line line = {
        .rows = option_rows, .typed = offsetof(kernels_options, typed), .check = check_options, .doc = doc};
    kernels_options o = {0};
    slc_command_line_parse(&line, argc, argv, &o);
    sluice_status status = o.cuda ? measure_on_gpu(&o) : measure_and_write(&o);
    if (status) slc_fail("sluice-lab kernels");
    return status ? EXIT_FAILED : 0;
}

const sluice_command slc_command_kernels = {"kernels", "measures kernels beside a copy of memory", run_kernels};
