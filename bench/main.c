/* The `sluice` command: its table of subcommands. tests/command/command_line_test.sh covers this file. */
#include "bench/cli/command.h"

#include <stddef.h>

static const sluice_command *const commands[] = {
    &slc_command_train,    &slc_command_eval, &slc_command_generate, &slc_command_weights,
    &slc_command_bench,    &slc_command_run,  &slc_command_info,     &slc_command_profile,
    &slc_command_estimate, &slc_command_plan, &slc_command_sim,      &slc_command_check,
    &slc_command_trace,    &slc_command_perf, &slc_command_nccl,     NULL,
};

int main(int argc, char **argv)
{
    static const slc_tool program = {"sluice", "Sluice trains models data-parallel inside a memory budget.", commands};
    return slc_tool_run(&program, argc, argv);
}
