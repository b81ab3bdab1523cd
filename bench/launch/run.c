/* `sluice run`: the command line of the local launcher. */
#include "bench/cli/command.h"
#include "bench/cli/options/parse.h"
#include "bench/launch/launch.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <sluice/world.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_TIMEOUT = 256, KEY_LIMIT, KEY_PORT };
enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 }; /* as shells have them */

static const struct argp_option option_rows[] = {
    {"ranks", 'n', "N", 0, "Number of ranks", 0},
    {"timeout", KEY_TIMEOUT, "S", 0, "A rank that is silent or absent for S seconds is an error (SLUICE_COMM_TIMEOUT)",
     0},
    {"limit", KEY_LIMIT, "S", 0, "End the job after S seconds, with exit code 124", 0},
    {"port", KEY_PORT, "P", 0, "Port of the rendezvous (default: a free one)", 0},
    {0},
};

static double number(const char *text, double least, double most, struct argp_state *state, const char *what)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        argp_error(state, "%s: \"%s\" is not between %g and %g", what, text, least, most);
    return value;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    slc_launch_options *options = state->input;
    switch (key) {
    case 'n': options->ranks = (int)number(text, 1, SLUICE_RANKS_MOST, state, "-n"); return 0;
    case KEY_TIMEOUT:
        number(text, 0.001, 1e9, state, "--timeout");
        options->timeout_s = text;
        return 0;
    case KEY_LIMIT: options->limit_s = number(text, 0.001, 1e9, state, "--limit"); return 0;
    case KEY_PORT: options->port = (int)number(text, 1, SLUICE_PORT_LAST, state, "--port"); return 0;
    case ARGP_KEY_ARG: /* the first word of the command: the rest is its own */
        options->command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!options->ranks) argp_error(state, "say how many ranks: -n N");
        if (!options->command) argp_error(state, "say what to run: sluice run -n N -- CMD...");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The program ---- */

/* Returns 0 if the file can be run, or the errno that says why not. */
static int try_program(const char *path)
{
    struct stat info;
    if (stat(path, &info)) return errno;
    if (!S_ISREG(info.st_mode)) return EACCES;
    return access(path, X_OK) ? errno : 0;
}

/* Looks along PATH as execvp does; a file that cannot be run is remembered and passed over. */
static int find_program(const char *name)
{
    const char *path = getenv("PATH"), *at = path ? path : "/bin:/usr/bin";
    char file[PATH_MAX];
    int why = ENOENT;
    if (!*name || strchr(name, '/')) return try_program(name);
    for (size_t length;; at += length + 1) {
        length = strcspn(at, ":");
        if (snprintf(file, sizeof file, "%.*s%s%s", (int)length, at, length ? "/" : "", name) < (int)sizeof file) {
            int found = try_program(file);
            if (!found) return 0;
            if (found == EACCES) why = EACCES;
        }
        if (!at[length]) return why;
    }
}

/* A setting without a meaning is told once, and not by each rank. Under another launcher its variables may mean nothing
 * here, and the ranks tell. */
static sluice_status check_settings(void)
{
    sluice_world_config config;
    return sluice_launcher_name() ? SLUICE_OK : sluice_world_config_init(&config);
}

static int run_ranks(int argc, char **argv)
{
    const struct argp parser = {
        .options = option_rows,
        .parser = parse_option,
        .args_doc = "-- CMD...",
        .doc = "Starts N ranks of CMD on this machine and sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, "
               "MASTER_ADDR, MASTER_PORT and SLUICE_JOB_TOKEN for each. Lines of output get their rank in front. When "
               "a rank fails, the others have 3 seconds to speak, then they are ended.\v"
               "Ctrl-C is handed to the ranks once, and when one has left the others have 30 seconds to save; a second "
               "one kills them. Where whoever reads the output leaves (`| head -1`), the ranks are told to stop by "
               "SIGTERM. The exit code is that of the first rank that failed, 128 + its signal if it was killed; 141 "
               "when nobody reads; 124 at the time limit.\n\n"
               "Examples:\n"
               "  sluice run -n 2 -- ./my_training --epochs 3\n"
               "  sluice run -n 2 --limit 60 -- sluice info\n"
               "More: docs/launching.md",
    };
    slc_launch_options options = {0};
    slc_parse(&parser, argc, argv, ARGP_IN_ORDER, &options);
    int exit_code, why = find_program(options.command[0]);
    if (why) { /* told once, and not by each rank */
        fprintf(stderr, "sluice run: cannot run %s: %s\n", options.command[0], strerror(why));
        return why == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
    }
    if (check_settings()) return slc_fail("sluice run");
    return slc_launch(&options, &exit_code) ? slc_fail("sluice run") : exit_code;
}

const sluice_command slc_command_run = {"run", "starts N ranks of a command on this machine", run_ranks};
