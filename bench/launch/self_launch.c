/* Starts this program again. tests/command/train/train_test.sh covers this file. */
#include "bench/launch/self_launch.h"

#include "lib/base/status.h"

#include <sluice/world.h>
#include <stdlib.h>
#include <unistd.h>

bool slc_launched(void)
{
    return sluice_launcher_name() != NULL;
}

static size_t count_of(char *const *list)
{
    size_t count = 0;
    while (list && list[count]) count++;
    return count;
}

sluice_status slc_launch_self(int ranks, const char *command, char *const *args, char *const *more, int *exit_code)
{
    return slc_launch_self_as(&(slc_launch_options){.ranks = ranks}, command, args, more, exit_code);
}

sluice_status slc_launch_self_as(const slc_launch_options *how, const char *command, char *const *args,
                                 char *const *more, int *exit_code)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return slc_error(SLUICE_ERR_SYSTEM, "cannot find this program in /proc/self/exe; use `sluice run -n %d`",
                         how->ranks);
    self[length] = 0;
    size_t arg_count = count_of(args), more_count = count_of(more);
    char **line = calloc(arg_count + more_count + 3, sizeof *line);
    if (!line) return slc_error(SLUICE_ERR_MEMORY, "the command line of %d ranks", how->ranks);
    line[0] = self;
    line[1] = (char *)command;
    for (size_t i = 0; i < arg_count; i++) line[2 + i] = args[i];
    for (size_t i = 0; i < more_count; i++) line[2 + arg_count + i] = more[i];
    slc_launch_options launch = *how;
    launch.command = line;
    launch.first_speaks = true;
    sluice_status status = slc_launch(&launch, exit_code);
    free(line);
    return status;
}
