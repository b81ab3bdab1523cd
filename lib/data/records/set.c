/* A set of records: its files, and reading one record. record_files_test.c covers this file. */
#include "lib/data/records/records_parts.h"

#include "lib/base/array.h"
#include "lib/base/bisect.h"
#include "lib/base/file/path_error.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/data/folder_entries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Files ---- */

typedef struct {
    slc_records *set;
    const slc_records_how *how;
} opening;

static sluice_status add_file(opening *o, const char *path)
{
    slc_records *set = o->set;
    if (!SLC_ROOM_FOR_ONE(set->files, set->count)) return slc_error(SLUICE_ERR_MEMORY, "list of files");
    slc_records_file *part = &set->files[set->count++];
    *part = (slc_records_file){.file = SLC_FILE_NONE, .index = {.file = SLC_FILE_NONE}, .form = o->how->form};
    sluice_status status = slc_file_open(path, &part->file);
    if (!status && !part->file.bytes)
        status = slc_error(SLUICE_ERR_ARGUMENT, "%s is empty; name a file with records in it", path);
    if (!status && part->form == SLC_RECORDS_NONE) status = slc_records_form_of(&part->file, &set->names, &part->form);
    if (!status && part->form == SLC_RECORDS_NONE)
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "%s holds neither JSON lines nor a table, and other files of --data do; give files of one "
                           "kind",
                           path);
    return status;
}

static sluice_status add_regular(void *context, const char *path, const struct stat *info)
{
    return S_ISREG(info->st_mode) && info->st_size > 0 ? add_file(context, path) : SLUICE_OK;
}

static sluice_status add_path(opening *o, const char *path)
{
    struct stat info;
    const size_t before = o->set->count;
    if (stat(path, &info))
        return slc_error(slc_path_status(errno), "cannot read %s: %s; name a file that every rank can read", path,
                         strerror(errno));
    if (!S_ISDIR(info.st_mode)) return add_file(o, path);
    sluice_status status = slc_folder_each(path, false, add_regular, o);
    if (status || o->set->count > before) return status;
    return slc_error(SLUICE_ERR_ARGUMENT, "folder %s holds no file with records in it", path);
}

/* ---- The first record ---- */

/* The first record of a file; *exists is false where it has none. A table's header comes before it, and says which
 * columns there are. */
static sluice_status find_first(slc_records *set, slc_records_file *part, uint64_t place[2], bool *exists)
{
    const bool table = part->form != SLC_RECORDS_JSON;
    uint64_t places[SLC_INDEX_BEGINNINGS], count;
    slc_records_item record = {0};
    slc_span rest, name;
    size_t bytes = 0;
    bool more = true;
    sluice_status status = slc_records_index_begin(part, places, &count);
    *exists = !status && count > table;
    place[0] = places[table];
    place[1] = places[table + 1];
    for (int f = 0; f < SLC_FIELDS; f++) part->column[f] = -1;
    if (!status && table) status = slc_records_take_line(part, (const uint64_t[]){0, places[1]}, NULL, &record, &bytes);
    rest = (slc_span){record.line, bytes};
    while (!status && table && slc_table_next_field(part->form, &rest, &more, record.line, &name)) {
        for (int f = 0; f < SLC_FIELD_MESSAGES; f++)
            if (slc_span_is(name, set->names.of[f])) part->column[f] = part->columns;
        part->columns++;
    }
    slc_records_item_free(&record);
    return status;
}

/* ---- Opening ---- */

static void say_fields(const slc_records *set, char *out, size_t room)
{
    size_t used = 0;
    *out = 0;
    for (int f = 0; f < SLC_FIELDS; f++)
        used +=
            (size_t)snprintf(out + used, used < room ? room - used : 0, "%s\"%s\"", f ? ", " : "", set->names.of[f]);
}

/* Finds which fields the record at this place has. A first record that has no known field is refused. */
static sluice_status find_fields(slc_records *set, const slc_records_file *part, const uint64_t place[2])
{
    const bool table = part->form != SLC_RECORDS_JSON;
    char names[5 * SLC_FIELD_ROOM];
    slc_records_item record = {0};
    bool any = false;
    sluice_status status = slc_records_read_at(set, part, place, NULL, &record);
    const uint64_t line = status ? 0 : slc_records_line_number(part, place[0]);
    for (int f = 0; !status && f < SLC_FIELDS; f++) {
        const json_t *value = json_object_get(record.object, set->names.of[f]);
        set->have[f] = table ? f < SLC_FIELD_MESSAGES && part->column[f] >= 0 : value && !json_is_null(value);
        any |= set->have[f];
        if (!set->have[f] && set->names.given[f])
            status = slc_error(SLUICE_ERR_ARGUMENT, "--fields %s=%s: %s, line %" PRIu64 ": has no field \"%s\"",
                               slc_field_name((slc_field)f), set->names.of[f], part->file.path, line, set->names.of[f]);
    }
    say_fields(set, names, sizeof names);
    if (!status && !any)
        status = slc_error(SLUICE_ERR_FORMAT,
                           "%s, line %" PRIu64
                           ": has none of the fields %s; say what its fields are called: --fields text=NAME",
                           part->file.path, line, names);
    slc_records_item_free(&record);
    return status;
}

/* Finds the first record of the whole set, whose fields all other records must have. */
static sluice_status look_at_first(slc_records *set)
{
    bool found = false;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < set->count; i++) {
        uint64_t place[2];
        bool exists;
        status = find_first(set, &set->files[i], place, &exists);
        if (!status && exists && !found) status = find_fields(set, &set->files[i], place);
        found = found || exists;
    }
    if (status || found) return status;
    return slc_error(SLUICE_ERR_ARGUMENT, "%s%s holds no record", set->files[0].file.path,
                     set->count > 1 ? " and the other files" : "");
}

static sluice_status make_index(slc_records *set, slc_records_file *part, slc_index_making *making)
{
    sluice_status status = slc_records_index_make(part, part->form != SLC_RECORDS_JSON, making, &part->index);
    if (status) return status;
    part->first = set->records;
    set->records += part->index.count;
    return slc_file_hash_pieces(&part->file, &set->fingerprint);
}

static sluice_status open_set(opening *o, const char *const *paths, size_t count)
{
    slc_records *set = o->set;
    slc_index_making making = {.set = set, .how = o->how, .note = &set->note};
    sluice_status status = SLUICE_OK;
    set->names = o->how->names;
    set->fingerprint = slc_fnv(SLC_FNV_START, set->names.of, sizeof set->names.of);
    for (size_t i = 0; !status && i < count; i++) status = add_path(o, paths[i]);
    for (size_t i = 0; i < set->count; i++) making.bytes += set->files[i].file.bytes;
    if (!status) status = look_at_first(set);
    for (size_t i = 0; !status && i < set->count; i++) status = make_index(set, &set->files[i], &making);
    return status;
}

sluice_status slc_records_open(const char *const *paths, size_t count, const slc_records_how *how, slc_records **out)
{
    opening o = {.set = calloc(1, sizeof *o.set), .how = how};
    if (!o.set) return slc_error(SLUICE_ERR_MEMORY, "records");
    sluice_status status = open_set(&o, paths, count);
    if (status) {
        slc_records_close(o.set);
        return status;
    }
    *out = o.set;
    return SLUICE_OK;
}

void slc_records_close(slc_records *set)
{
    if (!set) return;
    for (size_t i = 0; i < set->count; i++) {
        slc_file_close(&set->files[i].file);
        slc_records_index_free(&set->files[i].index);
    }
    free(set->files);
    free(set->note);
    free(set);
}

uint64_t slc_records_count(const slc_records *set)
{
    return set->records;
}

uint64_t slc_records_files(const slc_records *set)
{
    return set->count;
}

uint64_t slc_records_bytes(const slc_records *set)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < set->count; i++) bytes += set->files[i].file.bytes;
    return bytes;
}

const char *slc_records_path(const slc_records *set)
{
    return set->files[0].file.path;
}

bool slc_records_have(const slc_records *set, slc_field field)
{
    return set->have[field];
}

uint64_t slc_records_first(const slc_records *set, slc_records_oddity oddity)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->files[i].index.odd[oddity]) return set->files[i].first + set->files[i].index.odd[oddity] - 1;
    return UINT64_MAX;
}

const char *slc_records_name(const slc_records *set, slc_field field)
{
    return set->names.of[field];
}

const char *slc_records_note(const slc_records *set)
{
    return set->note;
}

uint64_t slc_records_fingerprint(const slc_records *set)
{
    return set->fingerprint;
}

sluice_status slc_records_content(const slc_records *set, uint64_t *hash)
{
    sluice_status status = SLUICE_OK;
    *hash = slc_fnv(SLC_FNV_START, set->names.of, sizeof set->names.of);
    for (size_t i = 0; !status && i < set->count; i++) status = slc_file_hash(&set->files[i].file, hash);
    return status;
}

/* ---- Reading ---- */

static const slc_records_file *file_of(const slc_records *set, uint64_t index)
{
    SLC_BISECT(size_t, next, 1, set->count, set->files[next].first <= index);
    return &set->files[next - 1];
}

/* Lines are counted only for this message. If the file cannot be read, the record's number stands in their place. */
void slc_records_place(const slc_records *set, uint64_t index, char out[SLC_RECORDS_PLACE_ROOM])
{
    const slc_records_file *part = file_of(set, index);
    uint64_t place[2], line = 0;
    if (!slc_records_index_find(&part->index, &part->file, index - part->first, place))
        line = slc_records_line_number(part, place[0]);
    if (line)
        snprintf(out, SLC_RECORDS_PLACE_ROOM, "%s, line %" PRIu64, part->file.path, line);
    else
        snprintf(out, SLC_RECORDS_PLACE_ROOM, "%s, record %" PRIu64, part->file.path, index - part->first + 1);
}

sluice_status slc_records_read(const slc_records *set, uint64_t index, slc_records_item *record)
{
    const slc_records_file *part = file_of(set, index);
    uint64_t place[2];
    sluice_status status = slc_records_index_find(&part->index, &part->file, index - part->first, place);
    return status ? status : slc_records_read_at(set, part, place, NULL, record);
}
