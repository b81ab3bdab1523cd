/* The measuring half of `sluice profile`. tests/command/profile_test.sh covers this file. */
#include "bench/train/measure_profile.h"

#include "bench/cli/command.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/rank_report.h"
#include "bench/plan/words/profile_table.h"
#include "bench/launch/self_launch.h"
#include "bench/train/options/paths_check.h"
#include "bench/train/run.h"
#include "bench/train/start.h"
#include "lib/base/file/path_error.h"

#include <stdio.h>
#include <string.h>

static const char command[] = "sluice profile";

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

int slc_training_profile(slc_training_options *options, const char *path, char *const *args)
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
