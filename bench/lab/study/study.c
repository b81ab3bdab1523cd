/* `sluice-lab study`: measures again, on drawn profiles, what is claimed of the planner. */
#include "bench/lab/study/study.h"
#include "bench/cli/command.h"
#include "bench/cli/result_file.h"
#include "lib/base/parse_quantity.h"
#include "lib/base/status.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SEED = 256, KEY_JSON, KEY_TIME_LIMIT };

static const struct {
    const char *name, *doc;
    sluice_status (*run)(const slc_study *study);
} studies[] = {
    {"gaps", "the slot model against its bounds", slc_study_gaps},
    {"baselines", "the joint plan against every baseline at the same budget", slc_study_baselines},
    {"budgets", "adaptive against uniform over ten budgets; recomputation; the smallest budget", slc_study_budgets},
    {"times", "how long planning takes", slc_study_times},
    {"small", "small jobs against enumeration and the best of all orders", slc_study_small},
    {"fusion", "many tiny layers, fused and not", slc_study_fusion},
    {"lossy", "onebit beside sharded layers over ten budgets, on slow links", slc_study_lossy},
    {"tied", "GPT-2's token table joint and split over ten budgets, on networks", slc_study_tied},
};
enum { STUDIES = sizeof studies / sizeof *studies };

typedef struct {
    slc_study study;
    const char *name, *json;
} study_options;

static const struct argp_option option_rows[] = {
    {"count", 'c', "N", 0, "Profiles, of tied budgets (default: each study's own number)", 0},
    {"seed", KEY_SEED, "N", 0, "Of the first profile (default 1)", 0},
    {"time-limit", KEY_TIME_LIMIT, "S", 0, "Of each plan (default: the planner's own)", 0},
    {"json", KEY_JSON, "FILE", 0, "Write the rows as JSON; '-': standard output", 0},
    {0},
};

static const char doc[] = "Studies the planner on drawn profiles; nothing is trained and nothing is sent.\v"
                          "Studies:\n"
                          "  gaps       the slot model against its bounds\n"
                          "  baselines  the joint plan against every baseline at the same budget\n"
                          "  budgets    adaptive against uniform over ten budgets; recomputation; the smallest budget\n"
                          "  times      how long planning takes\n"
                          "  small      small jobs against enumeration and the best of all orders\n"
                          "  fusion     many tiny layers, fused and not\n"
                          "  lossy      onebit beside sharded layers over ten budgets, on slow links\n"
                          "  tied       GPT-2's token table joint and split over ten budgets, on networks\n"
                          "Examples:\n"
                          "  sluice-lab study gaps --count 20\n"
                          "  sluice-lab study budgets --json budgets.json";

static uint64_t whole(const char *text, struct argp_state *state, const char *option)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno)
        argp_error(state, "%s: \"%s\" is no whole number", option, text);
    return value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    study_options *o = state->input;
    switch (key) {
    case 'c': o->study.count = (uint32_t)whole(arg, state, "--count"); return 0;
    case KEY_SEED: o->study.seed = whole(arg, state, "--seed"); return 0;
    case KEY_JSON: o->json = arg; return 0;
    case KEY_TIME_LIMIT:
        if (slc_parse_seconds(arg, &o->study.time_limit_s)) argp_error(state, "--time-limit: \"%s\" is no time", arg);
        return 0;
    case ARGP_KEY_ARG:
        if (o->name) argp_error(state, "one study at a time");
        o->name = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->name) argp_error(state, "which study? gaps, baselines, budgets, times, small, fusion, lossy or tied");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int fail(sluice_status status)
{
    fprintf(stderr, "sluice-lab study: %s: %s\n", sluice_status_name(status), sluice_last_error());
    return EXIT_FAILED;
}

static sluice_status write_rows(const study_options *o)
{
    json_t *root = json_pack("{s:O}", "rows", o->study.rows);
    if (!root) return slc_error(SLUICE_ERR_MEMORY, "results");
    sluice_status status = slc_result_file_write_json(o->json, root);
    json_decref(root);
    return status;
}

static int run(int argc, char **argv)
{
    static const struct argp parser = {.options = option_rows, .parser = parse, .args_doc = "STUDY", .doc = doc};
    study_options o = {.study = {.seed = 1}};
    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&parser, argc, argv, 0, NULL, &o)) return EXIT_USAGE;
    o.study.out = slc_is_standard_output(o.json) ? stderr : stdout;
    int chosen = -1;
    for (int i = 0; i < STUDIES; i++)
        if (!strcmp(studies[i].name, o.name)) chosen = i;
    if (chosen < 0) {
        fprintf(
            stderr,
            "sluice-lab study: no study \"%s\"; choose gaps, baselines, budgets, times, small, fusion, lossy or tied\n",
            o.name);
        return EXIT_USAGE;
    }
    o.study.rows = json_array();
    sluice_status status = o.study.rows ? studies[chosen].run(&o.study) : slc_error(SLUICE_ERR_MEMORY, "study");
    if (!status && o.json) status = write_rows(&o);
    json_decref(o.study.rows);
    return status ? fail(status) : 0;
}

const sluice_command slc_command_study = {"study", "repeats what is claimed of the planner", run};
