/* The record's file: where it lies, how it is laid out, when it goes. Its space is reserved when it is made, so that
 * writing to the mapping never fails later. Other programs need the folder's space too: a record takes a small part of
 * what is free. */
#include "lib/base/log.h"
#include "lib/base/host/boot_id.h"
#include "lib/base/host/process_stat.h"
#include "lib/base/status.h"
#include "plugins/nccl/record/pid_namespace.h"
#include "plugins/nccl/shim/recorder.h"
#include "plugins/nccl/shim/settings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* ---- The process ---- */

/* Returns when a process began, as slc_process_stat does; 0 if there is no such process. */
static uint64_t process_started(long pid)
{
    char state;
    uint64_t started;
    return slc_process_stat(pid, &state, &started) ? started : 0;
}

/* Writes this process's command line, whose arguments are separated by spaces. */
static void write_command(char *out, size_t bytes)
{
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, out, bytes - 1);
    if (file >= 0) close(file);
    const size_t length = got > 0 ? (size_t)got : 0;
    out[length] = 0;
    for (size_t i = 0; i + 1 < length; i++)
        if (!out[i]) out[i] = ' ';
}

static int32_t launch_number(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        char *end;
        long value = text && *text ? strtol(text, &end, 10) : -1;
        if (value >= 0 && value < INT32_MAX && !*end) return (int32_t)value;
    }
    return -1;
}

static void describe_process(slc_record_header *header)
{
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    static const char *const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
    header->pid = getpid();
    header->started = process_started(getpid());
    header->pid_namespace = slc_record_pid_namespace();
    header->launch_rank = launch_number(ranks);
    header->launch_size = launch_number(sizes);
    gethostname(header->host, sizeof header->host - 1);
    slc_boot_id(header->boot_id);
    write_command(header->command, sizeof header->command);
    struct timespec monotonic, real;
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    clock_gettime(CLOCK_REALTIME, &real);
    header->first_call_ns = monotonic.tv_sec * INT64_C(1000000000) + monotonic.tv_nsec;
    header->realtime_minus_monotonic_ns = real.tv_sec * INT64_C(1000000000) + real.tv_nsec - header->first_call_ns;
}

/* ---- The folder ---- */

/* Refuses a folder that other users may write to: what they put there would be read as a record. */
static sluice_status check_folder(const char *folder, bool given)
{
    struct stat info;
    mode_t others = given ? S_IWOTH : S_IWGRP | S_IWOTH;
    if (mkdir(folder, 0700) && errno != EEXIST) return slc_error(SLUICE_ERR_IO, "%s: %s", folder, strerror(errno));
    if (lstat(folder, &info)) return slc_error(SLUICE_ERR_IO, "%s: %s", folder, strerror(errno));
    if (!S_ISDIR(info.st_mode)) {
        if (!given || stat(folder, &info) || !S_ISDIR(info.st_mode))
            return slc_error(SLUICE_ERR_IO, "%s is no folder", folder);
    }
    if (info.st_uid != geteuid()) return slc_error(SLUICE_ERR_IO, "%s belongs to another user", folder);
    if (info.st_mode & others)
        return slc_error(SLUICE_ERR_IO, "%s may be written by others; take that right away with chmod", folder);
    return SLUICE_OK;
}

/* Returns true if a record of these bytes is a small part of what the folder's file system has free. */
static bool leaves_space(const char *folder, size_t bytes)
{
    enum { SHARE = 16 };
    struct statvfs space;
    if (statvfs(folder, &space) || !space.f_blocks) return true; /* it has no limit that it names */
    return bytes <= (uint64_t)space.f_bavail * space.f_frsize / SHARE;
}

/* ---- Records of processes that are dead ---- */

/* Returns when something was last written to a record, in seconds since 1970: its latest entry's time. A mapped file's
 * own time does not move. */
static int64_t last_write(int file, const slc_record_header *header, const struct stat *info)
{
    slc_record_entry entry;
    if (!header->entries || !header->entry_count) return info->st_mtime;
    off_t at = (off_t)(header->entries_at + (header->entries - 1) % header->entry_count * sizeof entry);
    if (pread(file, &entry, sizeof entry, at) != sizeof entry || entry.time_ns <= 0) return info->st_mtime;
    return (entry.time_ns + header->realtime_minus_monotonic_ns) / 1000000000;
}

/* Gives back the pages of the ring that were never written; the file keeps its size. */
static void give_back_unused(int file, const slc_record_header *header)
{
    uint64_t used = header->entries_at + header->entries * sizeof(slc_record_entry), page = 65536;
    uint64_t begin = (used + page - 1) / page * page, end = header->times_at ? header->times_at : header->file_bytes;
    end -= end % page;
    if (begin < end) fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)(end - begin));
}

/* True if a dead process's record has stayed long enough to be removed. Otherwise the pages that the process never
 * wrote are given back. */
static bool is_over(int file, const struct stat *info, bool has_space)
{
    enum { DAY = 86400, LEFT_LIFE = 300 };
    slc_record_header header;
    int64_t now = time(NULL);
    if (pread(file, &header, sizeof header, 0) != sizeof header || header.version != SLC_RECORD_VERSION ||
        header.file_bytes != (uint64_t)info->st_size)
        return now - info->st_mtime > DAY;
    if (header.left_at_s && (!has_space || now - header.left_at_s > LEFT_LIFE)) return true;
    if (now - last_write(file, &header, info) > DAY) return true;
    give_back_unused(file, &header);
    return false;
}

/* Looks after the records of processes that are dead, of this host and this process's namespace. */
static void remove_old(const char *folder, const slc_record_header *own, bool has_space)
{
    char prefix[128];
    DIR *list = opendir(folder);
    if (!list) return;
    size_t length =
        (size_t)snprintf(prefix, sizeof prefix, "%s-%llu-", own->host, (unsigned long long)own->pid_namespace);
    for (struct dirent *item; (item = readdir(list));) {
        long pid;
        unsigned long long started;
        int used = 0;
        struct stat info;
        if (strncmp(item->d_name, prefix, length)) continue;
        const char *rest = item->d_name + length;
        if (sscanf(rest, "%ld-%llu" SLC_RECORD_SUFFIX "%n", &pid, &started, &used) != 2 || !used || rest[used])
            continue;
        if (process_started(pid) == started) continue;
        int file = openat(dirfd(list), item->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (file < 0) continue;
        if (!fstat(file, &info) && S_ISREG(info.st_mode) && is_over(file, &info, has_space))
            unlinkat(dirfd(list), item->d_name, 0);
        close(file);
    }
    closedir(list);
}

/* ---- The file ---- */

static size_t layout_header(slc_record_header *header, const slc_shim_record_layout *layout)
{
    memcpy(header->magic, SLC_RECORD_MAGIC, sizeof header->magic);
    header->version = SLC_RECORD_VERSION;
    header->header_bytes = SLC_RECORD_HEADER_BYTES;
    header->entry_bytes = sizeof(slc_record_entry);
    header->entry_count = (uint32_t)layout->entry_count;
    header->communicators_at = SLC_RECORD_HEADER_BYTES;
    header->modules_at = header->communicators_at + SLC_RECORD_COMMUNICATORS * sizeof(slc_record_communicator);
    header->entries_at = header->modules_at + SLC_RECORD_MODULES * sizeof(slc_record_module);
    header->file_bytes = header->entries_at + layout->entry_count * sizeof(slc_record_entry);
    if (layout->times) {
        header->times_at = header->file_bytes;
        header->file_bytes += layout->entry_count * sizeof(slc_record_time);
    }
    return header->file_bytes;
}

/* Makes the file and reserves its space. An older one of this name is of the program that this process was before it
 * called exec; nobody waits for that one any more. */
static sluice_status make_file(const char *path, size_t bytes, void **map)
{
    struct rlimit limit; /* a file that grows beyond it ends the process with a signal */
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < bytes)
        return slc_error(SLUICE_ERR_IO, "%s: %zu bytes: more than a file may have (ulimit -f)", path, bytes);
    unlink(path);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return slc_error(SLUICE_ERR_IO, "%s: %s", path, strerror(errno));
    int why = posix_fallocate(file, 0, (off_t)bytes);
    if (!why) {
        *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
        if (*map == MAP_FAILED) why = errno;
    }
    close(file);
    if (!why) return SLUICE_OK;
    unlink(path);
    return slc_error(SLUICE_ERR_IO, "%s: %zu bytes: %s", path, bytes, strerror(why));
}

/* Lays the record out for this folder: the ring gets smaller if there is little space, unless the user has said how
 * large it is to be. */
static sluice_status fit_layout(const char *folder, slc_record_header *header, slc_shim_record_layout *layout)
{
    enum { LEAST_ENTRIES = 1024 };
    size_t bytes = layout_header(header, layout);
    if (getenv("SLUICE_SHIM_ENTRIES")) return SLUICE_OK;
    while (!leaves_space(folder, bytes)) {
        if (layout->entry_count <= LEAST_ENTRIES)
            return slc_error(SLUICE_ERR_IO,
                             "%s: a record of %zu bytes would take more than a sixteenth of the space that is free; "
                             "remove files there, or set SLUICE_SHIM_DIR to another folder",
                             folder, bytes);
        layout->entry_count /= 2;
        bytes = layout_header(header, layout);
    }
    return SLUICE_OK;
}

static sluice_status open_in_folder(slc_shim_recorder *recorder, slc_record_header *header,
                                    slc_shim_record_layout *layout, void **map)
{
    const char *given = slc_setting_text(&slc_shim_settings, "SLUICE_SHIM_DIR");
    char standard[64];
    snprintf(standard, sizeof standard, "/dev/shm/sluice-%ld", (long)geteuid());
    const char *folder = *given ? given : standard;
    sluice_status status = check_folder(folder, *given);
    if (status) return status;
    if (*given)
        recorder->kept = true;
    else
        remove_old(folder, header, leaves_space(folder, layout_header(header, layout)));
    status = fit_layout(folder, header, layout);
    if (status) return status;
    if (asprintf(&recorder->path, "%s/%s-%llu-%lld-%llu" SLC_RECORD_SUFFIX, folder, header->host,
                 (unsigned long long)header->pid_namespace, (long long)header->pid,
                 (unsigned long long)header->started) < 0) {
        recorder->path = NULL;
        return slc_error(SLUICE_ERR_MEMORY, "the record's name");
    }
    status = make_file(recorder->path, header->file_bytes, map);
    if (!status) return SLUICE_OK;
    free(recorder->path);
    recorder->path = NULL;
    return status;
}

/* Returns private memory for a record that nobody will read, so that the program goes on. There is always enough for a
 * small record. */
static void *private_memory(slc_record_header *header, slc_shim_record_layout *layout)
{
    enum { LAST_ENTRIES = 16 };
    static _Alignas(
        4096) char last_resort[SLC_RECORD_HEADER_BYTES + SLC_RECORD_COMMUNICATORS * sizeof(slc_record_communicator) +
                               SLC_RECORD_MODULES * sizeof(slc_record_module) +
                               LAST_ENTRIES * (sizeof(slc_record_entry) + sizeof(slc_record_time))];
    size_t bytes = layout_header(header, layout);
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map != MAP_FAILED) return map;
    layout->entry_count = LAST_ENTRIES;
    layout_header(header, layout);
    return memset(last_resort, 0, sizeof last_resort); /* the parent had it, perhaps */
}

void slc_shim_record_file_open(slc_shim_recorder *recorder, const slc_shim_record_layout *wanted)
{
    slc_shim_record_layout layout = *wanted;
    slc_record_header header = {0};
    describe_process(&header);
    void *map = NULL;
    if (open_in_folder(recorder, &header, &layout, &map)) {
        slc_log(SLC_LOG_WARN, "NCCL's calls are not recorded: %s", sluice_last_error());
        map = private_memory(&header, &layout);
    }
    char *base = map;
    recorder->header = map;
    recorder->rows = (slc_record_communicator *)(base + header.communicators_at);
    recorder->modules = (slc_record_module *)(base + header.modules_at);
    recorder->entries = (slc_record_entry *)(base + header.entries_at);
    recorder->times = layout.times ? (slc_record_time *)(base + header.times_at) : NULL;
    recorder->entry_mask = layout.entry_count - 1;
    /* A reader takes the file for a record once the magic is there. */
    char magic[sizeof header.magic];
    memcpy(magic, header.magic, sizeof magic);
    memset(header.magic, 0, sizeof header.magic);
    header.state = SLC_RECORD_RUNNING;
    memcpy(recorder->header, &header, sizeof header);
    uint64_t word;
    memcpy(&word, magic, sizeof word);
    __atomic_store_n((uint64_t *)(void *)recorder->header->magic, word, __ATOMIC_RELEASE);
}

/* ---- The end ---- */

typedef enum { ALL_ENDED, ALL_LEFT, NOT_WELL } communicators_end;

/* Says how the program left its communicators. A program that ends none of them is nothing unusual; one that ends some
 * in an orderly way and leaves others is. */
static communicators_end how_communicators_ended(const slc_shim_recorder *recorder)
{
    unsigned count = __atomic_load_n(&recorder->header->communicators, __ATOMIC_ACQUIRE), destroyed = 0, left = 0;
    for (unsigned i = 0; i < count; i++) {
        const slc_record_communicator *row = &recorder->rows[i];
        uint32_t state = __atomic_load_n(&row->state, __ATOMIC_ACQUIRE);
        if (state == SLC_RECORD_ROW_CREATING || state == SLC_RECORD_ROW_ABORTED || state == SLC_RECORD_ROW_FAILED)
            return NOT_WELL;
        if (__atomic_load_n(&row->calls, __ATOMIC_RELAXED) != __atomic_load_n(&row->returned, __ATOMIC_RELAXED))
            return NOT_WELL;
        destroyed += state == SLC_RECORD_ROW_DESTROYED;
        left += state == SLC_RECORD_ROW_READY;
    }
    if (!left) return ALL_ENDED;
    return destroyed ? NOT_WELL : ALL_LEFT;
}

void slc_shim_record_file_end(slc_shim_recorder *recorder)
{
    slc_record_header *header = recorder->header;
    bool fault = recorder->kept || atomic_load(&recorder->fault);
    communicators_end end = fault ? NOT_WELL : how_communicators_ended(recorder);
    if (end == ALL_LEFT) __atomic_store_n(&header->left_at_s, (int64_t)time(NULL), __ATOMIC_RELAXED);
    __atomic_store_n(&header->state, (uint32_t)SLC_RECORD_ENDED, __ATOMIC_RELEASE);
    if (!recorder->path) return;
    if (end == ALL_ENDED) {
        unlink(recorder->path);
        return;
    }
    int file = open(recorder->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return;
    give_back_unused(file, header);
    close(file);
}
