/* Finds the subcommand that was named, hands over to it, and checks that what it printed has arrived.
 * tests/command/command_line_test.sh covers this file. */
#include "bench/cli/command.h"

#include "bench/cli/error_line.h"
#include "bench/cli/pages.h"
#include "bench/cli/output/provenance.h"
#include "bench/cli/rank_report.h"
#include "lib/base/status.h"
#include "lib/base/text/nearest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sluice/status.h>
#include <sluice/version.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_help(FILE *out, const slc_tool *program)
{
    fprintf(out, "%s\n\nUsage: %s COMMAND [OPTION...]\n\n", program->summary, program->name);
    for (int i = 0; program->commands[i]; i++)
        fprintf(out, "  %-8s %s\n", program->commands[i]->name, program->commands[i]->summary);
    fprintf(out, "\n`%s help COMMAND` says more. `%s --version` prints the version.\n", program->name, program->name);
    fputs("Documents are in docs/, where errors.md has the table of exit codes.\n", out);
}

/* Opens /dev/null, for reading only, in the place of each standard file that is closed. Otherwise the next file to be
 * opened would get the number of a closed standard output, and all that is printed would go into it. With /dev/null
 * there, writing to standard output fails, which is an error at the end. */
static void open_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd) _exit(1);
}

static const char *program_name; /* for close_standard_output */

/* Closes standard output, which finds every error of writing to it that was not found before. Returns true if there was
 * none. */
static bool close_standard_output(void)
{
    static bool closed;
    if (closed) return true;
    closed = true;
    errno = 0;
    bool lost = ferror(stdout);
    if (lost) { /* the errno of that loss is gone; writing one byte more brings it again */
        fputc('\n', stdout);
        fflush(stdout);
    }
    int why = errno;
    if (fclose(stdout) && !why) why = errno;
    if (!lost && !why) return true;
    fprintf(stderr, "%s: cannot write to standard output: %s\n", program_name,
            why ? strerror(why) : "some of it was lost");
    return false;
}

/* argp calls exit after --help. */
static void check_at_exit(void)
{
    if (!close_standard_output()) _exit(EXIT_FAILED);
}

static int run_command(const slc_tool *program, int argc, char **argv)
{
    static char help[] = "--help";
    const char *name = argc > 1 ? argv[1] : "";
    if (!strcmp(name, "help") && argc > 2) { /* "help NAME" is "NAME --help" */
        argv[1] = argv[2];
        argv[2] = help;
        argc = 3;
        name = argv[1];
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(stdout, program);
        return 0;
    }
    if (!strncmp(name, "--help=", 7)) return slc_pages_print(program, name + 7);
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        printf("%s %s\n", program->name, sluice_version());
        return 0;
    }
    slc_nearest nearest = {0};
    for (int i = 0; program->commands[i]; i++) {
        slc_nearest_offer(&nearest, name, strlen(name), program->commands[i]->name);
        if (strcmp(name, program->commands[i]->name)) continue;
        char own_name[64];
        snprintf(own_name, sizeof own_name, "%s %s", program->name, name);
        argv[1] = own_name;
        return program->commands[i]->run(argc - 1, argv + 1);
    }
    if (!*name) {
        print_help(stderr, program);
        return EXIT_USAGE;
    }
    const char *near = slc_nearest_suggestion(&nearest, strlen(name));
    char text[1024];
    snprintf(text, sizeof text, "%s: no command \"%.500s\"%s%s%s\n`%s --help` lists the commands.\n", program->name,
             name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "", program->name);
    slc_rank_tell_usage(text);
    return EXIT_USAGE;
}

int slc_fail(const char *who)
{
    slc_print_error(who, sluice_last_error());
    return slc_exit_code(slc_last_status());
}

int slc_tool_run(const slc_tool *program, int argc, char **argv)
{
    program_name = program->name;
    signal(SIGCHLD, SIG_DFL); /* if a parent had it ignored, how a child ends is lost */
    open_standard_files();
    slc_provenance_begin(program->name, argc, argv);
    atexit(check_at_exit);
    int code = run_command(program, argc, argv);
    return close_standard_output() || code ? code : EXIT_FAILED;
}
