/* Finds the subcommand that was named and hands over to it. */
#include "bench/cli/command.h"

#include <stdio.h>
#include <string.h>

static void print_help(FILE *out, const slc_tool *program)
{
    fprintf(out, "%s\n\nUsage: %s COMMAND [OPTION...]\n\n", program->summary, program->name);
    for (int i = 0; program->commands[i]; i++)
        fprintf(out, "  %-8s %s\n", program->commands[i]->name, program->commands[i]->summary);
    fprintf(out, "\n`%s COMMAND --help` says more. `%s --version` prints the version.\n", program->name, program->name);
}

int slc_tool_run(const slc_tool *program, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(stdout, program);
        return 0;
    }
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        printf("%s %s\n", program->name, SLUICE_VERSION);
        return 0;
    }
    for (int i = 0; program->commands[i]; i++) {
        if (strcmp(name, program->commands[i]->name)) continue;
        char own_name[64];
        snprintf(own_name, sizeof own_name, "%s %s", program->name, name);
        argv[1] = own_name;
        return program->commands[i]->run(argc - 1, argv + 1);
    }
    if (*name) fprintf(stderr, "%s: no command \"%s\"\n\n", program->name, name);
    print_help(stderr, program);
    return 2;
}
