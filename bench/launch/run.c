/* `sluice run`: the command line of the local launcher. tests/launch/run_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/options/command_line.h"
#include "bench/launch/launch.h"
#include "lib/base/status.h"

#include <errno.h>
#include <limits.h>
#include <sluice/world.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 }; /* as shells have them */

#define FIELD(name) SLC_OPTION_FIELD(slc_launch_options, name)

/* Checks the time limit and keeps its text, because the ranks read it as it was typed. */
static sluice_status set_timeout(void *options, const slc_option *row, char *text)
{
    double seconds;
    sluice_status status = slc_option_number(row, text, &seconds);
    if (!status) ((slc_launch_options *)options)->timeout_s = text;
    return status;
}

static const slc_option option_rows[] = {
    {"ranks", "N", 0, SLC_OPTION_COUNT, FIELD(ranks), NULL, 0, "Number of ranks", 1, SLUICE_RANKS_MOST, .letter = 'n'},
    {"timeout", "S", 0, SLC_OPTION_SET, FIELD(timeout_s), NULL, 0,
     "A rank that is silent or absent for S seconds is an error (SLUICE_COMM_TIMEOUT)", 0.001, 1e9, .set = set_timeout},
    {"limit", "S", 0, SLC_OPTION_REAL, FIELD(limit_s), NULL, 0, "End the job after S seconds, with exit code 124",
     0.001, 1e9},
    {"port", "P", 0, SLC_OPTION_COUNT, FIELD(port), NULL, 0, "Port of the rendezvous (default: a free one)", 1,
     SLUICE_PORT_LAST},
    {0},
};

static sluice_status check_options(void *options)
{
    const slc_launch_options *o = options;
    if (!o->ranks) return slc_error(SLUICE_ERR_ARGUMENT, "say how many ranks: -n N");
    return o->command ? SLUICE_OK : slc_error(SLUICE_ERR_ARGUMENT, "say what to run: sluice run -n N -- CMD...");
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

/* Checks the settings of the world before ranks are started, so that a wrong one is reported once and not by each rank.
 * Under another launcher its variables may mean nothing here, and the ranks report wrong settings. */
static sluice_status check_settings(void)
{
    sluice_world_config config;
    return sluice_launcher_name() ? SLUICE_OK : sluice_world_config_init(&config);
}

static int run_ranks(int argc, char **argv)
{
    const slc_command_line line = {
        .rows = option_rows,
        .arguments = "-- CMD...",
        .program = offsetof(slc_launch_options, command),
        .check = check_options,
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
    slc_command_line_parse(&line, argc, argv, &options);
    int exit_code, why = find_program(options.command[0]);
    if (why) { /* told once, and not by each rank */
        fprintf(stderr, "sluice run: cannot run %s: %s\n", options.command[0], strerror(why));
        return why == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
    }
    if (check_settings()) return slc_fail("sluice run");
    return slc_launch(&options, &exit_code) ? slc_fail("sluice run") : exit_code;
}

const sluice_command slc_command_run = {"run", "starts N ranks of a command on this machine", run_ranks};
