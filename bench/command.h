/* One subcommand of `sluice`. A new one is a file bench/NAME.c that defines slc_command_NAME, declared here and named
 * in the table of main.c. */
#ifndef SLC_BENCH_COMMAND_H
#define SLC_BENCH_COMMAND_H

typedef struct {
    const char *name;
    const char *summary;               /* one line for `sluice --help` */
    int (*run)(int argc, char **argv); /* argv[0] is "sluice NAME"; results: the exit code */
} sluice_command;

extern const sluice_command slc_command_bench; /* only with a model */
extern const sluice_command slc_command_check;
extern const sluice_command slc_command_gemm; /* only with oneDNN */
extern const sluice_command slc_command_info;
extern const sluice_command slc_command_kernels;
extern const sluice_command slc_command_overhead;
extern const sluice_command slc_command_perf;
extern const sluice_command slc_command_profile;
extern const sluice_command slc_command_plan;
extern const sluice_command slc_command_run;
extern const sluice_command slc_command_sim;
extern const sluice_command slc_command_trace;
extern const sluice_command slc_command_study;
extern const sluice_command slc_command_eval;
extern const sluice_command slc_command_train; /* only with a model */

#endif
