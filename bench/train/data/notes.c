/* Lines that tell the user something about the data. A source adds them while it is opened.
 * labels_test.c covers this file. */
#include "bench/train/data/data.h"
#include "lib/base/status.h"
#include "bench/train/data/data_parts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

sluice_status slc_training_data_add_note(slc_training_data *data, const char *format, ...)
{
    va_list values;
    char *line;
    assert(data->note_count < SLC_TRAINING_NOTES_MAX);
    va_start(values, format);
    const int wrote = vasprintf(&line, format, values);
    va_end(values);
    if (wrote < 0) return slc_error(SLUICE_ERR_MEMORY, "a line on the data");
    data->notes[data->note_count++] = line;
    return SLUICE_OK;
}

const char *slc_training_data_note(const slc_training_data *data, uint32_t index)
{
    return index < data->note_count ? data->notes[index] : NULL;
}
