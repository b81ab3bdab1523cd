/* The `sluice-lab` command, for developers of Sluice: it measures again what is claimed of the planner, the engine and
 * the kernels. It is built together with `sluice` but not installed. tests/command/output_test.sh covers this file. */
#include "bench/cli/command.h"

#include <stddef.h>

static const sluice_command *const commands[] = {
    &slc_command_study,
    &slc_command_overhead,
    &slc_command_pipeline,
    &slc_command_kernels,
    &slc_command_reading,
    &slc_command_pictures,
    &slc_command_tokenize,
#ifdef SLUICE_HAVE_DNNL
    &slc_command_gemm,
#endif
    NULL,
};

int main(int argc, char **argv)
{
    static const slc_tool program = {
        "sluice-lab", "Sluice's laboratory repeats what is claimed of its planner, engine and kernels.", commands};
    return slc_tool_run(&program, argc, argv);
}
