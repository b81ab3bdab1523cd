/* Any file must be opened as records, or be refused with a line, in every form. What is opened can be read to its last
 * record, each label is one of the classes, and a set that is opened twice has the same records. */
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
        if (slc_records_read(records, i, &item)) abort(); /* it was checked when the set was opened */
        sum = 31 * (31 * (31 * sum + sum_of(item.text)) + sum_of(item.pair)) + sum_of(item.label);
        for (size_t m = 0; m < item.message_count; m++)
            sum = 31 * (31 * sum + sum_of(item.messages[m].role)) + sum_of(item.messages[m].content);
    }
    slc_classes classes = {0};
    if (slc_records_have(records, SLC_FIELD_LABEL) && !slc_classes_find(records, &classes))
        for (uint64_t i = 0; i < slc_records_count(records) && i < RECORDS_MOST; i++)
            if (slc_records_read(records, i, &item) || slc_classes_number(&classes, item.label) < 0) abort();
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
