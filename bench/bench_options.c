/* The command line of `sluice bench`. Its defaults differ from `sluice train`'s, so a parser without options stands
 * behind the shared one and sets them before the first option is read. */
#include "bench/bench_options.h"

#include "bench/throttle_option.h"
#include "lib/base/parse_quantity.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_REPEAT = 256, KEY_DEMO, KEY_PART, KEY_DONE, KEY_OVERALL };

static const struct argp_option option_rows[] = {
    {"output", 'o', "DIR", 0, "Folder of the results (default out/bench)", 0},
    {"repeat", KEY_REPEAT, "N", 0, "Run every combination N times, interleaved (default 1)", 0},
    {"demo", KEY_DEMO, NULL, 0, "The sweep of `./dev demo`: about three minutes on two cores", 0},
    {"part", KEY_PART, "FILE", OPTION_HIDDEN, NULL, 0},
    {"done", KEY_DONE, "N", OPTION_HIDDEN, NULL, 0},
    {"overall", KEY_OVERALL, "N", OPTION_HIDDEN, NULL, 0},
    {0},
};

static const char help_text[] =
    "Trains a few steps for each budget, strategy, schedule and throttle, prints a table and writes results.csv, "
    "results.json and the picture step_time (SVG and PNG) into a folder.\v"
    "Four options take lists here, with commas between:\n"
    "  --strategy dp,oss,sdp,fsdp,mixed,random:1   (default dp,oss,sdp,fsdp)\n"
    "  --schedule serial,one_ahead,priority        (default one_ahead)\n"
    "  --budget none,900MiB,60%,45%                (default none)\n"
    "  --throttle none,1gbit,\"100mbit,50us\"        (default none)\n"
    "Other defaults of its own: --steps 12, --eval-batches 0.\n\n"
    "  sluice bench -n 2 --size mini --budget none,60%,45% --throttle none,1gbit\n\n"
    "Ctrl-C stops after the step and writes what there is (exit code 130). The exit code is also not 0 when weights "
    "differ between runs, or when a run's peak is not what was planned.";

/* ---- Lists ---- */

/* "1gbit,50us" is one throttle: a time belongs to the bandwidth before it. */
static bool is_latency(const char *text)
{
    double value;
    size_t length = strlen(text);
    return length && text[length - 1] == 's' && !slc_parse_seconds(text, &value);
}

static sluice_status split_list(const char *option, const char *text, bool throttles, slc_bench_list *list)
{
    list->storage = strdup(text);
    if (!list->storage) return slc_error(SLUICE_ERR_MEMORY, "--%s", option);
    for (char *rest = list->storage, *item; (item = strsep(&rest, ",")) != NULL;) {
        if (!*item) continue;
        char *before = list->count ? list->text[list->count - 1] : NULL;
        if (throttles && before && before + strlen(before) + 1 == item && is_latency(item)) {
            item[-1] = ',';
            continue;
        }
        if (list->count == SLC_BENCH_LIST_MAX)
            return slc_error(SLUICE_ERR_ARGUMENT, "--%s: more than %d values", option, SLC_BENCH_LIST_MAX);
        list->text[list->count++] = item;
    }
    if (!list->count) return slc_error(SLUICE_ERR_ARGUMENT, "--%s: the list is empty", option);
    return SLUICE_OK;
}

static sluice_status split_lists(slc_bench_options *o)
{
    const slc_training_options *t = &o->training;
    sluice_status status = split_list("strategy", t->strategy, false, &o->strategies);
    if (!status) status = split_list("schedule", t->schedule, false, &o->schedules);
    if (!status) status = split_list("budget", *t->budget ? t->budget : "none", false, &o->budgets);
    if (!status) status = split_list("throttle", *t->throttle ? t->throttle : "none", true, &o->throttles);
    return status;
}

/* ---- Cases ---- */

uint64_t slc_bench_case_count(const slc_bench_options *o)
{
    return o->repeat * o->budgets.count * o->strategies.count * o->schedules.count;
}

static const char *or_none(const char *text)
{
    return strcmp(text, "none") ? text : "";
}

/* Repetitions are outermost: what disturbs the machine for a while then meets all combinations alike. */
void slc_bench_case_at(const slc_bench_options *o, uint64_t throttle, uint64_t index, slc_bench_case *out)
{
    *out = (slc_bench_case){.throttle = o->throttles.text[throttle], .training = o->training};
    out->schedule = o->schedules.text[index % o->schedules.count];
    index /= o->schedules.count;
    out->strategy = o->strategies.text[index % o->strategies.count];
    index /= o->strategies.count;
    out->budget = o->budgets.text[index % o->budgets.count];
    out->repeat = 1 + index / o->budgets.count;
    out->training.strategy = out->strategy;
    out->training.schedule = out->schedule;
    out->training.budget = or_none(out->budget);
    out->training.throttle = or_none(out->throttle);
}

/* Everything that can be known before hours of work. */
static sluice_status check_cases(const slc_bench_options *o)
{
    sluice_status status = SLUICE_OK;
    slc_bench_case one;
    for (uint64_t t = 0; !status && t < o->throttles.count; t++)
        status = slc_throttle_check(or_none(o->throttles.text[t]));
    for (uint64_t i = 0; !status && i < slc_bench_case_count(o) / o->repeat; i++) {
        slc_bench_case_at(o, 0, i, &one);
        status = slc_training_options_check(&one.training);
    }
    return status;
}

/* ---- Parsing ---- */

static error_t parse_defaults(int key, char *text, struct argp_state *state)
{
    slc_training_options *training = state->input;
    (void)text;
    if (key != ARGP_KEY_INIT) return ARGP_ERR_UNKNOWN;
    training->strategy = "dp,oss,sdp,fsdp";
    training->steps = 12;
    training->eval_batches = 0;
    return 0;
}

static void set_demo(slc_training_options *t)
{
    t->ranks = 2;
    t->size = "mini";
    t->batch = 4;
    t->context = 64;
    t->steps = 40;
    t->learning_rate = 0.0005;
    t->strategy = "dp,oss,sdp,fsdp,mixed,random:1";
    t->schedule = "one_ahead";
    t->budget = "none,85%,70%,65%,64%,63%";
    t->throttle = "none,1gbit";
}

static uint64_t count(const char *text, uint64_t least, struct argp_state *state, const char *option)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || value != floor(value) || !(value >= (double)least && value <= 1e6))
        argp_error(state, "%s %s: give a whole number from %llu to 1000000", option, text, (unsigned long long)least);
    return (uint64_t)value;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    slc_bench_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = state->child_inputs[1] = &options->training; return 0;
    case 'o': options->output = text; return 0;
    case KEY_REPEAT: options->repeat = count(text, 1, state, "--repeat"); return 0;
    case KEY_DEMO: set_demo(&options->training); return 0;
    case KEY_PART: options->part = text; return 0;
    case KEY_DONE: options->done = count(text, 0, state, "--done"); return 0;
    case KEY_OVERALL: options->overall = count(text, 0, state, "--overall"); return 0;
    case ARGP_KEY_ARG: argp_error(state, "\"%s\" is no option; lists take commas, not spaces", text); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

sluice_status slc_bench_options_parse(int argc, char **argv, slc_bench_options *out)
{
    const struct argp defaults = {.parser = parse_defaults};
    const struct argp_child children[] = {{slc_training_argp(), 0, NULL, 0}, {&defaults, 0, NULL, 0}, {0}};
    const struct argp parser = {.options = option_rows, .parser = parse_option, .children = children, .doc = help_text};
    *out = (slc_bench_options){.repeat = 1, .output = "out/bench"};
    if (argp_parse(&parser, argc, argv, 0, NULL, out)) return slc_error(SLUICE_ERR_ARGUMENT, "command line");
    sluice_status status = split_lists(out);
    if (!status) status = check_cases(out);
    return status;
}

void slc_bench_options_free(slc_bench_options *options)
{
    free(options->strategies.storage);
    free(options->schedules.storage);
    free(options->budgets.storage);
    free(options->throttles.storage);
    *options = (slc_bench_options){0};
}
