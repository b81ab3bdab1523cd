/* Looks at each path once. tests/command/output_test.sh covers this file. */
#include "bench/train/options/paths_check.h"

#include "bench/cli/output/result_file.h"
#include "bench/cli/path_hints.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static sluice_status check_data(const char *option, const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not wait for its writer */
    if (file < 0 && errno == ENOENT && slc_is_name_of_hub(path) && !strchr(path, '.')) /* no file's name */
        return slc_error(SLUICE_ERR_PATH,
                         "%s: cannot read %s: %s; name a file or a folder; a data set of Hugging Face's hub becomes a "
                         "file in Python: datasets.load_dataset(\"%s\", split=\"train\").to_json(\"train.jsonl\")",
                         option, path, strerror(errno), path);
    if (file < 0)
        return slc_error(slc_path_status(errno),
                         "%s: cannot read %s: %s; name a file or a folder that every rank can read", option, path,
                         strerror(errno));
    close(file);
    return SLUICE_OK;
}

sluice_status slc_training_paths_check(const slc_training_options *o)
{
    sluice_world_config config;
    sluice_status status = sluice_world_config_init(&config);
    for (uint64_t i = 0; !status && i < o->data_count; i++) status = check_data("--data", o->data[i]);
    for (uint64_t i = 0; !status && i < o->eval_data_count; i++) status = check_data("--eval-data", o->eval_data[i]);
    if (!status) status = slc_error_context(slc_result_file_probe(o->json), "--json");
    if (!status) status = slc_error_context(slc_result_file_probe(o->csv), "--csv");
    if (!status) status = slc_error_context(slc_result_file_probe(o->trace), "--trace");
    if (!status) status = slc_error_context(slc_result_file_probe(o->plan_out), "--plan-out");
    if (!status) status = slc_error_context(slc_result_file_probe(o->profile_out), "--profile-out");
    if (!status) status = slc_error_context(slc_result_file_probe(o->first_batch), "--first-batch");
    return status;
}
