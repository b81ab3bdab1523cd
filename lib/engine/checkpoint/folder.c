/* A checkpoint exists when its folder has its name: files are made in a folder of another name, which is renamed when
 * everything in it has reached the disk. Removing one takes its name away first. */
#include "lib/engine/checkpoint/folder.h"

#include "lib/base/status.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "step-", suffix[] = ".partial";

/* ---- Names ---- */

__attribute__((format(printf, 1, 2))) static char *format_path(const char *format, ...)
{
    va_list args;
    char *path;
    va_start(args, format);
    int length = vasprintf(&path, format, args);
    va_end(args);
    return length < 0 ? NULL : path;
}

char *slc_checkpoint_folder(const char *dir, uint64_t step, bool partial)
{
    return format_path("%s/%s%06llu%s", dir, prefix, (unsigned long long)step, partial ? suffix : "");
}

char *slc_checkpoint_rank_file(const char *folder, uint32_t rank)
{
    return format_path("%s/rank-%04u.slc", folder, rank);
}

char *slc_checkpoint_file(const char *folder, const char *name)
{
    return format_path("%s/%s", folder, name);
}

/* "step-000120" or "step-000120.partial", and nothing else that ends in digits. */
static bool parse_name(const char *name, uint64_t *step, bool *partial)
{
    if (strncmp(name, prefix, sizeof prefix - 1)) return false;
    const char *digits = name + sizeof prefix - 1;
    if (!isdigit((unsigned char)*digits) || strspn(digits, "0123456789") > 19) return false;
    char *end, again[64];
    *step = strtoull(digits, &end, 10);
    *partial = !strcmp(end, suffix);
    snprintf(again, sizeof again, "%s%06llu%s", prefix, (unsigned long long)*step, *partial ? suffix : "");
    return !strcmp(again, name);
}

static sluice_status no_memory(void)
{
    return slc_error(SLUICE_ERR_MEMORY, "name of a checkpoint");
}

static sluice_status failed(const char *verb, const char *path)
{
    return slc_error(SLUICE_ERR_IO, "cannot %s %s: %s", verb, path, strerror(errno));
}

/* ---- What is there ---- */

static bool is_whole(const char *folder)
{
    char *manifest = slc_checkpoint_file(folder, SLC_CHECKPOINT_MANIFEST);
    bool whole = manifest && access(manifest, F_OK) == 0;
    free(manifest);
    return whole;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All whole ones, or all partial ones. */
static sluice_status list(const char *dir, bool partial, uint64_t **steps, size_t *count)
{
    *steps = NULL;
    *count = 0;
    DIR *open = opendir(dir);
    if (!open) return errno == ENOENT ? SLUICE_OK : failed("read the folder", dir);
    sluice_status status = SLUICE_OK;
    for (const struct dirent *entry; !status && (entry = readdir(open));) {
        uint64_t step;
        bool is_partial;
        if (!parse_name(entry->d_name, &step, &is_partial) || is_partial != partial) continue;
        char *folder = slc_checkpoint_folder(dir, step, partial);
        uint64_t *grown = realloc(*steps, (*count + 1) * sizeof **steps);
        if (grown) *steps = grown;
        if (!folder || !grown)
            status = no_memory();
        else if (partial || is_whole(folder))
            grown[(*count)++] = step;
        free(folder);
    }
    closedir(open);
    if (*count) qsort(*steps, *count, sizeof **steps, ascending);
    return status;
}

sluice_status slc_checkpoint_list(const char *dir, uint64_t **steps, size_t *count)
{
    return list(dir, false, steps, count);
}

sluice_status slc_checkpoint_find(const char *dir, char **folder)
{
    uint64_t *steps;
    size_t count;
    *folder = NULL;
    sluice_status status = slc_checkpoint_list(dir, &steps, &count);
    if (!status && !count && !is_whole(dir)) status = slc_error(SLUICE_ERR_IO, "there is no checkpoint in %s", dir);
    if (!status) {
        *folder = count ? slc_checkpoint_folder(dir, steps[count - 1], false) : strdup(dir);
        if (!*folder) status = no_memory();
    }
    free(steps);
    return status;
}

/* ---- Removing ---- */

/* Files only: nothing of ours makes folders in a folder. */
static sluice_status remove_folder(const char *folder)
{
    DIR *open = opendir(folder);
    if (!open) return errno == ENOENT ? SLUICE_OK : failed("remove", folder);
    for (const struct dirent *entry; (entry = readdir(open));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) unlinkat(dirfd(open), entry->d_name, 0);
    closedir(open);
    return rmdir(folder) ? failed("remove", folder) : SLUICE_OK;
}

static sluice_status remove_partial(const char *dir, uint64_t step)
{
    char *folder = slc_checkpoint_folder(dir, step, true);
    sluice_status status = folder ? remove_folder(folder) : no_memory();
    free(folder);
    return status;
}

static sluice_status remove_whole(const char *dir, uint64_t step)
{
    char *whole = slc_checkpoint_folder(dir, step, false), *partial = slc_checkpoint_folder(dir, step, true);
    sluice_status status = whole && partial ? SLUICE_OK : no_memory();
    if (!status && rename(whole, partial)) status = failed("remove", whole);
    if (!status) status = remove_folder(partial);
    free(whole);
    free(partial);
    return status;
}

/* ---- Making one ---- */

/* Some file systems know no synchronizing of folders. */
static sluice_status synchronize(const char *path, int flags)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (file < 0) return failed("open", path);
    sluice_status status = fsync(file) && errno != EINVAL && errno != ENOTSUP ? failed("synchronize", path) : SLUICE_OK;
    close(file);
    return status;
}

static sluice_status clear_partials(const char *dir)
{
    uint64_t *steps;
    size_t count;
    sluice_status status = list(dir, true, &steps, &count);
    for (size_t i = 0; !status && i < count; i++) status = remove_partial(dir, steps[i]);
    free(steps);
    return status;
}

sluice_status slc_checkpoint_begin(const char *dir, uint64_t step)
{
    if (mkdir(dir, 0777) && errno != EEXIST) return failed("make the folder", dir);
    sluice_status status = clear_partials(dir);
    if (status) return status;
    char *folder = slc_checkpoint_folder(dir, step, true);
    if (!folder) return no_memory();
    if (mkdir(folder, 0777)) status = failed("make the folder", folder);
    free(folder);
    return status;
}

static sluice_status write_all(int file, const char *path, const void *data, size_t bytes)
{
    for (const char *at = data; bytes;) {
        ssize_t put = write(file, at, bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return failed("write", path);
        at += put;
        bytes -= (size_t)put;
    }
    return fsync(file) ? failed("write", path) : SLUICE_OK;
}

sluice_status slc_checkpoint_write(const char *folder, const char *name, const void *data, size_t bytes)
{
    char *path = slc_checkpoint_file(folder, name), *part = format_path("%s/%s.part", folder, name);
    sluice_status status = path && part ? SLUICE_OK : no_memory();
    int file = status ? -1 : open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (!status && file < 0) status = failed("write", part);
    if (!status) status = write_all(file, part, data, bytes);
    if (file >= 0 && close(file) && !status) status = failed("write", part);
    if (!status && rename(part, path)) status = failed("write", path);
    free(path);
    free(part);
    return status;
}

/* In one move where the file system can, so that at no time there is none. */
static sluice_status replace(const char *dir, const char *partial, const char *whole, uint64_t step)
{
    if (!renameat2(AT_FDCWD, partial, AT_FDCWD, whole, RENAME_EXCHANGE)) return remove_partial(dir, step);
    if (errno != EINVAL && errno != ENOSYS) return failed("rename to", whole);
    sluice_status status = remove_folder(whole);
    if (!status && rename(partial, whole)) status = failed("rename to", whole);
    return status;
}

sluice_status slc_checkpoint_publish(const char *dir, uint64_t step)
{
    char *whole = slc_checkpoint_folder(dir, step, false), *partial = slc_checkpoint_folder(dir, step, true);
    sluice_status status = whole && partial ? synchronize(partial, O_DIRECTORY) : no_memory();
    if (!status && rename(partial, whole))
        status =
            errno == EEXIST || errno == ENOTEMPTY ? replace(dir, partial, whole, step) : failed("rename to", whole);
    if (!status) status = synchronize(dir, O_DIRECTORY);
    free(whole);
    free(partial);
    return status;
}

void slc_checkpoint_abandon(const char *dir, uint64_t step)
{
    (void)remove_partial(dir, step);
}

sluice_status slc_checkpoint_prune(const char *dir, size_t keep, uint64_t step)
{
    uint64_t *steps;
    size_t count;
    if (!keep) return SLUICE_OK;
    sluice_status status = slc_checkpoint_list(dir, &steps, &count);
    for (size_t i = 0; !status && i + keep < count; i++)
        if (steps[i] != step) status = remove_whole(dir, steps[i]);
    free(steps);
    return status;
}
