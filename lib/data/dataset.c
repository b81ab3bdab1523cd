/* text_form_test.c covers this file. */
#include "lib/data/dataset.h"

#include "lib/base/file/path_error.h"
#include "lib/base/status.h"
#include "lib/data/file_kind.h"
#include "lib/data/folder_entries.h"
#include "lib/data/text_form.h"
#include "lib/data/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    const slc_field_names *names;
    slc_data_type type; /* of the files so far; AUTO: there are none */
    char *first;        /* path of the first of them */
} looking;

static const char *word_for(slc_data_type type)
{
    return type == SLC_DATA_TEXT ? "text" : "records";
}

static sluice_status note_type(looking *l, const char *path, slc_data_type type)
{
    if (l->type != SLC_DATA_AUTO && l->type != type)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s holds %s and %s holds %s; give files of one kind", l->first,
                         word_for(l->type), path, word_for(type));
    if (l->type == SLC_DATA_AUTO && !(l->first = strdup(path))) return slc_error(SLUICE_ERR_MEMORY, "%s", path);
    l->type = type;
    return SLUICE_OK;
}

static sluice_status look_at(looking *l, const slc_file *file)
{
    slc_records_form form = SLC_RECORDS_NONE;
    slc_token_format tokens;
    const char *kind = NULL;
    sluice_status status = slc_file_kind(file, &kind);
    if (status || kind) return status;
    status = slc_token_format_of(file, &tokens);
    if (!status && tokens.kind != SLC_TOKENS_BYTES) return note_type(l, file->path, SLC_DATA_TEXT);
    if (!status) status = slc_records_form_of(file, l->names, &form);
    if (!status && form == SLC_RECORDS_NONE) status = slc_text_form_check(file);
    return status ? status : note_type(l, file->path, form == SLC_RECORDS_NONE ? SLC_DATA_TEXT : SLC_DATA_JSON);
}

static sluice_status look_at_path(looking *l, const char *path)
{
    slc_file file = SLC_FILE_NONE;
    sluice_status status = slc_file_open(path, &file);
    if (!status && file.bytes) status = look_at(l, &file);
    slc_file_close(&file);
    return status;
}

static sluice_status look_at_entry(void *context, const char *path, const struct stat *info)
{
    return S_ISREG(info->st_mode) && info->st_size > 0 ? look_at_path(context, path) : SLUICE_OK;
}

sluice_status slc_dataset_type(const char *const *paths, size_t count, slc_data_type type, const slc_field_names *names,
                               slc_data_type *out)
{
    looking l = {.names = names};
    sluice_status status = SLUICE_OK;
    *out = type;
    if (type != SLC_DATA_AUTO) return SLUICE_OK;
    for (size_t i = 0; !status && i < count; i++) {
        struct stat info;
        if (stat(paths[i], &info))
            status = slc_error(slc_path_status(errno), "cannot read %s: %s; name a file that every rank can read",
                               paths[i], strerror(errno));
        else
            status = S_ISDIR(info.st_mode) ? slc_folder_each(paths[i], false, look_at_entry, &l)
                                           : look_at_path(&l, paths[i]);
    }
    *out = l.type == SLC_DATA_AUTO ? SLC_DATA_TEXT : l.type;
    free(l.first);
    return status;
}

slc_records_form slc_dataset_form(slc_data_type type)
{
    return type == SLC_DATA_JSON  ? SLC_RECORDS_JSON
           : type == SLC_DATA_CSV ? SLC_RECORDS_CSV
           : type == SLC_DATA_TSV ? SLC_RECORDS_TSV
                                  : SLC_RECORDS_NONE;
}
