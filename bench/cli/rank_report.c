/* Lets the world compare the ranks' last words (slc_world_leave). tests/launch/run_test.sh covers this file. */
#include "bench/cli/rank_report.h"

#include "bench/cli/error_line.h"
#include "bench/cli/exit_codes.h"
#include "lib/base/status.h"
#include "lib/comm/leave.h"

#include <stdio.h>
#include <string.h>

static const double JOIN_S = 5;

/* Destroys the world. Returns true if this rank is to report the error. *code is this rank's exit code; it becomes that
 * of the rank that reports the error as its own. */
static bool is_to_tell(sluice_world *world, sluice_status status, const char *line, int *code)
{
    int told_code = 0;
    slc_error(status, "%s", line);
    bool tells = slc_world_leave(world, *code, &told_code);
    if (told_code) *code = told_code;
    return tells;
}

/* Joins a world only to compare an error that came before the ranks' own world. Returns NULL if this rank is alone, or
 * if the other ranks do not come. */
static sluice_world *join_to_compare(void)
{
    sluice_world_config config;
    sluice_world *world = NULL;
    if (sluice_world_config_init(&config) || config.size == 1) return NULL;
    if (config.join_timeout_s > JOIN_S) config.join_timeout_s = JOIN_S;
    return sluice_world_create(&config, &world) ? NULL : world;
}

/* Returns true if the line only says that another rank has failed at its part. That rank tells why. */
static bool is_of_another_rank(const char *line)
{
    return strstr(line, "another rank could not ") || strstr(line, "rank 0 could not ");
}

int slc_rank_fail(const char *who, sluice_world *world)
{
    char line[2048];
    const sluice_status status = slc_last_status();
    snprintf(line, sizeof line, "%s", sluice_last_error());
    int code = slc_exit_code(status);
    bool tells = world ? is_to_tell(world, status, line, &code) : !slc_world_create_known_to_first();
    if (tells && !is_of_another_rank(line)) slc_print_error(who, line);
    return code;
}

int slc_rank_refuse(const char *who)
{
    char line[2048];
    const sluice_status status = slc_last_status();
    snprintf(line, sizeof line, "%s", sluice_last_error());
    int code = slc_exit_code(status);
    sluice_world *world = join_to_compare();
    if (!world || is_to_tell(world, status, line, &code)) slc_print_error(who, line);
    return code;
}

void slc_rank_tell_usage(const char *text)
{
    int code = EXIT_USAGE;
    sluice_world *world = join_to_compare();
    if (!world || is_to_tell(world, SLUICE_ERR_ARGUMENT, text, &code)) fputs(text, stderr);
}

bool slc_is_one_of_several_ranks(void)
{
    sluice_world_config config;
    return sluice_launcher_name() && !sluice_world_config_init(&config) && config.size > 1;
}
