/* The `sluice` command: finds the subcommand and hands over. */
#include "bench/command.h"

#include <stdio.h>
#include <string.h>

static const sluice_command *const commands[] = {
#ifdef SLUICE_HAVE_DNNL
    &slc_command_train, &slc_command_eval,     &slc_command_bench,
#endif
    &slc_command_run,   &slc_command_info,     &slc_command_profile, &slc_command_plan,
    &slc_command_sim,   &slc_command_check,    &slc_command_trace,   &slc_command_study,
    &slc_command_perf,  &slc_command_overhead, &slc_command_kernels,
#ifdef SLUICE_HAVE_DNNL
    &slc_command_gemm,
#endif
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *out)
{
    fprintf(out, "Sluice trains models data-parallel inside a memory budget.\n\nUsage: sluice COMMAND [OPTION...]\n\n");
    for (int i = 0; i < COMMANDS; i++) fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\n`sluice COMMAND --help` says more. `sluice --version` prints the version.\n");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(stdout);
        return 0;
    }
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        printf("sluice %s\n", SLUICE_VERSION);
        return 0;
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i]->name)) continue;
        char own_name[64];
        snprintf(own_name, sizeof own_name, "sluice %s", name);
        argv[1] = own_name;
        return commands[i]->run(argc - 1, argv + 1);
    }
    if (*name) fprintf(stderr, "sluice: no command \"%s\"\n\n", name);
    print_help(stderr);
    return 2;
}
