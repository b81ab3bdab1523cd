/* Writes the parts that all scripts share, and starts gnuplot.
 * tests/command/plan/memory_picture_test.sh covers this file. */
#include "bench/cli/output/gnuplot.h"

#include "bench/cli/output/picture_file.h"
#include "bench/cli/output/result_file.h"
#include "lib/base/status.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

void slc_gnuplot_begin(FILE *file, const char *name, int width, int height)
{
    fprintf(file,
            "# gnuplot %s.gp draws %s.svg and %s.png from %s.dat, all in the folder of this script.\n"
            "folder = exists('ARG0') ? ARG0 : ''\n"
            "while (strlen(folder) > 0 && folder[strlen(folder):] ne '/') { folder = folder[:strlen(folder) - 1] }\n"
            "data = folder.'%s.dat'\n"
            "do for [kind in 'svg png'] {\n"
            "  if (kind eq 'svg') { set terminal svg size %d,%d font 'sans,13' background rgb 'white' noenhanced }\n"
            "  else { set terminal pngcairo size %d,%d font 'sans,11' noenhanced }\n"
            "  set output folder.'%s.'.kind\n"
            "  set datafile missing '?'\n"
            "  set grid\n",
            name, name, name, name, name, width, height, width, height, name);
}

void slc_gnuplot_put_quoted(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') fputc('\'', file);
        if (*text != '\n') fputc(*text, file);
    }
}

sluice_status slc_gnuplot_write(const char *folder, const char *name, void (*put)(FILE *file, const void *what),
                                const void *what)
{
    char path[4096];
    slc_result_file file;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return slc_error(SLUICE_ERR_ARGUMENT, "--output: the name of the folder is too long");
    sluice_status status = slc_result_file_open(path, &file);
    if (status) return status;
    put(file.file, what);
    return slc_result_file_commit(&file);
}

int slc_gnuplot_run(const char *folder, const char *script)
{
    extern char **environ;
    char *const command[] = {(char *)"gnuplot", (char *)script, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int wait_status, why = posix_spawn_file_actions_init(&actions);
    if (why) return why;
    if (folder) why = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!why) why = posix_spawnp(&pid, "gnuplot", &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (why) return why;
    while (waitpid(pid, &wait_status, 0) < 0)
        if (errno != EINTR) return errno;
    return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0 ? 0 : -1;
}

static sluice_status check_pictures(const char *folder, const char *name)
{
    static const char *const kinds[] = {"svg", "png"};
    char path[4096];
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !status; i++)
        if (snprintf(path, sizeof path, "%s/%s.%s", folder, name, kinds[i]) < (int)sizeof path)
            status = slc_picture_file_check(path);
    return status;
}

sluice_status slc_gnuplot_draw(const char *folder, const char *name, FILE *out)
{
    char script[256];
    snprintf(script, sizeof script, "%s.gp", name);
    int why = slc_gnuplot_run(folder, script);
    if (why == ENOENT) {
        fprintf(out, "no picture: gnuplot is not installed (gnuplot-nox); %s/%s draws it\n", folder, script);
        return SLUICE_OK;
    }
    if (why > 0) return slc_error(SLUICE_ERR_SYSTEM, "no picture: cannot start gnuplot: %s", strerror(why));
    if (why) return slc_error(SLUICE_ERR_IO, "no picture: gnuplot failed with %s/%s", folder, script);
    sluice_status status = check_pictures(folder, name);
    if (!status) fprintf(out, "picture: %s/%s.svg, %s.png\n", folder, name, name);
    return status;
}
