/* Reads the command line, and finds what excludes each other in it. tests/command/measure/perf_test.sh covers this
 * file. */
#include "bench/perf/options.h"

#include "bench/cli/options/command_line.h"
#include "bench/cli/throttle_option.h"
#include "lib/base/status.h"

#include <assert.h>
#include <sluice/world.h>
#include <string.h>

static const slc_perf_operation operations[] = {
    {"all_reduce", SLC_ALL_REDUCE, true, false, false},
    {"reduce_scatter", SLC_REDUCE_SCATTER, true, false, false},
    {"all_gather", SLC_ALL_GATHER, false, false, false},
    {"broadcast", SLC_BROADCAST, false, false, false},
    {"reduce_scatter_all_gather", SLC_REDUCE_SCATTER, true, true, false},
    {"send_receive", SLC_CALL, false, false, true},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* ---- Values ---- */

static sluice_status set_operation(void *options, const slc_option *row, char *text)
{
    slc_perf_options *o = options;
    for (int i = 0; i < OPERATIONS; i++)
        if (!strcmp(operations[i].name, text)) {
            o->operation = &operations[i];
            return SLUICE_OK;
        }
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--%s %s: use all_reduce, reduce_scatter, all_gather, broadcast, reduce_scatter_all_gather or "
                     "send_receive",
                     row->name, text);
}

/* nccl-tests' names of types, and those of training. */
static sluice_status set_type(void *options, const slc_option *row, char *text)
{
    slc_perf_options *o = options;
    const bool all = !strcmp(text, "all");
    o->fp32 = all || !strcmp(text, "float") || !strcmp(text, "fp32");
    o->bf16 = all || !strcmp(text, "bfloat16") || !strcmp(text, "bf16");
    if (o->fp32 || o->bf16) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "-%c %s: collectives move float (fp32) and bfloat16 (bf16); all is both",
                     row->letter, text);
}

static sluice_status set_sum(void *options, const slc_option *row, char *text)
{
    slc_perf_options *o = options;
    const bool all = !strcmp(text, "all");
    o->sum = all || !strcmp(text, "sum");
    o->average = all || !strcmp(text, "avg");
    if (o->sum || o->average) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "-%c %s: use sum, avg or all; collectives do not reduce otherwise",
                     row->letter, text);
}

/* ---- The table ---- */

#define FIELD(name) SLC_OPTION_FIELD(slc_perf_options, name)
static const double MOST = 0x1p40;

static const slc_option option_rows[] = {
    {"op", "NAME=all_reduce,reduce_scatter,all_gather,broadcast,reduce_scatter_all_gather,send_receive", 0,
     SLC_OPTION_SET, FIELD(operation), "all_reduce", 0,
     "all_reduce, reduce_scatter, all_gather, broadcast, reduce_scatter_all_gather: each block reduced, then gathered, "
     "or send_receive: each rank to the next",
     .set = set_operation},
    {"minbytes", "SIZE", 0, SLC_OPTION_SIZE, FIELD(least_bytes), "64K", 0,
     "Smallest size, as 64K or 1M; 0: ranks meet, and no data moves", 0, MOST, .note = ", at most -e", .letter = 'b'},
    {"maxbytes", "SIZE", 0, SLC_OPTION_SIZE, FIELD(most_bytes), "16M", 0, "Largest size", 0, MOST,
     .note = ", at least -b", .letter = 'e'},
    {"stepfactor", "X", 0, SLC_OPTION_REAL, FIELD(factor), "4", 0, "Factor between sizes", 1.0001, 1e6, .letter = 'f'},
    {"stepbytes", "SIZE", 0, SLC_OPTION_SIZE, FIELD(step_bytes), NULL, 0, "Instead of a factor: step between sizes", 1,
     MOST, .letter = 'i'},
    {"iters", "N", 0, SLC_OPTION_COUNT, FIELD(iterations), "20", 0, "Iterations that are measured", 1, 1e6,
     .letter = 'n'},
    {"warmup_iters", "N", 0, SLC_OPTION_COUNT, FIELD(warm_up), "5", 0, "Iterations before them", 0, 1e6, .letter = 'w'},
    {"check", "N", 0, SLC_OPTION_COUNT, FIELD(checks), "1", 0,
     "Check the results N times, each of other values; 0: do not", 0, 1e6, .letter = 'c'},
    {"redop", "NAME=sum,avg,all", 0, SLC_OPTION_SET, FIELD(sum), "sum", 0,
     "Sum that is checked: sum, avg: divided by the ranks, or all", .letter = 'o', .set = set_sum},
    {"ranks", "N", 1, SLC_OPTION_COUNT, FIELD(ranks), NULL, 0, "Start N ranks on this machine", 1, SLUICE_RANKS_MOST},
    {"device", "NAME", 1, SLC_OPTION_WORD, FIELD(device), "cpu", 0,
     "cpu: the host's memory; cuda: that of GPUs, one for each rank", .choices = "cpu,cuda"},
    {"sums", "HOW", 1, SLC_OPTION_WORD, FIELD(sums), "ordered", 0,
     "On GPUs: ordered: ranks add in their order, as training does; nccl: NCCL's own reductions",
     .choices = "ordered,nccl"},
    {"block", "BYTES", 1, SLC_OPTION_SIZE, FIELD(block_bytes), NULL, 0, "Base block (default: 1 MiB; on GPUs 16 MiB)",
     1, MOST},
    {"dtype", "TYPE=float,bfloat16,all", 1, SLC_OPTION_SET, FIELD(fp32), "float", 0,
     "float or bfloat16, as fp32 and bf16 too, or all", .letter = 'd', .set = set_type},
    {"in-place", NULL, 1, SLC_OPTION_FLAG, FIELD(in_place), NULL, 0,
     "reduce_scatter, all_gather: in one buffer, as the others always are"},
    {"path", "HOW", 1, SLC_OPTION_WORD, FIELD(path), NULL, 0,
     "direct: the memory of peers on this host; messages: the transport (default: SLUICE_COMM_DIRECT)",
     .choices = "direct,messages"},
    {"ahead", "N", 1, SLC_OPTION_COUNT, FIELD(ahead), "4", 0,
     "reduce_scatter_all_gather: blocks that are reduced before the first is gathered", 0, 1024},
    {"beside", NULL, 1, SLC_OPTION_FLAG, FIELD(beside), NULL, 0,
     "Multiply matrices meanwhile; say how fast, alone and beside"},
    {"copy", NULL, 1, SLC_OPTION_FLAG, FIELD(copy), NULL, 0,
     "Time plain copies too, of as many bytes in all ranks at once; say the ratio"},
    {"throttle", "RATE", 1, SLC_OPTION_TEXT, FIELD(throttle), NULL, 0, "Slow the network down, as 1gbit,50us"},
    {"timeout", "S", 1, SLC_OPTION_REAL, FIELD(timeout_s), NULL, 0,
     "A rank that is silent or absent this long is an error", 0.001, 1e9},
    {"json", "FILE", 1, SLC_OPTION_TEXT, FIELD(json), NULL, 0, "Write the rows as JSON; '-': standard output"},
    {0},
};
static_assert(sizeof option_rows / sizeof *option_rows - 1 <= SLC_PERF_OPTIONS_MAX,
              "each option has a place in `typed`");

/* ---- Parsing ---- */

static bool is_given(const slc_perf_options *o, const char *name)
{
    return slc_option_typed(option_rows, o->typed, name) != NULL;
}

enum { MOST_ON_GPU = 1 << 14, HOST_BLOCK = 1 << 20, GPU_BLOCK = 16 << 20 };

/* Refuses the options that only the host's memory supports, and sizes and counts that a GPU cannot take. */
static sluice_status check_on_gpu(const slc_perf_options *o)
{
    const char *refused = *o->path             ? "--path"
                          : *o->throttle       ? "--throttle"
                          : o->copy            ? "--copy"
                          : o->operation->ring ? "--op send_receive"
                                               : NULL;
    if (refused)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s is of the host's memory: leave it out with --device cuda", refused);
    if (!o->least_bytes)
        return slc_error(SLUICE_ERR_ARGUMENT, "-b 0: GPUs meet where they move data; give a size above 0");
    if (o->iterations > MOST_ON_GPU || o->warm_up > MOST_ON_GPU)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "-n, -w: at most %d iterations on a GPU, where an event tells each one's end", MOST_ON_GPU);
    return SLUICE_OK;
}

/* Checks the options against each other. If only one bound of the sizes was given, the other one moves out of its way.
 */
static sluice_status check_options(void *options)
{
    slc_perf_options *o = options;
    if (o->copy && o->beside)
        return slc_error(SLUICE_ERR_ARGUMENT, "--copy and --beside measure different things: give one of them");
    sluice_status status = slc_throttle_check(o->throttle);
    if (status) return status;
    o->on_gpu = !strcmp(o->device, "cuda");
    if (!o->block_bytes) o->block_bytes = o->on_gpu ? GPU_BLOCK : HOST_BLOCK;
    if (!o->on_gpu && strcmp(o->sums, "ordered") != 0)
        return slc_error(SLUICE_ERR_ARGUMENT, "--sums %s: NCCL's sums are for GPUs; add --device cuda", o->sums);
    if (!o->operation->sums) {
        o->sum = true;
        o->average = false;
    }
    if (!is_given(o, "maxbytes") && o->most_bytes < o->least_bytes) o->most_bytes = o->least_bytes;
    if (!is_given(o, "minbytes") && o->least_bytes > o->most_bytes) o->least_bytes = o->most_bytes;
    if (o->least_bytes > o->most_bytes) return slc_error(SLUICE_ERR_ARGUMENT, "-b is larger than -e");
    return o->on_gpu ? check_on_gpu(o) : SLUICE_OK;
}

static const char doc[] =
    "Measures a collective, or transfers from rank to rank, at a range of sizes, and checks the results.\v"
    "Sizes and columns are those of nccl-tests: size is the whole buffer, algbw is size over time, busbw is "
    "what the busiest link carried; min and max are the shortest and the longest of the iterations whose "
    "mean time is. A wrong element makes the exit code 1. Sizes for which the host has not the memory are "
    "refused before any is taken.\n\n"
    "Examples:\n"
    "  sluice perf --op all_reduce --ranks 2 -b 64K -e 64M -f 4\n"
    "  sluice perf --op all_gather --ranks 2 -b 64M -e 64M --copy\n"
    "  sluice perf --op send_receive --ranks 2 -b 768K -e 768K --throttle 1gbit\n"
    "  sluice run -n 4 -- sluice perf --op all_gather --path messages\n"
    "  sluice perf --device cuda --ranks 2 --sums nccl -b 1M -e 1G\n"
    "More: docs/benchmarks.md";

void slc_perf_options_parse(int argc, char **argv, slc_perf_options *out)
{
    const slc_command_line line = {
        .rows = option_rows, .doc = doc, .typed = offsetof(slc_perf_options, typed), .check = check_options};
    *out = (slc_perf_options){.path = "", .throttle = ""};
    slc_command_line_parse(&line, argc, argv, out);
}

uint64_t slc_perf_next_size(const slc_perf_options *options, uint64_t size, uint64_t least)
{
    if (options->step_bytes) return size + options->step_bytes;
    if (!size) return least;
    double next = (double)size * options->factor;
    return (uint64_t)next > size ? (uint64_t)next : size + 1;
}
