/* tests/command/plan/pipeline_command_test.sh covers this file. */
#include "bench/plan/words/budget_text.h"

#include "lib/base/status.h"
#include "lib/base/text/parse_quantity.h"
#include "sched/planner.h"

sluice_status slc_plan_read_budget(const slc_job *job, const char *text, uint64_t *bytes)
{
    double share = 0;
    slc_plan_answer answer = {0};
    const slc_plan_request request = {.strategy = "dp", .schedule = "serial"};
    *bytes = 0;
    if (!text) return SLUICE_OK;
    sluice_status status = slc_parse_budget(text, bytes, &share);
    if (status || *bytes) return slc_error_context(status, "--budget");
    status = slc_plan_for_budget(job, &request, &answer);
    *bytes = (uint64_t)(share * (double)answer.dp_bytes);
    slc_plan_destroy(answer.plan);
    return status;
}
