/* Reads one record at its place in a file. record_files_test.c covers this file. */
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/data/records/records_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16, LONGEST_LINE = 1 << 30 };

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

sluice_status slc_records_take_line(const slc_records_file *part, const uint64_t place[2], const char *text,
                                    slc_records_item *record, size_t *bytes)
{
    const uint64_t count = place[1] - place[0];
    sluice_status status = SLUICE_OK;
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
    if (text)
        memcpy(record->line, text, (size_t)count);
    else
        status = slc_file_read(&part->file, place[0], (size_t)count, record->line);
    *bytes = status ? 0 : without_end(record->line, (size_t)count);
    if (place[0] == 0 && *bytes >= 3 && !memcmp(record->line, "\xef\xbb\xbf", 3)) {
        *bytes -= 3;
        memmove(record->line, record->line + 3, *bytes);
    }
    return status;
}

uint64_t slc_records_line_number(const slc_records_file *part, uint64_t end)
{
    uint64_t line = 1;
    char *piece = malloc(PIECE);
    bool good = piece;
    for (uint64_t at = 0; good && at < end;) {
        const size_t bytes = (size_t)slc_least(PIECE, end - at);
        good = !slc_file_read(&part->file, at, bytes, piece);
        for (size_t i = 0; good && i < bytes; i++) line += piece[i] == '\n';
        at += bytes;
    }
    free(piece);
    return good ? line : 0;
}

sluice_status slc_records_read_at(const slc_records *set, const slc_records_file *part, const uint64_t place[2],
                                  const char *text, slc_records_item *record)
{
    char why[SLC_RECORDS_WHY_ROOM] = "";
    size_t bytes;
    record->text = record->pair = record->label = (slc_span){0};
    record->message_count = 0;
    sluice_status status = slc_records_take_line(part, place, text, record, &bytes);
    if (!status)
        status = part->form == SLC_RECORDS_JSON ? slc_json_line_read(set, bytes, record, why)
                                                : slc_table_row_read(set, part, bytes, record, why);
    if (!status && !*why && record->label.bytes && memchr(record->label.text, 0, record->label.bytes))
        snprintf(why, sizeof why, "\"%s\" has a NUL in it; a class is a whole number or a word",
                 set->names.of[SLC_FIELD_LABEL]);
    if (status || !*why) return status;
    return slc_error(SLUICE_ERR_FORMAT, "%s, line %" PRIu64 ": %s; mend this record or remove it", part->file.path,
                     slc_records_line_number(part, place[0]), why);
}

void slc_records_item_free(slc_records_item *record)
{
    json_decref(record->object);
    free(record->messages);
    free(record->line);
    *record = (slc_records_item){0};
}
