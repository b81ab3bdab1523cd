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

enum { PIECE = 1 << 16, LONGEST_LINE = 1 << 30 };

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

/* ---- Columns ---- */

/* Takes off line ends, and lines of white space alone, which follow a record. */
static size_t without_end(const char *line, size_t bytes)
{
    for (size_t end = bytes; end; end--) {
        const char c = line[end - 1];
        if (c == '\n' || c == '\r') bytes = end - 1;
        if (c != '\n' && c != '\r' && c != ' ' && c != '\t') break;
    }
    return bytes;
}

/* Reads the piece of a file from `place` on into the record's line, without white space around it. */
static sluice_status read_line(const slc_records_file *part, const uint64_t place[2], slc_records_item *record,
                               size_t *bytes)
{
    const uint64_t count = place[1] - place[0];
    if (count > LONGEST_LINE)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: a record of %" PRIu64 " bytes at byte %" PRIu64 "; at most %d are read", part->file.path,
                         count, place[0], LONGEST_LINE);
    if (count + 1 > record->line_room) {
        const size_t room = (size_t)slc_most(count + 1, 2 * record->line_room);
        char *line = realloc(record->line, room);
        if (!line) return slc_error(SLUICE_ERR_MEMORY, "a record of %" PRIu64 " bytes", count);
        record->line = line;
        record->line_room = room;
    }
    sluice_status status = slc_file_read(&part->file, place[0], (size_t)count, record->line);
    *bytes = (size_t)count;
    *bytes = without_end(record->line, *bytes);
    if (place[0] == 0 && *bytes >= 3 && !memcmp(record->line, "\xef\xbb\xbf", 3)) {
        *bytes -= 3;
        memmove(record->line, record->line + 3, *bytes);
    }
    return status;
}

/* Finds the columns in the first line, which ends before the first record begins. */
static sluice_status find_columns(slc_records *set, slc_records_file *part)
{
    slc_records_item record = {0};
    slc_span rest, name;
    uint64_t place[2] = {0, part->file.bytes}, after[2];
    size_t bytes;
    bool more = true;
    sluice_status status = SLUICE_OK;
    if (part->index.count) {
        status = slc_records_index_find(&part->index, &part->file, 0, after);
        place[1] = after[0];
    }
    if (!status) status = read_line(part, place, &record, &bytes);
    for (int f = 0; f < SLC_FIELDS; f++) part->column[f] = -1;
    rest = (slc_span){record.line, status ? 0 : bytes};
    while (!status && slc_table_next_field(part->form, &rest, &more, record.line, &name)) {
        for (int f = 0; f < SLC_FIELD_MESSAGES; f++)
            if (slc_span_is(name, set->names.of[f])) part->column[f] = part->columns;
        part->columns++;
    }
    slc_records_item_free(&record);
    return status;
}

/* ---- Opening ---- */

static sluice_status make_index(opening *o, slc_records_file *part, slc_index_making *making)
{
    const bool table = part->form != SLC_RECORDS_JSON;
    sluice_status status = slc_records_index_make(part, table, making, &part->index);
    if (!status && table) status = find_columns(o->set, part);
    if (status) return status;
    part->first = o->set->records;
    o->set->records += part->index.count;
    return slc_file_hash_pieces(&part->file, &o->set->fingerprint);
}

static void say_fields(const slc_records *set, char *out, size_t room)
{
    size_t used = 0;
    *out = 0;
    for (int f = 0; f < SLC_FIELDS; f++)
        used +=
            (size_t)snprintf(out + used, used < room ? room - used : 0, "%s\"%s\"", f ? ", " : "", set->names.of[f]);
}

/* Finds the fields of the set: the first record says which fields all records have. */
static sluice_status find_fields(slc_records *set)
{
    slc_records_item record = {0};
    char why[SLC_RECORDS_WHY_ROOM] = "", place[SLC_RECORDS_PLACE_ROOM], names[5 * SLC_FIELD_ROOM];
    const slc_records_file *part = &set->files[0];
    uint64_t at[2];
    size_t bytes;
    while (!part->index.count) part++;
    sluice_status status = slc_records_index_find(&part->index, &part->file, 0, at);
    if (!status) status = read_line(part, at, &record, &bytes);
    if (!status && part->form == SLC_RECORDS_JSON) status = slc_json_line_read(set, bytes, &record, why);
    slc_records_place(set, 0, place);
    if (!status && *why) status = slc_error(SLUICE_ERR_FORMAT, "%s: %s", place, why);
    bool any = false;
    for (int f = 0; !status && f < SLC_FIELDS; f++) {
        const json_t *value = json_object_get(record.object, set->names.of[f]);
        set->have[f] = part->form == SLC_RECORDS_JSON ? value && !json_is_null(value)
                                                      : f < SLC_FIELD_MESSAGES && part->column[f] >= 0;
        any |= set->have[f];
        if (!set->have[f] && set->names.given[f])
            status = slc_error(SLUICE_ERR_ARGUMENT, "--fields %s=%s: %s has no field \"%s\"",
                               slc_field_name((slc_field)f), set->names.of[f], place, set->names.of[f]);
    }
    say_fields(set, names, sizeof names);
    if (!status && !any)
        status = slc_error(SLUICE_ERR_FORMAT,
                           "%s: has none of the fields %s; say what its fields are called: --fields text=NAME", place,
                           names);
    slc_records_item_free(&record);
    return status;
}

static sluice_status open_set(opening *o, const char *const *paths, size_t count)
{
    slc_records *set = o->set;
    slc_index_making making = {.how = o->how, .note = &set->note};
    sluice_status status = SLUICE_OK;
    set->names = o->how->names;
    set->fingerprint = slc_fnv(SLC_FNV_START, set->names.of, sizeof set->names.of);
    for (size_t i = 0; !status && i < count; i++) status = add_path(o, paths[i]);
    for (size_t i = 0; i < set->count; i++) making.bytes += set->files[i].file.bytes;
    for (size_t i = 0; !status && i < set->count; i++) status = make_index(o, &set->files[i], &making);
    if (!status && !set->records)
        status = slc_error(SLUICE_ERR_ARGUMENT, "%s%s holds no record", set->files[0].file.path,
                           set->count > 1 ? " and the other files" : "");
    return status ? status : find_fields(set);
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

/* Lines are counted only for a message. A file that cannot be read has its byte. */
void slc_records_place(const slc_records *set, uint64_t index, char out[SLC_RECORDS_PLACE_ROOM])
{
    const slc_records_file *part = file_of(set, index);
    uint64_t place[2], line = 1;
    char *piece = malloc(PIECE);
    bool good = piece && !slc_records_index_find(&part->index, &part->file, index - part->first, place);
    for (uint64_t at = 0; good && at < place[0];) {
        const size_t bytes = (size_t)slc_least(PIECE, place[0] - at);
        good = !slc_file_read(&part->file, at, bytes, piece);
        for (size_t i = 0; good && i < bytes; i++) line += piece[i] == '\n';
        at += bytes;
    }
    free(piece);
    if (good)
        snprintf(out, SLC_RECORDS_PLACE_ROOM, "%s, line %" PRIu64, part->file.path, line);
    else
        snprintf(out, SLC_RECORDS_PLACE_ROOM, "%s, record %" PRIu64, part->file.path, index - part->first + 1);
}

sluice_status slc_records_read(const slc_records *set, uint64_t index, slc_records_item *record)
{
    const slc_records_file *part = file_of(set, index);
    char why[SLC_RECORDS_WHY_ROOM] = "", where[SLC_RECORDS_PLACE_ROOM];
    uint64_t place[2];
    size_t bytes;
    record->text = record->pair = record->label = (slc_span){0};
    record->message_count = 0;
    sluice_status status = slc_records_index_find(&part->index, &part->file, index - part->first, place);
    if (!status) status = read_line(part, place, record, &bytes);
    if (!status)
        status = part->form == SLC_RECORDS_JSON ? slc_json_line_read(set, bytes, record, why)
                                                : slc_table_row_read(set, part, bytes, record, why);
    if (status || !*why) return status;
    slc_records_place(set, index, where);
    return slc_error(SLUICE_ERR_FORMAT, "%s: %s", where, why);
}

void slc_records_item_free(slc_records_item *record)
{
    json_decref(record->object);
    free(record->messages);
    free(record->line);
    *record = (slc_records_item){0};
}
