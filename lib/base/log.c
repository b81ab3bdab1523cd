/* Log lines on standard error. status_test.c covers this file. */
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

static _Atomic int log_rank = -1;
static _Atomic int threshold = -1;

static int level_from_environment(void)
{
    const char *names[] = {"error", "warn", "info", "debug"};
    const char *text = getenv("SLUICE_LOG_LEVEL");
    for (int i = 0; text && i < 4; i++)
        if (!strcasecmp(text, names[i])) return i;
    return SLC_LOG_WARN;
}

void slc_log_rank(int rank)
{
    log_rank = rank;
}

void slc_log(slc_log_level level, const char *format, ...)
{
    static const char *const labels[] = {"error", "warning", "info", "debug"};
    int limit = threshold;
    if (limit < 0) threshold = limit = level_from_environment();
    if ((int)level > limit) return;

    char line[2048];
    int rank = log_rank;
    int used = rank < 0 ? snprintf(line, sizeof line, "sluice %s: ", labels[level])
                        : snprintf(line, sizeof line, "sluice[%d] %s: ", rank, labels[level]);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    used += more < 0 ? 0 : more;
    if (used > (int)sizeof line - 2) used = (int)sizeof line - 2;
    line[used++] = '\n';
    /* There is one write for the whole line, so that lines of several ranks do not mix. A closed standard error is not
     * an error. */
    ssize_t written = write(STDERR_FILENO, line, (size_t)used);
    (void)written;
}
