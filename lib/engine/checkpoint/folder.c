/* A checkpoint exists when its folder has its name: files are made in a folder of another name, which is renamed when
 * everything in it has reached the disk. Removing one takes its name away first. Nothing is unlinked before this change
 * of names has reached the disk, so that a crash of the machine cannot bring back the name of a removed checkpoint.
 * tests/checkpoint/checkpoint_test.c covers this file. */
#include "lib/engine/checkpoint/folder.h"

#include "lib/base/array.h"
#include "lib/base/file/path_error.h"
#include "lib/base/file/sync_folder.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/checkpoint/manifest.h"

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

/* A folder is REPLACED while another one takes its name, if that needs two renames. */
typedef enum { WHOLE, PARTIAL, REPLACED, KINDS } folder_kind;

static const char prefix[] = "step-";
static const char *const suffix[KINDS] = {"", ".partial", ".replaced"};

/* ---- Names ---- */

__attribute__((format(printf, 1, 2))) static slc_checkpoint_path format_path(const char *format, ...)
{
    va_list args;
    slc_checkpoint_path path = {""};
    va_start(args, format);
    vsnprintf(path.text, sizeof path.text, format, args);
    va_end(args);
    return path;
}

static slc_checkpoint_path folder_path(const char *dir, uint64_t step, folder_kind kind)
{
    return format_path("%s/%s%06llu%s", dir, prefix, (unsigned long long)step, suffix[kind]);
}

slc_checkpoint_path slc_checkpoint_partial(const char *dir, uint64_t step)
{
    return folder_path(dir, step, PARTIAL);
}

slc_checkpoint_path slc_checkpoint_rank_file(const char *folder, uint32_t rank)
{
    return format_path("%s/rank-%04u.slc", folder, rank);
}

slc_checkpoint_path slc_checkpoint_file(const char *folder, const char *name)
{
    return format_path("%s/%s", folder, name);
}

/* Parses "step-000120" or "step-000120.partial", and no other spelling of the number. */
static bool parse_name(const char *name, uint64_t *step, folder_kind *kind)
{
    if (strncmp(name, prefix, sizeof prefix - 1)) return false;
    const char *digits = name + sizeof prefix - 1;
    if (!isdigit((unsigned char)*digits) || strspn(digits, "0123456789") > 19) return false;
    char *end, again[64];
    *step = strtoull(digits, &end, 10);
    for (*kind = WHOLE; *kind < KINDS && strcmp(end, suffix[*kind]);) ++*kind;
    if (*kind == KINDS) return false;
    snprintf(again, sizeof again, "%s%06llu%s", prefix, (unsigned long long)*step, suffix[*kind]);
    return !strcmp(again, name);
}

static sluice_status no_memory(void)
{
    return slc_error(SLUICE_ERR_MEMORY, "name of a checkpoint");
}

/* ---- What is there ---- */

static bool is_whole(const char *folder)
{
    return access(slc_checkpoint_file(folder, SLC_CHECKPOINT_MANIFEST).text, F_OK) == 0;
}

static bool folder_is_whole(const char *dir, uint64_t step, folder_kind kind)
{
    return is_whole(folder_path(dir, step, kind).text);
}

typedef struct {
    uint64_t step;
    folder_kind kind;
} found_folder;

/* The folders of one directory that have names of ours, by ascending steps. */
typedef struct {
    found_folder *list;
    size_t count;
} folders;

static int ascending(const void *a, const void *b)
{
    const found_folder *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

/* Lists all of them, none if `dir` does not exist. The caller frees the list, also after an error. */
static sluice_status list_folders(const char *dir, folders *out)
{
    *out = (folders){NULL, 0};
    DIR *open = opendir(dir);
    if (!open) return errno == ENOENT ? SLUICE_OK : slc_path_error("cannot read the folder", dir, errno);
    sluice_status status = SLUICE_OK;
    for (const struct dirent *entry; !status && (entry = readdir(open));) {
        found_folder found;
        if (!parse_name(entry->d_name, &found.step, &found.kind)) continue;
        if (SLC_ROOM_FOR_ONE(out->list, out->count))
            out->list[out->count++] = found;
        else
            status = no_memory();
    }
    closedir(open);
    if (out->count) qsort(out->list, out->count, sizeof *out->list, ascending);
    return status;
}

/* Says whether a folder is a checkpoint that users see: also one that is set aside and whose replacement does not have
 * its name yet. */
static bool is_checkpoint(const char *dir, const found_folder *folder)
{
    return folder->kind != PARTIAL && folder_is_whole(dir, folder->step, folder->kind);
}

/* Returns the path of the whole checkpoint of a step; one that is set aside has another name. */
static slc_checkpoint_path whole_path(const char *dir, uint64_t step)
{
    return folder_path(dir, step, folder_is_whole(dir, step, WHOLE) ? WHOLE : REPLACED);
}

/* False: the manifest is damaged, or cannot be read. */
static bool read_serial(const char *dir, slc_saved *saved)
{
    slc_checkpoint_path path = slc_checkpoint_file(whole_path(dir, saved->step).text, SLC_CHECKPOINT_MANIFEST);
    slc_manifest manifest = {0};
    uint32_t checksum;
    bool known = !slc_manifest_read(path.text, &manifest, &checksum);
    saved->serial = manifest.serial;
    slc_manifest_fini(&manifest);
    return known;
}

static int saved_first(const void *a, const void *b)
{
    const slc_saved *x = a, *y = b;
    if (x->serial != y->serial) return x->serial < y->serial ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

sluice_status slc_checkpoint_list(const char *dir, slc_saved **list, size_t *count)
{
    folders found;
    *count = 0;
    sluice_status status = list_folders(dir, &found);
    *list = status ? NULL : malloc((found.count + 1) * sizeof **list);
    if (!status && !*list) status = no_memory();
    for (size_t i = 0; !status && i < found.count; i++) {
        slc_saved saved = {found.list[i].step, 0};
        const uint64_t before = *count ? (*list)[*count - 1].serial : 0;
        if (!is_checkpoint(dir, &found.list[i]) || (*count && (*list)[*count - 1].step == saved.step)) continue;
        if (!read_serial(dir, &saved)) saved.serial = before;
        (*list)[(*count)++] = saved;
    }
    if (*count) qsort(*list, *count, sizeof **list, saved_first);
    free(found.list);
    return status;
}

sluice_status slc_checkpoint_find(const char *dir, slc_checkpoint_path *folder)
{
    slc_saved *list;
    size_t count;
    sluice_status status = slc_checkpoint_list(dir, &list, &count);
    if (!status && !count && !is_whole(dir)) status = slc_error(SLUICE_ERR_PATH, "there is no checkpoint in %s", dir);
    if (!status) *folder = count ? whole_path(dir, list[count - 1].step) : format_path("%s", dir);
    free(list);
    return status;
}

/* ---- Removing: a failure is a warning ---- */

/* Removes a folder that holds only files, as all of ours do. A link or a file of its name is unlinked. */
static sluice_status remove_folder(const char *folder)
{
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) return SLUICE_OK;
    if (file < 0 && (errno == ENOTDIR || errno == ELOOP))
        return unlink(folder) ? slc_path_error("cannot remove", folder, errno) : SLUICE_OK;
    DIR *open = file < 0 ? NULL : fdopendir(file);
    if (!open) {
        sluice_status status = slc_path_error("cannot remove", folder, errno);
        if (file >= 0) close(file);
        return status;
    }
    for (const struct dirent *entry; (entry = readdir(open));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) unlinkat(dirfd(open), entry->d_name, 0);
    closedir(open);
    return rmdir(folder) ? slc_path_error("cannot remove", folder, errno) : SLUICE_OK;
}

static void warn_of(sluice_status status, const char *consequence)
{
    if (status) slc_log(SLC_LOG_WARN, "%s; %s", sluice_last_error(), consequence);
}

static void remove_or_warn(const char *dir, uint64_t step, folder_kind kind)
{
    warn_of(remove_folder(folder_path(dir, step, kind).text), "checkpoints go on without that; remove it by hand");
}

/* Removes all partial folders, or all that another one has replaced. */
static void remove_left_over(const char *dir, const folders *found, folder_kind kind)
{
    for (size_t i = 0; i < found->count; i++) {
        const found_folder *folder = &found->list[i];
        if (folder->kind == kind && (kind == PARTIAL || folder_is_whole(dir, folder->step, WHOLE)))
            remove_or_warn(dir, folder->step, kind);
    }
}

/* ---- Making one ---- */

/* Synchronizes the folder that holds `dir` only while `dir` has no checkpoint: the first one came after the name of
 * `dir` had reached the disk. */
sluice_status slc_checkpoint_make_dir(const char *dir)
{
    bool any = false;
    folders found;
    if (mkdir(dir, 0777) && errno != EEXIST) return slc_path_error("cannot make the folder", dir, errno);
    sluice_status status = list_folders(dir, &found);
    for (size_t i = 0; !any && i < found.count; i++) any = is_checkpoint(dir, &found.list[i]);
    free(found.list);
    return status || any ? status : slc_sync_parent(dir);
}

/* If a crash came between the two renames of replace_checkpoint, the folder that was renamed first gets its name back.
 */
static void restore_replaced(const char *dir, const folders *found)
{
    for (size_t i = 0; i < found->count; i++) {
        if (found->list[i].kind != REPLACED) continue;
        const uint64_t step = found->list[i].step;
        slc_checkpoint_path aside = folder_path(dir, step, REPLACED), whole = folder_path(dir, step, WHOLE);
        if (!is_whole(whole.text) && is_whole(aside.text) && rename(aside.text, whole.text))
            warn_of(slc_path_error("cannot rename", aside.text, errno), "it stays a checkpoint under this name");
    }
}

/* Repairs and removes what crashes left. */
static sluice_status clear_left_over(const char *dir)
{
    bool any = false;
    folders found;
    sluice_status status = list_folders(dir, &found);
    for (size_t i = 0; i < found.count; i++) any |= found.list[i].kind != WHOLE;
    if (!status && any) {
        restore_replaced(dir, &found);
        status = slc_sync_folder(dir);
    }
    if (!status) {
        remove_left_over(dir, &found, REPLACED);
        remove_left_over(dir, &found, PARTIAL);
    }
    free(found.list);
    return status;
}

sluice_status slc_checkpoint_begin(const char *dir, uint64_t step)
{
    struct stat info;
    sluice_status status = clear_left_over(dir);
    if (status) return status;
    slc_checkpoint_path folder = folder_path(dir, step, PARTIAL);
    /* A partial folder that could not be removed, because a user has put a folder into it, is used again. */
    if (mkdir(folder.text, 0777) && !(errno == EEXIST && !lstat(folder.text, &info) && S_ISDIR(info.st_mode)))
        return slc_path_error("cannot make the folder", folder.text, errno);
    return SLUICE_OK;
}

/* Replaces a checkpoint in one rename if the file system can, else in two; between them readers know the old one by
 * its other name. */
static sluice_status replace_checkpoint(const char *dir, const char *partial, const char *whole, uint64_t step)
{
    if (!renameat2(AT_FDCWD, partial, AT_FDCWD, whole, RENAME_EXCHANGE)) return SLUICE_OK;
    if (errno != EINVAL && errno != ENOSYS) return slc_path_error("cannot rename to", whole, errno);
    slc_checkpoint_path aside = folder_path(dir, step, REPLACED);
    if (rename(whole, aside.text)) return slc_path_error("cannot rename", whole, errno);
    if (!rename(partial, whole)) return SLUICE_OK;
    sluice_status status = slc_path_error("cannot rename to", whole, errno);
    rename(aside.text, whole); /* the next save repairs a failure here */
    return status;
}

sluice_status slc_checkpoint_publish(const char *dir, uint64_t step)
{
    slc_checkpoint_path whole = folder_path(dir, step, WHOLE), partial = folder_path(dir, step, PARTIAL);
    sluice_status status = slc_sync_folder(partial.text);
    if (!status && rename(partial.text, whole.text))
        status = errno == EEXIST || errno == ENOTEMPTY ? replace_checkpoint(dir, partial.text, whole.text, step)
                                                       : slc_path_error("cannot rename to", whole.text, errno);
    if (status) return status;
    sluice_status synchronized = slc_sync_folder(dir);
    warn_of(synchronized, "the checkpoint is saved, but a crash of the machine may still take it away");
    if (synchronized) return SLUICE_OK;
    remove_or_warn(dir, step, PARTIAL); /* the replaced checkpoint has one of these two names */
    remove_or_warn(dir, step, REPLACED);
    return SLUICE_OK;
}

void slc_checkpoint_abandon(const char *dir, uint64_t step)
{
    remove_or_warn(dir, step, PARTIAL);
}

/* Takes a checkpoint's name away. */
static sluice_status retire(const char *dir, uint64_t step)
{
    slc_checkpoint_path whole = folder_path(dir, step, WHOLE);
    return rename(whole.text, folder_path(dir, step, PARTIAL).text) ? slc_path_error("cannot remove", whole.text, errno)
                                                                    : SLUICE_OK;
}

void slc_checkpoint_prune(const char *dir, size_t keep, uint64_t step)
{
    static const char later[] = "the old checkpoint stays until a later save can remove it";
    slc_saved *list = NULL;
    size_t count = 0, retired = 0;
    if (!keep) return;
    warn_of(slc_checkpoint_list(dir, &list, &count), later);
    for (size_t i = 0; i + keep < count; i++) {
        if (list[i].step == step) continue;
        sluice_status status = retire(dir, list[i].step);
        warn_of(status, later);
        if (!status) list[retired++] = list[i];
    }
    sluice_status status = retired ? slc_sync_folder(dir) : SLUICE_OK;
    warn_of(status, later);
    for (size_t i = 0; !status && i < retired; i++) remove_or_warn(dir, list[i].step, PARTIAL);
    free(list);
}
