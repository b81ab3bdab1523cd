/* The names of the numbers in a record. records_test.c covers this file. */
#include "plugins/nccl/record/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

const char *slc_nccl_operation_name(unsigned operation)
{
    static const char *const names[SLC_RECORD_OPERATION_COUNT] = {
#define NAME(name, text) [SLC_RECORD_##name] = (text),
        SLC_RECORD_OPERATIONS(NAME)
#undef NAME
    };
    return operation < COUNT_OF(names) && names[operation] ? names[operation] : "unknown";
}

const char *slc_nccl_pass_reason_name(unsigned reason)
{
    static const char *const names[SLC_RECORD_PASS_REASONS] = {
#define NAME(name, text) [SLC_RECORD_PASS_##name] = (text),
        SLC_RECORD_REASONS(NAME)
#undef NAME
    };
    return reason < SLC_RECORD_PASS_REASONS ? names[reason] : NULL;
}

/* The types of elements, in the order of NCCL's numbers. */
static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    {"int8", 1},    {"uint8", 1},   {"int32", 4},   {"uint32", 4},   {"int64", 8},      {"uint64", 8},
    {"float16", 2}, {"float32", 4}, {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1},
};

const char *slc_nccl_dtype_name(unsigned dtype)
{
    return dtype < COUNT_OF(dtypes) ? dtypes[dtype].name : dtype == 0xff ? "none" : "unknown";
}

size_t slc_nccl_dtype_bytes(unsigned dtype)
{
    return dtype < COUNT_OF(dtypes) ? dtypes[dtype].bytes : 0;
}

const char *slc_nccl_redop_name(unsigned redop)
{
    static const char *const names[] = {"sum", "prod", "max", "min", "avg"};
    if (redop < COUNT_OF(names)) return names[redop];
    return redop == SLC_RECORD_CUSTOM_REDOP ? "custom" : redop == SLC_RECORD_NO_REDOP ? "none" : "unknown";
}

const char *slc_nccl_state_name(slc_nccl_process_state state)
{
    static const char *const names[] = {
        [SLC_NCCL_RUNNING] = "running", [SLC_NCCL_STOPPED] = "stopped",     [SLC_NCCL_GONE] = "gone",
        [SLC_NCCL_ENDED] = "ended",     [SLC_NCCL_ELSEWHERE] = "elsewhere",
    };
    return names[state];
}

static bool has_part_for_each_rank(unsigned operation)
{
    return operation == SLC_RECORD_ALL_GATHER || operation == SLC_RECORD_REDUCE_SCATTER ||
           operation == SLC_RECORD_ALL_TO_ALL || operation == SLC_RECORD_GATHER || operation == SLC_RECORD_SCATTER;
}

uint64_t slc_nccl_entry_bytes(const slc_nccl_process *process, const slc_nccl_entry *entry)
{
    const uint64_t most = UINT64_C(1) << 62;
    uint64_t bytes, ranks = 1;
    bool moves = entry->operation <= SLC_RECORD_RECEIVE && entry->operation != SLC_RECORD_SPLIT;
    if (!moves) return 0;
    if (has_part_for_each_rank(entry->operation) && entry->communicator < process->header.communicators)
        ranks = (uint64_t)process->communicators[entry->communicator].size;
    if (__builtin_mul_overflow(entry->count, slc_nccl_dtype_bytes(entry->dtype), &bytes) ||
        __builtin_mul_overflow(bytes, ranks, &bytes) || bytes > most)
        return most;
    return bytes;
}

const char *slc_nccl_caller(const slc_nccl_process *process, const slc_nccl_entry *entry, char out[300])
{
    if (entry->module >= process->header.modules) return strcpy(out, "-");
    const char *path = process->modules[entry->module].path, *name = strrchr(path, '/');
    snprintf(out, 300, "%s+0x%" PRIx64, name ? name + 1 : path, entry->caller);
    return out;
}
