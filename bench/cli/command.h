/* A program of subcommands: `sluice`, whose table is in bench/main.c, and `sluice-lab`, whose table is in
 * bench/lab/main.c. One thread calls all of this. A new subcommand is a file that defines slc_command_NAME, declared
 * here and named in a table. */
#pragma once

#include "bench/cli/exit_codes.h"
#include "bench/cli/tool.h"

/* Runs the subcommand that argv[1] names; answers --help, --help=FORM (man, markdown, bash) and --version itself.
 * Closes standard output. Returns the exit code: EXIT_USAGE for a name that is not in the table, EXIT_FAILED if not
 * all that was printed has arrived. */
int slc_tool_run(const slc_tool *program, int argc, char **argv);

/* Prints this thread's last error to standard error, after `who` ("sluice plan"), in the words of the command line.
 * Returns its exit code (bench/cli/error_line.h). */
int slc_fail(const char *who);

/* Commands that train. In a build without oneDNN they run on a GPU alone. */
extern const sluice_command slc_command_bench;
extern const sluice_command slc_command_estimate;
extern const sluice_command slc_command_eval;
extern const sluice_command slc_command_generate;
extern const sluice_command slc_command_train;
extern const sluice_command slc_command_weights;

extern const sluice_command slc_command_check;
extern const sluice_command slc_command_info;
extern const sluice_command slc_command_nccl;
extern const sluice_command slc_command_perf;
extern const sluice_command slc_command_plan;
extern const sluice_command slc_command_profile;
extern const sluice_command slc_command_run;
extern const sluice_command slc_command_sim;
extern const sluice_command slc_command_trace;

/* Commands of `sluice-lab`. slc_command_gemm exists only in a build with oneDNN. */
extern const sluice_command slc_command_gemm;
extern const sluice_command slc_command_kernels;
extern const sluice_command slc_command_overhead;
extern const sluice_command slc_command_pipeline;
extern const sluice_command slc_command_pictures;
extern const sluice_command slc_command_reading;
extern const sluice_command slc_command_study;
extern const sluice_command slc_command_tokenize;
