/* Lines that tell the user something about the data. A source adds them while it is opened.
 * labels_test.c covers this file. */
#include "bench/train/data/data.h"
#include "lib/base/status.h"
#include "bench/train/data/data_parts.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

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

/* True for names such as "test.jsonl" and "test-00000-of-00002.jsonl". */
static bool is_part(const char *name, const char *part)
{
    const size_t length = strlen(part);
    return !strncasecmp(name, part, length) && name[length] && strchr(".-_", name[length]);
}

/* Finds the first file, by its name, of each part that people give a folder of data. */
static void find_parts(const char *folder, char train[NAME_MAX + 1], char held_out[NAME_MAX + 1])
{
    static const char *const names[] = {"val", "valid", "validation", "test", "dev", "eval"};
    struct dirent **entries;
    const int count = scandir(folder, &entries, NULL, alphasort);
    *train = *held_out = 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (!*train && is_part(name, "train")) snprintf(train, NAME_MAX + 1, "%s", name);
        for (size_t n = 0; n < sizeof names / sizeof *names && !*held_out; n++)
            if (is_part(name, names[n])) snprintf(held_out, NAME_MAX + 1, "%s", name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

sluice_status slc_training_data_note_parts(slc_training_data *data, const slc_training_options *o)
{
    struct stat info;
    char train[NAME_MAX + 1], held_out[NAME_MAX + 1];
    if (o->data_count != 1 || o->eval_data_count || stat(o->data[0], &info) || !S_ISDIR(info.st_mode)) return SLUICE_OK;
    const char *folder = o->data[0], *between = folder[strlen(folder) - 1] == '/' ? "" : "/";
    find_parts(folder, train, held_out);
    if (!*train || !*held_out) return SLUICE_OK;
    return slc_training_data_add_note(data,
                                      "--data %s: all files of the folder are trained on, %s too; to hold it out give "
                                      "--data %s%s%s --eval-data %s%s%s",
                                      folder, held_out, folder, between, train, folder, between, held_out);
}

const char *slc_training_data_note(const slc_training_data *data, uint32_t index)
{
    return index < data->note_count ? data->notes[index] : NULL;
}
