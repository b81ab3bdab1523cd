/* The lock is on the folder itself, so that it leaves no file. Ranks inherit its descriptor: the folder is free when
 * the last process that may write into it has ended, however it ended. tests/command/measure/bench_test.sh covers this
 * file. */
#include "bench/sweep/folder/folder.h"

#include "lib/base/file/path_error.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_TRIES = 100, SETTLED_S = 1 };
static const struct timespec LOCK_PAUSE = {.tv_nsec = 50000000};

sluice_status slc_folder_path(const char *folder, const char *name, char *path)
{
    if (snprintf(path, SLC_FOLDER_BYTES, "%s/%s", folder, name) < SLC_FOLDER_BYTES) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--output: the name of the folder is too long");
}

sluice_status slc_folder_name(const char *what, unsigned number, char *folder)
{
    char date[16], suffix[16] = "", name[SLC_FOLDER_BYTES];
    time_t now = time(NULL);
    struct tm today;
    strftime(date, sizeof date, "%Y-%m-%d", localtime_r(&now, &today));
    if (number > 1) snprintf(suffix, sizeof suffix, "-%u", number);
    if (snprintf(name, sizeof name, "%s-%s%s", date, what, suffix) >= SLC_FOLDER_BYTES)
        return slc_error(SLUICE_ERR_ARGUMENT, "the name of the folder is too long; give one with --output");
    return slc_folder_path("out/bench", name, folder);
}

sluice_status slc_folder_lock(const char *folder)
{
    int locked = -1, why = 0;
    int fd = open(folder, O_RDONLY | O_DIRECTORY); /* inherited: see above */
    if (fd < 0) return slc_error(slc_path_status(errno), "--output: cannot open %s: %s", folder, strerror(errno));
    for (int i = 0; locked && i < LOCK_TRIES; i++) {
        if (i) nanosleep(&LOCK_PAUSE, NULL);
        locked = flock(fd, LOCK_EX | LOCK_NB);
        why = locked ? errno : 0;
        if (locked && why != EWOULDBLOCK && why != EINTR) break;
    }
    if (!why) return SLUICE_OK;
    close(fd);
    if (why == EWOULDBLOCK || why == EINTR)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "another sweep is writing into %s: wait for its end, or name another folder with --output",
                         folder);
    slc_log(SLC_LOG_WARN, "%s cannot be locked (%s): let no other sweep write into it meanwhile", folder,
            strerror(why));
    return SLUICE_OK;
}

/* True if nobody has the file open and it was not written a moment ago: a writer closes a file just before the file
 * gets its name. */
static bool is_left_over(int folder, const char *name)
{
    struct stat info;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool left = fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode) && time(NULL) - info.st_mtime > SETTLED_S &&
                !fcntl(fd, F_SETLEASE, F_WRLCK); /* given only if no other descriptor of the file is open */
    if (fd >= 0) close(fd);
    return left;
}

void slc_folder_clean(const char *folder)
{
    static const char begin[] = ".sluice-", end[] = ".part"; /* lib/base/file/draft.c */
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, begin, sizeof begin - 1) || length < sizeof begin + sizeof end) continue;
        if (strcmp(entry->d_name + length + 1 - sizeof end, end)) continue;
        if (is_left_over(dirfd(dir), entry->d_name)) unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir) closedir(dir);
}
