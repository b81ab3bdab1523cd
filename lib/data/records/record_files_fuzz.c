/* Any file must be read as records, or be refused with a line, in every form; texts lie inside of what was read, and a
 * set that is opened twice has the same records. */
#include "tests/support/base/file_fuzz.h"
#include "lib/data/records/classes.h"
#include "lib/data/records/records.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS_MOST = 200 };

static uint64_t sum_of(slc_span span)
{
    uint64_t sum = span.bytes;
    for (size_t i = 0; i < span.bytes; i++) sum = 31 * sum + (unsigned char)span.text[i];
    return sum;
}

/* Returns a hash of all records; 0: the file is refused. */
static uint64_t read_all(const char *path, slc_records_form form)
{
    slc_records_how how = {.form = form};
    slc_records *records = NULL;
    slc_records_item item = {0};
    uint64_t sum = 1;
    slc_field_names_init(&how.names);
    if (slc_records_open(&path, 1, &how, &records)) {
        if (!*sluice_last_error() || records) abort();
        return 0;
    }
    for (uint64_t i = 0; i < slc_records_count(records) && i < RECORDS_MOST; i++) {
        const sluice_status status = slc_records_read(records, i, &item);
        if (status && status != SLUICE_ERR_FORMAT) abort();
        if (status) continue;
        sum = 31 * (31 * (31 * sum + sum_of(item.text)) + sum_of(item.pair)) + sum_of(item.label);
        for (size_t m = 0; m < item.message_count; m++)
            sum = 31 * (31 * sum + sum_of(item.messages[m].role)) + sum_of(item.messages[m].content);
    }
    slc_classes classes = {0};
    if (slc_records_have(records, SLC_FIELD_LABEL) && !slc_classes_find(records, NULL, NULL, &classes))
        for (uint32_t i = 0; i + 1 < classes.count; i++)
            if (!classes.names[i] || !classes.names[i + 1]) abort();
    slc_classes_free(&classes);
    slc_records_item_free(&item);
    slc_records_close(records);
    return sum | 1;
}

/* The first byte says the form; the rest is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    int fd;
    const char *path = fuzz_file(&fd);
    const slc_records_form form = (slc_records_form)(data[0] % 4);
    fuzz_put(fd, data + 1, size - 1);
    if (read_all(path, form) != read_all(path, form)) abort();
    return 0;
}
