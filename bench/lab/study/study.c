/* `sluice-lab study`: measures again, on drawn profiles, what is claimed of the planner. */
#include "bench/lab/study/study.h"
#include "bench/cli/command.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/number.h"
#include "bench/cli/options/parse.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"

#include <argp.h>
#include <string.h>

enum { KEY_SEED = 256, KEY_JSON, KEY_EFFORT, KEY_STEPS };

/* The studies: X(name, what it measures). */
#define STUDIES(X)                                                                                                     \
    X(gaps, "the slot model against its bounds")                                                                       \
    X(budgets, "adaptive against uniform over ten budgets; recomputation; the smallest budget")                        \
    X(same, "the checksum of each plan, which no load changes; what planning took")                                    \
    X(lossy, "onebit beside sharded layers over ten budgets, on slow links")
#define NAME(name, doc) " " #name
#define HELP(name, doc) "  " #name ": " doc "\n"
#define ROW(name, doc) {#name, slc_study_##name},

static const struct {
    const char *name;
    sluice_status (*measure)(const slc_study *study);
} studies[] = {STUDIES(ROW)};

typedef struct {
    slc_study study;
    const char *name, *json;
} study_options;

static const struct argp_option option_rows[] = {
    {"count", 'c', "N", 0, "Profiles (default: each study's own number)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of the first profile (default 1)", 0},
    {"effort", KEY_EFFORT, "S", 0, "Effort of each plan in nominal seconds (default: the planner's own)", 0},
    {"steps", KEY_STEPS, "N", 0, "Steps that each plan will run, so that planning ends when they cannot win back more",
     0},
    {"json", KEY_JSON, "FILE", 0, "Write the rows as JSON; '-': standard output", 0},
    {0},
};

static const char doc[] = "Studies the planner on drawn profiles; nothing is trained and nothing is sent.\v"
                          "Studies:\n" STUDIES(HELP) "Examples:\n"
                                                     "  sluice-lab study gaps --count 20\n"
                                                     "  sluice-lab study budgets --json budgets.json";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    study_options *o = state->input;
    switch (key) {
    case 'c': o->study.count = (uint32_t)slc_whole_number(arg, 0, UINT32_MAX, state, "--count"); return 0;
    case KEY_SEED: o->study.seed = slc_whole_number(arg, 0, UINT64_MAX, state, "--seed"); return 0;
    case KEY_STEPS: o->study.steps = slc_whole_number(arg, 1, UINT64_MAX, state, "--steps"); return 0;
    case KEY_JSON: o->json = arg; return 0;
    case KEY_EFFORT:
        if (slc_parse_seconds(arg, &o->study.effort_s)) argp_error(state, "--effort: \"%s\" is no time", arg);
        return 0;
    case ARGP_KEY_ARG:
        if (o->name) argp_error(state, "one study at a time");
        o->name = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->name) argp_error(state, "which study? One of:" STUDIES(NAME));
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static sluice_status write_rows(const study_options *o)
{
    json_t *root = json_pack("{s:O}", "rows", o->study.rows);
    if (!root) return slc_error(SLUICE_ERR_MEMORY, "results");
    sluice_status status = slc_result_file_write_json(o->json, root);
    json_decref(root);
    return status;
}

static int study_main(int argc, char **argv)
{
    static const struct argp parser = {.options = option_rows, .parser = parse, .args_doc = "STUDY", .doc = doc};
    study_options o = {.study = {.seed = 1}};
    argp_err_exit_status = EXIT_USAGE;
    slc_parse(&parser, argc, argv, 0, &o);
    o.study.out = slc_is_standard_output(o.json) ? stderr : stdout;
    size_t chosen = 0;
    while (chosen < sizeof studies / sizeof *studies && strcmp(studies[chosen].name, o.name)) chosen++;
    if (chosen == sizeof studies / sizeof *studies) {
        fprintf(stderr, "sluice-lab study: no study \"%s\"; choose one of:" STUDIES(NAME) "\n", o.name);
        return EXIT_USAGE;
    }
    o.study.rows = json_array();
    sluice_status status = o.study.rows ? studies[chosen].measure(&o.study) : slc_error(SLUICE_ERR_MEMORY, "study");
    if (!status && o.json) status = write_rows(&o);
    json_decref(o.study.rows);
    if (status) slc_fail("sluice-lab study");
    return status ? EXIT_FAILED : 0;
}

const sluice_command slc_command_study = {"study", "repeats what is claimed of the planner", study_main};
