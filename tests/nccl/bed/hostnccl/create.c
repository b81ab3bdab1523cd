/* Communicators are made: by a unique id, for all devices of a process, and from others. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two ranks of a process on one device would wait for each other in one stream. */
static ncclResult_t refuse_shared_device(ncclComm_t comm)
{
    const char *allowed = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    const hostnccl_row *rows = comm->segment->rows, *mine = &rows[comm->rank];
    if (allowed && strcmp(allowed, "1") == 0) return ncclSuccess;
    for (int rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && rows[rank].process == mine->process && rows[rank].device == mine->device)
            return hostnccl_error(ncclInvalidUsage,
                                  "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d of one process",
                                  comm->rank, rank, comm->device);
    return ncclSuccess;
}

/* ---- Jobs ---- */

enum { GIVE_COLOUR, READ_COLOURS, JOIN, WAIT };

static ncclResult_t advance_join(hostnccl_job *job)
{
    ncclComm_t comm = job->comm;
    if (atomic_load(&comm->aborted)) return hostnccl_error(ncclInternalError, "the communicator was aborted");
    if (job->phase == JOIN) {
        ncclResult_t result = hostnccl_segment_join(job->name, job->size, &comm->segment);
        if (result) return result;
        comm->rank = job->rank;
        comm->size = job->size;
        result = hostnccl_segment_take_row(comm->segment, comm->rank, comm->device);
        if (result) return result;
        job->phase = WAIT;
    }
    if (!hostnccl_segment_complete(comm->segment)) return ncclInProgress;
    ncclResult_t result = refuse_shared_device(comm);
    if (!result) atomic_store(&comm->ready, 1);
    return result;
}

/* The name of a communicator that is made from another one: the same on all its ranks. */
static void name_child(char out[HOSTNCCL_NAME_BYTES], const char *parent, const char *kind, uint32_t number,
                       int64_t part)
{
    char text[256];
    snprintf(text, sizeof text, "%s %s %u %lld", parent, kind, number, (long long)part);
    uint64_t first = 0xcbf29ce484222325u, second = 0x9e3779b97f4a7c15u;
    for (const char *c = text; *c; c++) {
        first = (first ^ (unsigned char)*c) * 0x100000001b3u;
        second = (second + (unsigned char)*c) * 0xbf58476d1ce4e5b9u;
        second ^= second >> 29;
    }
    snprintf(out, HOSTNCCL_NAME_BYTES, "hostnccl-%016llx%016llx", (unsigned long long)first,
             (unsigned long long)second);
}

static bool all_reached(ncclComm_t parent, bool taken, uint32_t number)
{
    for (int rank = 0; rank < parent->size; rank++) {
        hostnccl_row *row = &parent->segment->rows[rank];
        if ((int32_t)(atomic_load(taken ? &row->split_taken : &row->split_given) - number) < 0) return false;
    }
    return true;
}

/* Finds this rank's new rank and size among those who gave the same colour, ordered by key and then by rank. */
static void read_colours(hostnccl_job *job)
{
    hostnccl_row *rows = job->parent->segment->rows;
    for (int rank = 0; rank < job->parent->size; rank++) {
        if (rows[rank].colour != job->colour) continue;
        job->size++;
        job->rank += rows[rank].key < job->key || (rows[rank].key == job->key && rank < job->parent->rank);
    }
}

static ncclResult_t advance_split(hostnccl_job *job)
{
    ncclComm_t parent = job->parent;
    hostnccl_row *mine = &parent->segment->rows[parent->rank];
    if (atomic_load(&parent->aborted)) return hostnccl_error(ncclInternalError, "the communicator was aborted");
    if (job->phase == GIVE_COLOUR) {
        if (!all_reached(parent, true, job->number - 1)) return ncclInProgress;
        mine->colour = job->colour;
        mine->key = job->key;
        atomic_store(&mine->split_given, job->number);
        job->phase = READ_COLOURS;
    }
    if (job->phase == READ_COLOURS) {
        if (!all_reached(parent, false, job->number)) return ncclInProgress;
        if (job->comm) {
            read_colours(job);
            name_child(job->name, parent->segment->name, "split", job->number, job->colour);
        }
        atomic_store(&mine->split_taken, job->number);
        job->phase = JOIN;
    }
    return job->comm ? advance_join(job) : ncclSuccess;
}

/* ---- Calls ---- */

static ncclResult_t read_config(const ncclConfig_t *config, bool inherited, bool *blocking)
{
    const char *setting = getenv("NCCL_COMM_BLOCKING");
    *blocking = inherited;
    if (config) {
        if (config->magic != NCCL_CONFIG_MAGIC)
            return hostnccl_error(ncclInvalidArgument,
                                  "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
        if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 && config->blocking != 1)
            return hostnccl_error(ncclInvalidArgument, "Invalid config blocking attribute value %d", config->blocking);
        if (config->blocking != NCCL_CONFIG_UNDEF_INT) *blocking = config->blocking;
    }
    if (setting) *blocking = strcmp(setting, "0") != 0;
    return ncclSuccess;
}

/* Gives the job to the group. */
static ncclResult_t add_job(const hostnccl_job *job)
{
    hostnccl_job *copy = malloc(sizeof *copy);
    if (!copy) return hostnccl_error(ncclSystemError, "no memory for a communicator");
    *copy = *job;
    if (job->parent) hostnccl_comm_hold(job->parent);
    *copy->out = copy->parent ? NULL : copy->comm; /* as NCCL does: a child's handle comes when it is done */
    hostnccl_group_add_job(copy);
    return ncclSuccess;
}

/* A name comes from a program's bytes and becomes a file's: it is believed only if it looks like one of ours. */
static bool is_name(const char *name)
{
    static const char prefix[] = "hostnccl-";
    size_t begin = sizeof prefix - 1;
    if (strncmp(name, prefix, begin) != 0) return false;
    return strspn(name + begin, "0123456789abcdef") == 32 && name[begin + 32] == 0;
}

static ncclResult_t init_rank(const char *function, ncclComm_t *out, int ranks, const ncclUniqueId *id, int rank,
                              const ncclConfig_t *config)
{
    hostnccl_job job = {.advance = advance_join, .out = out, .phase = JOIN, .rank = rank, .size = ranks};
    int devices = 0, version;
    if (!out) return hostnccl_error(ncclInvalidArgument, "%s : newcomm argument is NULL", function);
    if (ranks < 1 || rank < 0 || rank >= ranks)
        return hostnccl_error(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, ranks);
    if (ranks > HOSTNCCL_RANKS)
        return hostnccl_error(ncclInvalidUsage, "%s : %d ranks; this small NCCL has at most %d", function, ranks,
                              HOSTNCCL_RANKS);
    if (!is_name(id->internal))
        return hostnccl_error(ncclInvalidArgument, "%s : the unique id was not made by ncclGetUniqueId", function);
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error) return hostnccl_cuda_failed("cudaGetDeviceCount", error);
    ncclGetVersion(&version); /* as NCCL does, whose first line tells it */
    ncclResult_t result = hostnccl_settings_check();
    if (!result) result = read_config(config, true, &job.blocking);
    if (result) return result;
    memcpy(job.name, id->internal, HOSTNCCL_NAME_BYTES);
    job.comm = hostnccl_comm_new(job.blocking);
    if (!job.comm) return hostnccl_error(ncclSystemError, "no memory for a communicator");
    result = add_job(&job);
    if (result) hostnccl_comm_release(job.comm);
    return result;
}

/* Ends a call that is a group of its own. */
static ncclResult_t end_call(ncclResult_t result)
{
    hostnccl_group_failed(result);
    ncclResult_t ended = hostnccl_group_finish();
    return result ? result : ended;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    hostnccl_group_begin();
    return end_call(init_rank("ncclCommInitRankConfig", comm, nranks, &id, rank, config));
}
HOSTNCCL_EXPORT(ncclCommInitRankConfig);

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    hostnccl_group_begin();
    return end_call(init_rank("ncclCommInitRank", comm, nranks, &id, rank, NULL));
}
HOSTNCCL_EXPORT(ncclCommInitRank);

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int id_count, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    hostnccl_group_begin();
    ncclResult_t result = ncclSuccess;
    if (id_count < 1 || id_count > nranks)
        result = hostnccl_error(ncclInvalidArgument, "improper usage of ncclCommInitRankScalable: nId = %d, nranks=%d",
                                id_count, nranks);
    else if (!ids)
        result = hostnccl_error(ncclInvalidArgument, "ncclCommInitRankScalable : commIds argument is NULL");
    else
        result = init_rank("ncclCommInitRankScalable", comm, nranks, &ids[0], rank, config);
    return end_call(result);
}
HOSTNCCL_EXPORT(ncclCommInitRankScalable);

static ncclResult_t check_devices(int count, const int *devices)
{
    int there = 0;
    cudaError_t error = cudaGetDeviceCount(&there);
    if (error) return hostnccl_cuda_failed("cudaGetDeviceCount", error);
    if (!devices && count > there)
        return hostnccl_error(ncclInvalidUsage, "ncclCommInitAll : %d ranks for %d devices", count, there);
    for (int i = 0; devices && i < count; i++) {
        if (devices[i] < 0 || devices[i] >= there)
            return hostnccl_error(ncclInvalidUsage, "ncclCommInitAll : Invalid device %d", devices[i]);
        for (int j = 0; j < i; j++)
            if (devices[i] == devices[j])
                return hostnccl_error(ncclInvalidUsage, "ncclCommInitAll : device %d is given twice", devices[i]);
    }
    return ncclSuccess;
}

static ncclResult_t init_all(ncclComm_t *comms, int count, const int *devices)
{
    int device = 0;
    ncclUniqueId id;
    if (!comms) return hostnccl_error(ncclInvalidArgument, "ncclCommInitAll : comms argument is NULL");
    if (count < 0) return hostnccl_error(ncclInvalidArgument, "Invalid device count requested : %d", count);
    ncclResult_t result = check_devices(count, devices);
    if (!result) result = ncclGetUniqueId(&id);
    if (result) return result;
    cudaGetDevice(&device);
    for (int i = 0; i < count && !result; i++) {
        cudaSetDevice(devices ? devices[i] : i);
        result = init_rank("ncclCommInitAll", &comms[i], count, &id, i, NULL);
    }
    cudaSetDevice(device);
    return result;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    hostnccl_group_begin();
    return end_call(init_all(comms, count, devices));
}
HOSTNCCL_EXPORT(ncclCommInitAll);

static ncclResult_t split(ncclComm_t parent, int colour, int key, ncclComm_t *out, const ncclConfig_t *config)
{
    hostnccl_job job = {.advance = advance_split, .parent = parent, .out = out, .phase = GIVE_COLOUR};
    ncclResult_t result = hostnccl_comm_check(parent, "ncclCommSplit");
    if (!result && !out) result = hostnccl_error(ncclInvalidArgument, "ncclCommSplit : newcomm argument is NULL");
    if (!result && colour < NCCL_SPLIT_NOCOLOR)
        result = hostnccl_error(ncclInvalidArgument, "ncclCommSplit : color %d: it must be 0 or more", colour);
    if (!result && hostnccl_comm_state(parent) == ncclInProgress)
        result = hostnccl_error(ncclInvalidArgument, "ncclCommSplit : the communicator is not ready");
    if (!result) result = read_config(config, parent->blocking, &job.blocking);
    if (result) return result;
    if (colour != NCCL_SPLIT_NOCOLOR && !(job.comm = hostnccl_comm_new(job.blocking)))
        return hostnccl_error(ncclSystemError, "no memory for a communicator");
    if (job.comm) job.comm->device = parent->device;
    job.number = parent->splits + 1;
    job.colour = colour;
    job.key = key;
    result = add_job(&job);
    if (!result)
        parent->splits++;
    else if (job.comm)
        hostnccl_comm_release(job.comm);
    return result;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
    hostnccl_group_begin();
    return end_call(split(comm, color, key, out, config));
}
HOSTNCCL_EXPORT(ncclCommSplit);

/* The ranks that stay need not ask each other: each of them knows who goes. */
static ncclResult_t prepare_shrink(hostnccl_job *job, const int *excluded, int count)
{
    ncclComm_t parent = job->parent;
    int64_t who = count;
    job->rank = parent->rank;
    job->size = parent->size;
    for (int i = 0; i < count; i++) {
        if (excluded[i] < 0 || excluded[i] >= parent->size)
            return hostnccl_error(ncclInvalidArgument, "ncclCommShrink : excluded rank %d of %d", excluded[i],
                                  parent->size);
        if (excluded[i] == parent->rank)
            return hostnccl_error(ncclInvalidUsage, "ncclCommShrink : the excluded rank %d called it", parent->rank);
        for (int j = 0; j < i; j++)
            if (excluded[i] == excluded[j])
                return hostnccl_error(ncclInvalidArgument, "ncclCommShrink : rank %d is excluded twice", excluded[i]);
        job->size--;
        job->rank -= excluded[i] < parent->rank;
        who += ((int64_t)excluded[i] + 1) * ((int64_t)excluded[i] + 7919); /* whatever their order */
    }
    name_child(job->name, parent->segment->name, "shrink", parent->shrinks + 1, who);
    return ncclSuccess;
}

static ncclResult_t shrink(ncclComm_t parent, const int *excluded, int count, ncclComm_t *out,
                           const ncclConfig_t *config, int flags)
{
    hostnccl_job job = {.advance = advance_join, .parent = parent, .out = out, .phase = JOIN};
    ncclResult_t result = hostnccl_comm_check(parent, "ncclCommShrink");
    if (!result && (!out || !excluded))
        result = hostnccl_error(ncclInvalidArgument, "ncclCommShrink : %s argument is NULL",
                                out ? "excludeRanksList" : "newcomm");
    if (!result && (count < 1 || count >= parent->size))
        result =
            hostnccl_error(ncclInvalidArgument, "ncclCommShrink : %d of %d ranks are excluded", count, parent->size);
    if (!result && hostnccl_comm_state(parent) == ncclInProgress)
        result = hostnccl_error(ncclInvalidArgument, "ncclCommShrink : the communicator is not ready");
    if (!result) result = prepare_shrink(&job, excluded, count);
    if (!result) result = read_config(config, parent->blocking, &job.blocking);
    if (result) return result;
    if (flags & NCCL_SHRINK_ABORT) hostnccl_comm_stop(parent, true);
    job.comm = hostnccl_comm_new(job.blocking);
    if (!job.comm) return hostnccl_error(ncclSystemError, "no memory for a communicator");
    job.comm->device = parent->device;
    result = add_job(&job);
    if (!result)
        parent->shrinks++;
    else
        hostnccl_comm_release(job.comm);
    return result;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int excluded_count, ncclComm_t *out, ncclConfig_t *config,
                            int flags)
{
    hostnccl_group_begin();
    return end_call(shrink(comm, excluded, excluded_count, out, config, flags));
}
HOSTNCCL_EXPORT(ncclCommShrink);
