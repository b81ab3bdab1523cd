/* `sluice-lab study`: measures again, on drawn profiles, what is claimed of the planner.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/study.h"
#include "bench/cli/command.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/options/command_line.h"
#include "lib/base/status.h"

#include <string.h>

/* The studies: X(name, what it measures). */
#define STUDIES(X)                                                                                                     \
    X(gaps, "the slot model against its bounds")                                                                       \
    X(budgets, "adaptive against uniform over ten budgets; recomputation; the smallest budget")                        \
    X(same, "the checksum of each plan, which no load changes; what planning took")                                    \
    X(published, "published models on three clusters: bound, schedule portfolio, uniform strategies, a hand")          \
    X(ablation, "what strategies, order, blocks and recomputation each add, over budgets and links")                   \
    X(tradeoff, "memory for the schedule, for strategies, or shared between them")                                     \
    X(drawn, "plans for steps that draw their layers against plans for all layers, over other draws")                  \
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
    const char *name;
} study_options;

#define FIELD(name) SLC_OPTION_FIELD(study_options, name)
static const double MOST = 0x1p53;

static const slc_option option_rows[] = {
    {"count", "N", 0, SLC_OPTION_COUNT, FIELD(study.count), NULL, 0, "Profiles (default: each study's own number)", 0,
     UINT32_MAX, .letter = 'c'},
    {"seed", "N", 0, SLC_OPTION_COUNT, FIELD(study.seed), "1", 0, "Seed of the first profile", 0, MOST},
    {"effort", "S", 0, SLC_OPTION_TIME, FIELD(study.effort_s), NULL, 0,
     "Effort of each plan in nominal seconds (default: the planner's own)"},
    {"steps", "N", 0, SLC_OPTION_COUNT, FIELD(study.steps), NULL, 0,
     "Steps that each plan will run, so that planning ends when they cannot win back more", 1, MOST},
    {"budgets", "N", 0, SLC_OPTION_COUNT, FIELD(study.budgets), NULL, 0,
     "Budgets of each profile, for `published` and `ablation` (default 5) and `tradeoff` (default 2)", 1, 1000},
    {"model", "NAME", 0, SLC_OPTION_TEXT, FIELD(study.model), NULL, 0, "For `published`: only this model"},
    {"cluster", "NAME", 0, SLC_OPTION_TEXT, FIELD(study.cluster), NULL, 0, "For `published`: only this cluster"},
    {"go-on", NULL, 0, SLC_OPTION_FLAG, FIELD(study.go_on), NULL, 0,
     "For `published`, `gaps`, `ablation` and `drawn`: goes on with the file of --json, which has the rows so far; "
     "they "
     "are not measured again"},
    {"profiles", "DIR", 0, SLC_OPTION_TEXT, FIELD(study.profiles), NULL, 0,
     "For `published`: write each profile into this folder, as MODEL-CLUSTER.json, for `sluice plan --profile`"},
    {"json", "FILE", 0, SLC_OPTION_TEXT, FIELD(study.json), NULL, 0, "Write the rows as JSON; '-': standard output"},
    {0},
};

static const char doc[] =
    "Studies the planner on drawn profiles; nothing is trained and nothing is sent.\v"
    "Studies:\n" STUDIES(HELP) "Examples:\n"
                               "  sluice-lab study gaps --count 20\n"
                               "  sluice-lab study budgets --json budgets.json\n"
                               "  sluice-lab study published --budgets 13 --json published.json --go-on\n"
                               "  sluice-lab study ablation --count 40 --json ablation.json";

static sluice_status take_study(void *options, char *name)
{
    study_options *o = options;
    if (o->name) return slc_error(SLUICE_ERR_ARGUMENT, "one study at a time");
    o->name = name;
    return SLUICE_OK;
}

static sluice_status check_options(void *options)
{
    const study_options *o = options;
    const bool file = o->study.json && !slc_is_standard_output(o->study.json);
    if (!o->name) return slc_error(SLUICE_ERR_ARGUMENT, "which study? One of:" STUDIES(NAME));
    const bool long_one = !strcmp(o->name, "published") || !strcmp(o->name, "gaps") || !strcmp(o->name, "ablation") ||
                          !strcmp(o->name, "drawn");
    if (o->study.go_on && (!long_one || !file))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--go-on goes with the studies published, gaps, ablation and drawn, and a file of --json");
    return SLUICE_OK;
}

static int study_main(int argc, char **argv)
{
    const slc_command_line line = {
        .rows = option_rows, .arguments = "STUDY", .take = take_study, .check = check_options, .doc = doc};
    study_options o = {0};
    slc_command_line_parse(&line, argc, argv, &o);
    o.study.out = slc_is_standard_output(o.study.json) ? stderr : stdout;
    size_t chosen = 0;
    while (chosen < sizeof studies / sizeof *studies && strcmp(studies[chosen].name, o.name)) chosen++;
    if (chosen == sizeof studies / sizeof *studies) {
        fprintf(stderr, "sluice-lab study: no study \"%s\"; choose one of:" STUDIES(NAME) "\n", o.name);
        return EXIT_USAGE;
    }
    o.study.rows = json_array();
    sluice_status status = o.study.rows ? studies[chosen].measure(&o.study) : slc_error(SLUICE_ERR_MEMORY, "study");
    if (!status) status = slc_result_file_write_json(o.study.json, json_pack("{s:O}", "rows", o.study.rows));
    json_decref(o.study.rows);
    if (status) slc_fail("sluice-lab study");
    return status ? EXIT_FAILED : 0;
}

const sluice_command slc_command_study = {"study", "repeats what is claimed of the planner", study_main};
