/* Reads the command line, and finds what excludes each other in it. */
#include "bench/perf/options.h"

#include "bench/cli/number.h"
#include "bench/cli/options/parse.h"
#include "bench/cli/throttle_option.h"
#include "lib/base/text/parse_quantity.h"

#include <argp.h>
#include <sluice/world.h>
#include <string.h>

enum {
    KEY_OP = 256,
    KEY_RANKS,
    KEY_BLOCK,
    KEY_PATH,
    KEY_THROTTLE,
    KEY_TIMEOUT,
    KEY_JSON,
    KEY_AHEAD,
    KEY_BESIDE,
    KEY_IN_PLACE,
    KEY_COPY
};

static const struct argp_option option_rows[] = {
    {"op", KEY_OP, "NAME=all_reduce,reduce_scatter,all_gather,broadcast,reduce_scatter_all_gather", 0,
     "all_reduce, reduce_scatter, all_gather, broadcast, or reduce_scatter_all_gather: each block reduced, then "
     "gathered "
     "(default all_reduce)",
     0},
    {"minbytes", 'b', "SIZE", 0,
     "Smallest size, as 64K or 1M; 0: ranks meet, and no data moves (default 64K, at most -e)", 0},
    {"maxbytes", 'e', "SIZE", 0, "Largest size (default 16M, at least -b)", 0},
    {"stepfactor", 'f', "X", 0, "Factor between sizes (default 4)", 0},
    {"stepbytes", 'i', "SIZE", 0, "Instead of a factor: step between sizes", 0},
    {"iters", 'n', "N", 0, "Iterations that are measured (default 20)", 0},
    {"warmup_iters", 'w', "N", 0, "Iterations before them (default 5)", 0},
    {"check", 'c', "N", 0, "Check the results N times, each of other values; 0: do not (default 1)", 0},
    {"redop", 'o', "NAME=sum,avg,all", 0, "Sum that is checked: sum, avg: divided by the ranks, or all (default sum)",
     0},
    {"ranks", KEY_RANKS, "N", 0, "Start N ranks on this machine", 1},
    {"block", KEY_BLOCK, "BYTES", 0, "Base block (default 1MiB)", 1},
    {"dtype", 'd', "TYPE=float,bfloat16,all", 0, "float or bfloat16, as fp32 and bf16 too, or all (default float)", 0},
    {"in-place", KEY_IN_PLACE, NULL, 0, "reduce_scatter, all_gather: in one buffer, as the others always are", 1},
    {"path", KEY_PATH, "HOW=direct,messages", 0,
     "direct: the memory of peers on this host; messages: the transport (default: SLUICE_COMM_DIRECT)", 1},
    {"ahead", KEY_AHEAD, "N", 0,
     "reduce_scatter_all_gather: blocks that are reduced before the first is gathered (default 4)", 1},
    {"beside", KEY_BESIDE, NULL, 0, "Multiply matrices meanwhile; say how fast, alone and beside", 1},
    {"copy", KEY_COPY, NULL, 0, "Time plain copies too, of as many bytes in all ranks at once; say the ratio", 1},
    {"throttle", KEY_THROTTLE, "RATE", 0, "Slow the network down, as 1gbit,50us", 1},
    {"timeout", KEY_TIMEOUT, "S", 0, "A rank that is silent or absent this long is an error", 1},
    {"json", KEY_JSON, "FILE", 0, "Write the rows as JSON; '-': standard output", 1},
    {0},
};

static const slc_perf_operation operations[] = {
    {"all_reduce", SLC_ALL_REDUCE, true, false},
    {"reduce_scatter", SLC_REDUCE_SCATTER, true, false},
    {"all_gather", SLC_ALL_GATHER, false, false},
    {"broadcast", SLC_BROADCAST, false, false},
    {"reduce_scatter_all_gather", SLC_REDUCE_SCATTER, true, true},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static const uint64_t USUAL_LEAST = 64 << 10, USUAL_MOST = 16 << 20, MOST = UINT64_C(1) << 40;

/* ---- Values ---- */

static const slc_perf_operation *find_operation(const char *name, struct argp_state *state)
{
    for (int i = 0; i < OPERATIONS; i++)
        if (!strcmp(operations[i].name, name)) return &operations[i];
    argp_error(state, "--op %s: use all_reduce, reduce_scatter, all_gather, broadcast or reduce_scatter_all_gather",
               name);
    return NULL;
}

static uint32_t whole(const char *text, double least, double most, struct argp_state *state, const char *option)
{
    return (uint32_t)slc_number(text, least, most, true, state, option);
}

static uint64_t bytes(const char *text, uint64_t least, struct argp_state *state, const char *option)
{
    uint64_t value = 0;
    if (slc_parse_bytes(text, &value) || value < least || value > MOST)
        argp_error(state, "%s: \"%s\" is no size from %s to 1 TiB", option, text, least ? "1 byte" : "0");
    return value;
}

/* nccl-tests' names of types, and those of training. */
static void set_type(slc_perf_options *o, const char *text, struct argp_state *state)
{
    bool all = !strcmp(text, "all");
    o->fp32 = all || !strcmp(text, "float") || !strcmp(text, "fp32");
    o->bf16 = all || !strcmp(text, "bfloat16") || !strcmp(text, "bf16");
    if (!o->fp32 && !o->bf16)
        argp_error(state, "-d %s: collectives move float (fp32) and bfloat16 (bf16); all is both", text);
}

static void set_sum(slc_perf_options *o, const char *text, struct argp_state *state)
{
    bool all = !strcmp(text, "all");
    o->sum = all || !strcmp(text, "sum");
    o->average = all || !strcmp(text, "avg");
    if (!o->sum && !o->average)
        argp_error(state, "-o %s: use sum, avg or all; collectives do not reduce otherwise", text);
}

/* ---- Parsing ---- */

static void check_options(slc_perf_options *o, struct argp_state *state)
{
    if (*o->path && strcmp(o->path, "direct") && strcmp(o->path, "messages"))
        argp_error(state, "--path %s: use direct or messages", o->path);
    if (o->copy && o->beside) argp_error(state, "--copy and --beside measure different things: give one of them");
    if (slc_throttle_check(o->throttle)) argp_error(state, "%s", sluice_last_error());
    if (!o->operation->sums) {
        o->sum = true;
        o->average = false;
    }
    bool least_given = o->least_bytes != UINT64_MAX, most_given = o->most_bytes != UINT64_MAX;
    if (!most_given) o->most_bytes = least_given && o->least_bytes > USUAL_MOST ? o->least_bytes : USUAL_MOST;
    if (!least_given) o->least_bytes = o->most_bytes < USUAL_LEAST ? o->most_bytes : USUAL_LEAST;
    if (o->least_bytes > o->most_bytes) argp_error(state, "-b is larger than -e");
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    slc_perf_options *o = state->input;
    switch (key) {
    case KEY_OP: o->operation = find_operation(text, state); return 0;
    case 'b': o->least_bytes = bytes(text, 0, state, "-b"); return 0;
    case 'e': o->most_bytes = bytes(text, 0, state, "-e"); return 0;
    case 'f': o->factor = slc_number(text, 1.0001, 1e6, false, state, "-f"); return 0;
    case 'i': o->step_bytes = bytes(text, 1, state, "-i"); return 0;
    case 'n': o->iterations = whole(text, 1, 1e6, state, "-n"); return 0;
    case 'w': o->warm_up = whole(text, 0, 1e6, state, "-w"); return 0;
    case 'c': o->checks = whole(text, 0, 1e6, state, "-c"); return 0;
    case 'd': set_type(o, text, state); return 0;
    case 'o': set_sum(o, text, state); return 0;
    case KEY_RANKS: o->ranks = whole(text, 1, SLUICE_RANKS_MOST, state, "--ranks"); return 0;
    case KEY_BLOCK: o->block_bytes = bytes(text, 1, state, "--block"); return 0;
    case KEY_PATH: o->path = text; return 0;
    case KEY_THROTTLE: o->throttle = text; return 0;
    case KEY_TIMEOUT: o->timeout_s = slc_number(text, 0.001, 1e9, false, state, "--timeout"); return 0;
    case KEY_JSON: o->json = text; return 0;
    case KEY_AHEAD: o->ahead = whole(text, 0, 1024, state, "--ahead"); return 0;
    case KEY_BESIDE: o->beside = true; return 0;
    case KEY_IN_PLACE: o->in_place = true; return 0;
    case KEY_COPY: o->copy = true; return 0;
    case ARGP_KEY_ARG: argp_error(state, "\"%s\" is no option", text); return 0;
    case ARGP_KEY_END: check_options(o, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

void slc_perf_options_parse(int argc, char **argv, slc_perf_options *out)
{
    const struct argp parser = {
        .options = option_rows,
        .parser = parse_option,
        .doc = "Measures a collective at a range of sizes, and checks its results.\v"
               "Sizes and columns are those of nccl-tests: size is the whole buffer, algbw is size over time, busbw is "
               "what the busiest link carried; min and max are the shortest and the longest of the iterations whose "
               "mean time is. A wrong element makes the exit code 1. Sizes for which the host has not the memory are "
               "refused before any is taken.\n\n"
               "Examples:\n"
               "  sluice perf --op all_reduce --ranks 2 -b 64K -e 64M -f 4\n"
               "  sluice perf --op all_gather --ranks 2 -b 64M -e 64M --copy\n"
               "  sluice run -n 4 -- sluice perf --op all_gather --path messages\n"
               "More: docs/benchmarks.md",
    };
    *out = (slc_perf_options){.operation = &operations[0],
                              .path = "",
                              .throttle = "",
                              .least_bytes = UINT64_MAX,
                              .most_bytes = UINT64_MAX,
                              .block_bytes = 1 << 20,
                              .factor = 4,
                              .iterations = 20,
                              .warm_up = 5,
                              .checks = 1,
                              .ahead = 4,
                              .fp32 = true,
                              .sum = true};
    slc_parse(&parser, argc, argv, 0, out);
}

uint64_t slc_perf_next_size(const slc_perf_options *options, uint64_t size, uint64_t least)
{
    if (options->step_bytes) return size + options->step_bytes;
    if (!size) return least;
    double next = (double)size * options->factor;
    return (uint64_t)next > size ? (uint64_t)next : size + 1;
}
