/* Any file must be read or refused, and all that is said of records must stand what they hold. The input is put over a
 * whole record of two ranks; without that hardly any would come past the header. */
#include "bench/nccl/summary/summary.h"
#include "bench/nccl/summary/timeline.h"
#include "tests/support/base/file_fuzz.h"

#include <stddef.h>
#include <string.h>

enum { ENTRIES = 64, MOST_BYTES = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The layout of a record with times, filled with calls. Returns its bytes. */
static size_t make_record(unsigned char *file)
{
    slc_record_header *h = (slc_record_header *)file;
    uint64_t modules_at = SLC_RECORD_HEADER_BYTES + SLC_RECORD_COMMUNICATORS * sizeof(slc_record_communicator);
    uint64_t entries_at = modules_at + SLC_RECORD_MODULES * sizeof(slc_record_module);
    uint64_t times_at = entries_at + ENTRIES * sizeof(slc_record_entry);
    *h = (slc_record_header){.magic = SLC_RECORD_MAGIC,
                             .version = SLC_RECORD_VERSION,
                             .header_bytes = SLC_RECORD_HEADER_BYTES,
                             .entry_bytes = sizeof(slc_record_entry),
                             .entry_count = ENTRIES,
                             .communicators_at = SLC_RECORD_HEADER_BYTES,
                             .modules_at = modules_at,
                             .entries_at = entries_at,
                             .times_at = times_at,
                             .file_bytes = times_at + ENTRIES * sizeof(slc_record_time),
                             .pid = 1,
                             .entries = ENTRIES + 10,
                             .state = SLC_RECORD_RUNNING,
                             .communicators = 2,
                             .modules = 1};
    slc_record_communicator *rows = (slc_record_communicator *)(file + SLC_RECORD_HEADER_BYTES);
    for (int i = 0; i < 2; i++)
        rows[i] = (slc_record_communicator){
            .state = SLC_RECORD_ROW_READY, .rank = i, .size = 2, .device = i, .key = 5, .calls = 40, .hash = 5};
    slc_record_entry *entries = (slc_record_entry *)(file + entries_at);
    slc_record_time *times = (slc_record_time *)(file + times_at);
    for (uint32_t i = 10; i < ENTRIES + 10; i++) {
        uint64_t operation = 1 + i % 5;
        entries[i % ENTRIES] = (slc_record_entry){.sequence = i + 1,
                                                  .number = i / 2,
                                                  .time_ns = 1000 * i,
                                                  .count = 8,
                                                  .send_communicator = (uint64_t)(i % 2) << 48,
                                                  .stream_operation_dtype = operation << 48 | (uint64_t)7 << 56,
                                                  .peer = -1,
                                                  .group_flags = i / 8};
        times[i % ENTRIES] = (slc_record_time){.sequence = i + 1, .begin_ns = 1000 * i, .end_ns = 1000 * i + 500};
    }
    return h->file_bytes;
}

/* The input is a row of (place: 3 bytes, length: 1 byte, bytes); a place of 0xffffff cuts the file. */
static size_t damage(unsigned char *file, size_t bytes, const uint8_t *data, size_t size)
{
    while (size > 4) {
        size_t place = data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16, length = data[3];
        if (place == 0xffffff) return bytes * length / 256;
        data += 4;
        size -= 4;
        if (length > size) length = size;
        if (place + length <= bytes) memcpy(file + place, data, length);
        data += length;
        size -= length;
    }
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char file[MOST_BYTES] __attribute__((aligned(8)));
    static FILE *nowhere;
    int fd;
    memset(file, 0, sizeof file);
    size_t bytes = damage(file, make_record(file), data, size);
    const char *path = fuzz_file(&fd);
    fuzz_put(fd, file, bytes);
    if (!nowhere && !(nowhere = fopen("/dev/null", "we"))) abort();
    slc_nccl_records records;
    slc_nccl_summary summary;
    if (!slc_nccl_records_read(&path, 1, &records) && !slc_nccl_records_again(&path, 1, &records)) {
        if (!slc_nccl_summarize(&records, &summary)) {
            slc_nccl_summary_print(&summary, nowhere);
            json_t *json = slc_nccl_summary_json(&summary);
            if (!json) abort();
            json_decref(json);
        }
        slc_nccl_summary_free(&summary);
        slc_nccl_timeline_write(&records, "/dev/null");
    }
    slc_nccl_records_free(&records);
    return 0;
}
