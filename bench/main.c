/* The `sluice` command: finds the subcommand, hands over, and looks whether what it printed has arrived. */
#include "bench/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Where standard output was closed, a file that is opened would get its number and what is printed. Instead writing
 * fails, which is an error at the end. */
static void open_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd) _exit(1);
}

/* Every error of writing to standard output shows here at the latest. Results: whether there was none. */
static bool close_standard_output(void)
{
    static bool closed;
    if (closed) return true;
    closed = true;
    errno = 0;
    bool lost = ferror(stdout);
    if (lost) { /* when it was lost errno said why, and one byte more says it again */
        fputc('\n', stdout);
        fflush(stdout);
    }
    int why = errno;
    if (fclose(stdout) && !why) why = errno;
    if (!lost && !why) return true;
    fprintf(stderr, "sluice: cannot write to standard output: %s\n", why ? strerror(why) : "some of it was lost");
    return false;
}

/* argp leaves through exit where --help asks for it. */
static void check_at_exit(void)
{
    if (!close_standard_output()) _exit(EXIT_FAILURE);
}

static int run_command(int argc, char **argv)
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

int main(int argc, char **argv)
{
    open_standard_files();
    atexit(check_at_exit);
    int code = run_command(argc, argv);
    return close_standard_output() || code ? code : EXIT_FAILURE;
}
