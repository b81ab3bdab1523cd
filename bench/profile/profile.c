/* `sluice profile`: writes the profile that planning needs. It is measured by training a few steps, or made from
 * published figures for machines that one does not have. tests/command/plan/profile_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/options/command_line.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/rank_report.h"
#include "bench/launch/self_launch.h"
#include "bench/plan/words/profile_table.h"
#include "bench/train/options/batch_options.h"
#include "bench/train/options/depth_options.h"
#include "bench/train/options/length_options.h"
#include "bench/train/options/lr_schedule.h"
#include "bench/train/options/paths_check.h"
#include "bench/train/run.h"
#include "bench/train/words/start.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"
#include "sched/study/made_profile.h"

#include <stdlib.h>
#include <string.h>

static const char command[] = "sluice profile";

typedef struct {
    slc_training_options training;
    const char *path, *cluster;
    slc_made_options made;
} profile_options;

static const char *const headings[] = {NULL, "The profile:"};
#define FIELD(name) SLC_OPTION_FIELD(profile_options, name)

static const slc_option option_rows[] = {
    {"output", "FILE", 1, SLC_OPTION_TEXT, FIELD(path), "profile.json", SLC_OPTION_SHORT, "Where to write it",
     .letter = 'o'},
    {"made", "MODEL", 1, SLC_OPTION_TEXT, FIELD(made.model), NULL, SLC_OPTION_SHORT,
     "Do not measure: make it for this model, as gpt3-175b (a wrong name lists all)"},
    {"cluster", "NAME", 1, SLC_OPTION_TEXT, FIELD(cluster), NULL, SLC_OPTION_SHORT,
     "With --made: the machines, as 64xA100-200gbit (a wrong name lists all)"},
    {"world", "N", 1, SLC_OPTION_COUNT, FIELD(made.world), NULL, SLC_OPTION_SHORT,
     "With --made: ranks (default: the cluster's)", 1, SLC_PROFILE_WORLD_MAX},
    {"efficiency", "X", 1, SLC_OPTION_REAL, FIELD(made.efficiency), NULL, SLC_OPTION_SHORT,
     "With --made: the part of the peak FLOP/s that is reached", 1e-6, 1},
    {0},
};

/* The options that differ from those of `sluice train`. */
static const slc_training_difference differences[] = {
    {"steps", .fallback = "8", .doc = "Steps that are measured: their medians count"},
    {"epochs", .refused = "a profile is measured in a few steps (--steps)"},
    {"schedule", .refused = "a profile is measured with the serial schedule, where nothing runs beside compute"},
    {"eval-every,eval-batches", .refused = "a profile is measured without evaluation"},
    {"save,save-every,on-save-error,resume,new-recipe,go-on,stop-after,save-weights,overwrite,no-hash",
     .refused = "only sluice train keeps what it trains"},
    {"plan,plan-out,profile-out,first-batch,first-batches",
     .refused = "only sluice train reads and keeps plans and batches"},
    {"replan-trials", .refused = "a profile is measured under one plan"},
    {"pipeline,pipeline-schedule,pipeline-chunks,pipeline-cuts",
     .refused = "a profile is measured without a pipeline; sluice plan --pipeline plans one from it"},
    {"log,config,verbose,sample-every,prompt,observe", .refused = "only sluice train has a log and options in a file"},
    {"trace,json,csv", .refused = "sluice profile writes a profile only (--output)"},
    {0},
};

static sluice_status check_options(void *options)
{
    const profile_options *o = options;
    if (!o->made.model && (o->cluster || o->made.world || o->made.efficiency > 0))
        return slc_error(SLUICE_ERR_ARGUMENT, "--cluster, --world and --efficiency go with --made");
    if (o->made.model && !o->cluster) return slc_error(SLUICE_ERR_ARGUMENT, "--made needs --cluster");
    return SLUICE_OK;
}

/* ---- Made ---- */

static sluice_dtype type_named(const char *name)
{
    return name && !strcmp(name, sluice_dtype_name(SLUICE_BF16)) ? SLUICE_BF16 : SLUICE_FP32;
}

/* Makes a profile from published figures. Options that were given replace those of the cluster. */
static sluice_status make_profile(profile_options *o, slc_profile **out)
{
    slc_made_options asked = o->made;
    sluice_status status = slc_made_cluster(o->cluster, &o->made);
    if (status) return status;
    if (asked.world) o->made.world = asked.world;
    if (asked.efficiency > 0) o->made.efficiency = asked.efficiency;
    o->made.batch = (uint32_t)o->training.batch;
    o->made.context = (uint32_t)o->training.context;
    o->made.micro_batches = (uint32_t)o->training.micro_batches;
    o->made.can_recompute = true;
    o->made.precision = type_named(o->training.precision);
    o->made.wire = o->made.precision == SLUICE_FP32 ? SLUICE_FP32 : type_named(o->training.wire);
    if (o->training.tied && !strcmp(o->training.tied, "split")) o->made.tied = SLUICE_TIED_SPLIT;
    status = slc_made_profile(&o->made, out);
    if (!status && o->training.lossy && !strcmp(o->training.lossy, "onebit"))
        status = slc_profile_set_compressed(*out, true);
    return status;
}

static int make_and_write(profile_options *o)
{
    slc_profile *profile = NULL;
    sluice_status status = make_profile(o, &profile);
    if (!status) status = slc_profile_write(profile, o->path);
    if (!status) slc_profile_table(stdout, profile);
    if (!status) printf("written to %s\n", o->path);
    slc_profile_destroy(profile);
    return status ? slc_fail(command) : 0;
}

/* ---- Measured ---- */

typedef struct {
    const slc_training_options *options;
    const char *path;
} wanted_profile;

static sluice_status write_profile(sluice_runtime *rt, void *context)
{
    const wanted_profile *wanted = context;
    char model[128];
    slc_training_name(wanted->options, model, sizeof model);
    return slc_path_was_good(sluice_runtime_profile_write(rt, wanted->path, model)); /* it was looked at before */
}

static sluice_status show_profile(const char *path)
{
    slc_profile *profile;
    sluice_status status = slc_profile_read(path, &profile);
    if (status) return status;
    slc_profile_table(stdout, profile);
    printf("written to %s\n", path);
    slc_profile_destroy(profile);
    return SLUICE_OK;
}

static sluice_status profile_in(sluice_world *world, slc_training_options *options, const char *path)
{
    slc_training_result result = {0};
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    uint32_t length;
    sluice_status status = slc_training_model(options, &model, &length);
    if (status) return status;
    options->context = length;
    wanted_profile wanted = {options, path};
    const slc_training_watch watch = {.finished = write_profile, .context = &wanted};
    status = slc_training_run(world, options, &watch, &result);
    slc_training_result_free(&result);
    if (!status && sluice_world_rank(world) == 0) status = show_profile(path);
    return status;
}

static int profile_here(slc_training_options *options, const char *path)
{
    sluice_world_config config;
    sluice_world *world = NULL;
    sluice_status status = slc_training_world(options, &config);
    if (status) return slc_rank_refuse(command);
    status = sluice_world_create(&config, &world);
    if (!status) status = profile_in(world, options, path);
    if (!status) status = sluice_world_barrier(world);
    if (status) return slc_rank_fail(command, world);
    sluice_world_destroy(world);
    return 0;
}

/* Trains `options->steps` steps with the serial schedule; rank 0 writes the profile to `path` and prints it. `args` are
 * those of the command: it starts the ranks with them if no launcher has. Returns the exit code. */
static int measure_profile(slc_training_options *options, const char *path, char *const *args)
{
    int exit_code = EXIT_FAILED;
    options->schedule = "serial";
    options->updates = SLUICE_UPDATES_BOTH;
    options->eval_batches = 0;
    sluice_status status = slc_training_options_check(options);
    if (!status && !slc_launched()) status = slc_training_paths_check(options);
    if (!status && !slc_launched()) status = slc_result_file_probe(path);
    if (status) return slc_rank_refuse(command);
    if (!options->ranks || slc_launched()) return profile_here(options, path);
    status = slc_launch_self((int)options->ranks, "profile", args, NULL, &exit_code);
    return status ? slc_fail(command) : exit_code;
}

/* ---- The command ---- */

static int run_profile(int argc, char **argv)
{
    profile_options options = {0};
    const slc_command_line line = {
        .rows = option_rows,
        .headings = headings,
        .check = check_options,
        .shared = slc_training_command_line(differences),
        .shared_field = offsetof(profile_options, training),
        .doc = "Writes a profile: sizes and times of every layer, and what the link does. Measured by training some "
               "steps (8 unless --steps says otherwise) with the serial schedule, which lets nothing run beside "
               "compute; the slowest rank's medians count.\v"
               "Examples:\n"
               "  sluice profile -n 2\n"
               "  sluice profile -n 2 --size small --context 64 --throttle 1gbit -o profile.json\n"
               "  sluice profile -n 2 --device cuda --size small --precision bf16\n"
               "  sluice profile --made gpt3-175b --cluster 1024xA100-200gbit -o gpt3.json\n"
               "  sluice profile --made gpt2-small --cluster 2xcpu-1gbit --tied split -o gpt2.json\n"
               "More: docs/what-a-plan-says.md",
    };
    slc_command_line_parse(&line, argc, argv, &options);
    if (options.made.model) return make_and_write(&options);
    slc_lr_schedule_drop(&options.training); /* a profile's few steps are no whole schedule */
    slc_batch_options_drop(&options.training);
    slc_depth_options_drop(&options.training);
    slc_length_options_drop(&options.training);
    return measure_profile(&options.training, options.path, argv + 1);
}

const sluice_command slc_command_profile = {"profile", "measures what planning needs, or makes it up", run_profile};
