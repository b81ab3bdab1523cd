/* One row of a table. record_files_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/base/text/utf8.h"
#include "lib/data/records/records_parts.h"

#include <stdio.h>
#include <string.h>

/* Takes a field in quotes, which is made shorter in place, from its beginning on. */
static slc_span quoted(slc_span *rest, char *row)
{
    char *to = row + (rest->text - row), *begin = to;
    const char *from = rest->text + 1, *end = rest->text + rest->bytes;
    for (; from < end; from++) {
        if (*from == '"' && (from + 1 == end || from[1] != '"')) break;
        if (*from == '"') from++;
        *to++ = *from;
    }
    if (from < end) from++; /* the closing quote */
    const slc_span out = {begin, (size_t)(to - begin)};
    *rest = (slc_span){from, (size_t)(end - from)};
    return out;
}

bool slc_table_next_field(slc_records_form form, slc_span *rest, bool *more, char *row, slc_span *out)
{
    const char between = form == SLC_RECORDS_CSV ? ',' : '\t';
    if (!*more) return false;
    const bool quotes = form == SLC_RECORDS_CSV && rest->bytes && *rest->text == '"';
    if (quotes) *out = quoted(rest, row);
    const char *end = rest->bytes ? memchr(rest->text, between, rest->bytes) : NULL;
    const size_t bytes = end ? (size_t)(end - rest->text) : rest->bytes;
    if (!quotes) *out = (slc_span){rest->text, bytes};
    *more = end != NULL;
    *rest = (slc_span){rest->text + bytes + *more, rest->bytes - bytes - *more};
    return true;
}

sluice_status slc_table_row_read(const slc_records *set, const slc_records_file *part, size_t bytes,
                                 slc_records_item *record, char why[SLC_RECORDS_WHY_ROOM])
{
    slc_span rest = {record->line, bytes}, field;
    slc_span *const to[SLC_FIELDS] = {&record->text, &record->pair, &record->label};
    bool more = true;
    int column = 0;
    const size_t wrong = slc_utf8_valid(record->line, bytes);
    for (; slc_table_next_field(part->form, &rest, &more, record->line, &field); column++)
        for (int f = 0; f < SLC_FIELD_MESSAGES; f++)
            if (part->column[f] == column && set->have[f]) *to[f] = field;
    if (wrong < bytes)
        snprintf(why, SLC_RECORDS_WHY_ROOM,
                 "is no UTF-8 at byte %zu; if the file is in Latin-1, iconv -f LATIN1 -t UTF-8 converts it", wrong + 1);
    if (column != part->columns)
        snprintf(why, SLC_RECORDS_WHY_ROOM, "has %d fields; the first line names %d columns", column, part->columns);
    return SLUICE_OK;
}
