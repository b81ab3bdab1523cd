/* Records made up for tests. */
#include "tests/support/nccl_record/made_records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *needed(void *pointer)
{
    if (!pointer) {
        perror("made records");
        abort();
    }
    return pointer;
}

made_record made_record_new(const char *host, int64_t pid, uint32_t entry_count, bool timed)
{
    uint64_t modules_at = SLC_RECORD_HEADER_BYTES + SLC_RECORD_COMMUNICATORS * sizeof(slc_record_communicator);
    uint64_t entries_at = modules_at + SLC_RECORD_MODULES * sizeof(slc_record_module);
    uint64_t times_at = entries_at + entry_count * sizeof(slc_record_entry);
    uint64_t bytes = times_at + (timed ? entry_count * sizeof(slc_record_time) : 0);
    unsigned char *file = needed(calloc(1, bytes));
    made_record r = {.file = file,
                     .header = (slc_record_header *)file,
                     .communicators = (slc_record_communicator *)(file + SLC_RECORD_HEADER_BYTES),
                     .modules = (slc_record_module *)(file + modules_at),
                     .entries = (slc_record_entry *)(file + entries_at),
                     .times = timed ? (slc_record_time *)(file + times_at) : NULL};
    *r.header = (slc_record_header){.magic = SLC_RECORD_MAGIC,
                                    .version = SLC_RECORD_VERSION,
                                    .header_bytes = SLC_RECORD_HEADER_BYTES,
                                    .entry_bytes = sizeof(slc_record_entry),
                                    .entry_count = entry_count,
                                    .communicators_at = SLC_RECORD_HEADER_BYTES,
                                    .modules_at = modules_at,
                                    .entries_at = entries_at,
                                    .times_at = timed ? times_at : 0,
                                    .file_bytes = bytes,
                                    .pid = pid,
                                    .started = 1,
                                    .first_call_ns = 1000000,
                                    .realtime_minus_monotonic_ns = INT64_C(1700000000000000000),
                                    .state = SLC_RECORD_ENDED,
                                    .nccl_version = 22809,
                                    .launch_rank = -1,
                                    .launch_size = -1};
    snprintf(r.header->host, sizeof r.header->host, "%s", host);
    snprintf(r.header->command, sizeof r.header->command, "train --steps 10");
    FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!boot || fscanf(boot, "%39s", r.header->boot_id) != 1) needed(NULL);
    fclose(boot);
    return r;
}

void made_record_free(made_record *record)
{
    free(record->file);
    *record = (made_record){0};
}

unsigned made_communicator(made_record *record, uint64_t key, int rank, int size)
{
    unsigned row = record->header->communicators++;
    record->communicators[row] = (slc_record_communicator){
        .state = SLC_RECORD_ROW_READY, .rank = rank, .size = size, .key = key, .hash = key, .device = rank};
    return row;
}

unsigned made_module(made_record *record, const char *path)
{
    unsigned row = record->header->modules++;
    snprintf(record->modules[row].path, sizeof record->modules[row].path, "%s", path);
    return row;
}

uint64_t made_entry(made_record *record, const made_call *call)
{
    uint64_t index = record->header->entries++, number = 0;
    if (call->communicator != SLC_RECORD_NO_COMMUNICATOR) {
        slc_record_communicator *row = &record->communicators[call->communicator];
        if (call->operation <= SLC_RECORD_RECEIVE) {
            row->calls++;
            row->returned++;
        }
        if (call->operation <= SLC_RECORD_SPLIT) {
            row->collectives++;
            bool split = call->operation == SLC_RECORD_SPLIT;
            row->hash = row->hash * SLC_RECORD_HASH_STEP + slc_record_hash_term(call->operation,
                                                                                split ? 0 : call->count, call->dtype,
                                                                                call->redop, split ? -1 : call->peer);
        }
        number = row->calls;
    }
    record->entries[index % record->header->entry_count] = (slc_record_entry){
        .sequence = (uint32_t)(index + 1),
        .number = (uint32_t)number,
        .time_ns = call->time_ns,
        .count = call->count,
        .send_communicator = call->send | (uint64_t)call->communicator << 48,
        .receive_thread = call->receive | (uint64_t)call->thread << 48,
        .stream_operation_dtype = call->stream | (uint64_t)call->operation << 48 | (uint64_t)call->dtype << 56,
        .caller_module_redop = call->caller | (uint64_t)call->module << 48 | (uint64_t)call->redop << 56,
        .peer = call->peer,
        .group_flags = call->group | (uint32_t)call->flags << 24,
    };
    return index;
}

void made_time(made_record *record, uint64_t index, int64_t begin_ns, int64_t end_ns)
{
    record->times[index % record->header->entry_count] =
        (slc_record_time){.sequence = (uint32_t)(index + 1), .begin_ns = begin_ns, .end_ns = end_ns};
}

void made_record_write(const made_record *record, const char *path, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (!bytes) bytes = record->header->file_bytes;
    if (fd < 0 || write(fd, record->file, bytes) != (ssize_t)bytes || close(fd)) needed(NULL);
}
