/* Compares two plans of one profile, and tells what changes. tests/command/plan_compare_test.sh covers this file. */
#include "bench/plan/commands/compare.h"

#include "bench/cli/outcome.h"
#include "bench/cli/output/result_file.h"
#include "bench/plan/comparison/comparison.h"
#include "lib/base/status.h"

sluice_status slc_compare_plans(FILE *out, const slc_profile *profile, const slc_plan *const plans[2],
                                const char *const names[2], json_t *json)
{
    slc_comparison comparison;
    sluice_status status = slc_comparison_make(profile, plans, names, &comparison);
    if (status) return status;
    slc_comparison_print(out, &comparison);
    if (json && json_object_set_new(json, "comparison", slc_comparison_json(&comparison)))
        status = slc_error(SLUICE_ERR_MEMORY, "the comparison as JSON");
    slc_comparison_fini(&comparison);
    return status;
}

sluice_status slc_compare_files(slc_plan_files *files, const char *second, const char *json)
{
    slc_plan *other = NULL;
    json_t *content = json_object();
    sluice_status status = content ? slc_plan_files_read(files) : slc_error(SLUICE_ERR_MEMORY, "comparison");
    if (!status) status = slc_plan_read(&files->profile->job, second, &other);
    if (!status) {
        const slc_plan *const plans[] = {files->plan, other};
        const char *const names[] = {files->plan_path, second};
        status =
            slc_compare_plans(slc_is_standard_output(json) ? stderr : stdout, files->profile, plans, names, content);
    }
    if (!status && json) status = slc_result_file_write_json(json, content);
    json_decref(content);
    slc_plan_destroy(other);
    slc_plan_files_fini(files);
    return status;
}
