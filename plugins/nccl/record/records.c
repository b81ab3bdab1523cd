/* Finds the files and puts their processes in order. */
#include "plugins/nccl/record/records.h"

#include "plugins/nccl/record/read_file.h"
#include "lib/base/array.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"
#include "lib/base/text/ending.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    char **paths;
    size_t count;
} path_list;

static void free_paths(path_list *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->paths[i]);
    free(list->paths);
    *list = (path_list){0};
}

/* Adds "folder/name", or "folder" if there is no name. */
static sluice_status add_path(path_list *list, const char *folder, const char *name)
{
    size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = SLC_ROOM_FOR_ONE(list->paths, list->count) ? malloc(bytes) : NULL;
    if (!path) return slc_error(SLUICE_ERR_MEMORY, "name of %s/%s", folder, name);
    snprintf(path, bytes, "%s%s%s", folder, *name ? "/" : "", name);
    list->paths[list->count++] = path;
    return SLUICE_OK;
}

static sluice_status list_folder(const char *folder, path_list *out)
{
    DIR *stream = opendir(folder);
    if (!stream) return slc_path_error("cannot read the folder", folder, errno);
    sluice_status status = SLUICE_OK;
    for (struct dirent *entry; !status && (entry = readdir(stream));)
        if (slc_ends_with(entry->d_name, SLC_RECORD_SUFFIX)) status = add_path(out, folder, entry->d_name);
    closedir(stream);
    return status;
}

/* Lists the files in the folders, and the paths that are files; one that does not exist has none. */
static sluice_status list_files(const char *const *paths, size_t path_count, path_list *out)
{
    *out = (path_list){0};
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < path_count; i++) {
        struct stat info;
        if (!stat(paths[i], &info))
            status = S_ISDIR(info.st_mode) ? list_folder(paths[i], out) : add_path(out, paths[i], "");
        else if (errno != ENOENT)
            status = slc_path_error("cannot read", paths[i], errno);
    }
    if (status) free_paths(out);
    return status;
}

static bool are_one_process(const slc_record_header *a, const slc_record_header *b)
{
    return a->pid == b->pid && a->started == b->started && a->first_call_ns == b->first_call_ns &&
           !strcmp(a->host, b->host) && !strcmp(a->boot_id, b->boot_id);
}

static slc_nccl_process *find_path(slc_nccl_records *records, const char *path)
{
    for (size_t i = 0; i < records->count; i++)
        if (!strcmp(records->processes[i].path, path)) return &records->processes[i];
    return NULL;
}

/* Reads a file that is new; one that another path has too, or that is not there any more, is left out. */
static sluice_status add_process(slc_nccl_records *records, const char *path)
{
    if (!SLC_ROOM_FOR_ONE(records->processes, records->count))
        return slc_error(SLUICE_ERR_MEMORY, "record of %s", path);
    slc_nccl_process *p = &records->processes[records->count];
    *p = (slc_nccl_process){.path = strdup(path)};
    if (!p->path) return slc_error(SLUICE_ERR_MEMORY, "name of %s", path);
    bool absent;
    sluice_status status = slc_nccl_file_read(p, &absent);
    bool known = absent;
    for (size_t i = 0; !status && !absent && i < records->count; i++)
        known |= are_one_process(&records->processes[i].header, &p->header);
    if (status || known)
        slc_nccl_file_free(p);
    else
        records->count++;
    return status;
}

static void drop_process(slc_nccl_records *records, slc_nccl_process *p)
{
    slc_nccl_file_free(p);
    records->count--;
    memmove(p, p + 1, (size_t)(records->processes + records->count - p) * sizeof *p);
}

/* Notes a file and the last error. */
static sluice_status refuse(slc_nccl_records *records, const char *path)
{
    for (size_t i = 0; i < records->refused_count; i++)
        if (!strcmp(records->refused[i].path, path)) return SLUICE_OK;
    const bool room = SLC_ROOM_FOR_ONE(records->refused, records->refused_count);
    slc_nccl_refused row = {strdup(path), strdup(sluice_last_error())};
    if (!room || !row.path || !row.why) {
        free(row.path);
        free(row.why);
        return slc_error(SLUICE_ERR_MEMORY, "name of %s", path);
    }
    records->refused[records->refused_count++] = row;
    return SLUICE_OK;
}

static sluice_status read_process(slc_nccl_records *records, const char *path)
{
    bool absent;
    slc_nccl_process *known = find_path(records, path);
    sluice_status status = known ? slc_nccl_file_read(known, &absent) : add_process(records, path);
    if (!status || status == SLUICE_ERR_MEMORY) return status;
    status = refuse(records, path);
    if (known) drop_process(records, known);
    return status;
}

bool slc_nccl_share_communicator(const slc_nccl_process *a, const slc_nccl_process *b)
{
    for (uint32_t i = 0; i < a->header.communicators; i++)
        for (uint32_t k = 0; k < b->header.communicators; k++)
            if (a->communicators[i].key && a->communicators[i].key == b->communicators[k].key) return true;
    return false;
}

static bool is_listed(const path_list *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->paths[i], path)) return true;
    return false;
}

/* Reads the processes whose file is gone for the last time. */
static sluice_status end_removed(slc_nccl_records *records, const path_list *list)
{
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < records->count; i++) {
        slc_nccl_process *p = &records->processes[i];
        if (is_listed(list, p->path)) continue;
        bool absent;
        status = slc_nccl_file_read(p, &absent);
        if (status == SLUICE_ERR_FORMAT) status = refuse(records, p->path);
        p->state = SLC_NCCL_ENDED;
    }
    return status;
}

/* Processes whose file is gone are dropped when nobody has a communicator with them any more. */
static void drop_ended(slc_nccl_records *records, const path_list *list)
{
    for (size_t i = 0; i < records->count;) {
        slc_nccl_process *p = &records->processes[i];
        bool wanted = is_listed(list, p->path);
        for (size_t k = 0; !wanted && k < records->count; k++)
            wanted =
                is_listed(list, records->processes[k].path) && slc_nccl_share_communicator(p, &records->processes[k]);
        if (wanted) {
            i++;
            continue;
        }
        drop_process(records, p);
    }
}

static int by_host(const void *a, const void *b)
{
    const slc_nccl_process *x = a, *y = b;
    int hosts = strcmp(x->header.host, y->header.host);
    if (hosts) return hosts;
    if (x->header.pid != y->header.pid) return x->header.pid < y->header.pid ? -1 : 1;
    return strcmp(x->path, y->path);
}

static int by_rank(const void *a, const void *b)
{
    const slc_nccl_process *x = a, *y = b;
    int rank = x->communicators[0].rank, other = y->communicators[0].rank;
    return rank != other ? (rank < other ? -1 : 1) : by_host(a, b);
}

static void sort(slc_nccl_records *records)
{
    bool shared = true;
    for (size_t i = 0; shared && i < records->count; i++) {
        const slc_nccl_process *p = &records->processes[i];
        shared = p->header.communicators && p->communicators[0].key == records->processes[0].communicators[0].key;
    }
    if (records->count)
        qsort(records->processes, records->count, sizeof *records->processes, shared ? by_rank : by_host);
}

sluice_status slc_nccl_records_again(const char *const *paths, size_t path_count, slc_nccl_records *records)
{
    path_list list;
    sluice_status status = list_files(paths, path_count, &list);
    if (status) return status;
    for (size_t i = 0; !status && i < list.count; i++) status = read_process(records, list.paths[i]);
    if (!status) status = end_removed(records, &list);
    if (!status) drop_ended(records, &list);
    sort(records);
    free_paths(&list);
    return status;
}

sluice_status slc_nccl_records_read(const char *const *paths, size_t path_count, slc_nccl_records *out)
{
    *out = (slc_nccl_records){0};
    sluice_status status = slc_nccl_records_again(paths, path_count, out);
    if (status || out->count) return status;
    if (out->refused_count) return slc_error(SLUICE_ERR_FORMAT, "%s", out->refused[0].why);
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "%s%s no records; make some: LD_PRELOAD=/PATH/libsluice_nccl.so SLUICE_SHIM_KEEP=1 PROGRAM…, or set "
        "SLUICE_SHIM_DIR to a folder for them",
        path_count ? paths[0] : "", path_count > 1 ? " and the other folders have" : " has");
}

size_t slc_nccl_records_tell_refused(const slc_nccl_records *records, size_t told)
{
    for (; told < records->refused_count; told++)
        fprintf(stderr, "sluice nccl: %s; the file is left out\n", records->refused[told].why);
    return told;
}

void slc_nccl_records_free(slc_nccl_records *records)
{
    for (size_t i = 0; i < records->count; i++) slc_nccl_file_free(&records->processes[i]);
    for (size_t i = 0; i < records->refused_count; i++) {
        free(records->refused[i].path);
        free(records->refused[i].why);
    }
    free(records->processes);
    free(records->refused);
    *records = (slc_nccl_records){0};
}
