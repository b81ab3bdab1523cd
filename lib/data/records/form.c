/* Finds the form of a file by its first lines. Prose is never taken for a dataset: JSON must begin with an object that
 * has a key, and a table must have a first line of names, where one is the name of a field or the rows have as many
 * fields as that line. The file's own name counts only if it says that the file is a dataset, and nothing in it can be
 * read as one: such a file is refused. record_files_test.c covers this file. */
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/base/text/shell_word.h"
#include "lib/data/records/records_parts.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD = 1 << 16, LONGEST_FIRST = 1 << 26, COLUMNS_SHOWN = 12, LIKE_ROWS = 4, NAME_LIKE = 40 };

/* The beginning of a file. */
typedef struct {
    const slc_file *file;
    char *text;
    size_t bytes; /* that are there; the file may have more */
    size_t begin; /* of what is no white space */
} head;

/* Reads the beginning of a file: at least its first line, if that is not longer than any record. */
static sluice_status take_head(const slc_file *file, head *out)
{
    sluice_status status = SLUICE_OK;
    *out = (head){.file = file};
    for (uint64_t want = HEAD; !status; want *= 4) {
        const size_t bytes = (size_t)slc_least(want, file->bytes);
        char *text = realloc(out->text, bytes + 1);
        if (!text) return slc_error(SLUICE_ERR_MEMORY, "the beginning of %s", file->path);
        out->text = text;
        status = slc_file_read(file, 0, bytes, text);
        text[bytes] = 0;
        out->bytes = bytes;
        out->begin = bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
        while (out->begin < bytes && isspace((unsigned char)text[out->begin])) out->begin++;
        if (memchr(text + out->begin, '\n', bytes - out->begin) || bytes == file->bytes || want >= LONGEST_FIRST) break;
    }
    return status;
}

static slc_span first_line(const head *h)
{
    const char *begin = h->text + h->begin, *end = memchr(begin, '\n', h->bytes - h->begin);
    size_t bytes = end ? (size_t)(end - begin) : h->bytes - h->begin;
    if (bytes && begin[bytes - 1] == '\r') bytes--;
    return (slc_span){begin, bytes};
}

/* Passes white space, and returns the character that follows, which is passed too; 0 at the end. */
static char next_sign(const head *h, size_t *at)
{
    while (*at < h->bytes && isspace((unsigned char)h->text[*at])) ++*at;
    return *at < h->bytes ? h->text[(*at)++] : 0;
}

/* ---- JSON ---- */

/* Returns true if an object with a key begins here. */
static bool begins_object(const head *h, size_t at)
{
    if (next_sign(h, &at) != '{' || next_sign(h, &at) != '"') return false;
    for (; at < h->bytes && h->text[at] != '"'; at++)
        if (h->text[at] == '\\') at++;
    at++;
    return next_sign(h, &at) == ':';
}

static void list_keys(const json_t *object, char *out, size_t room)
{
    const char *key;
    json_t *value;
    size_t used = 0;
    int shown = 0;
    *out = 0;
    json_object_foreach ((json_t *)object, key, value) {
        if (shown++ == COLUMNS_SHOWN || used + strlen(key) + 8 > room) {
            used += (size_t)snprintf(out + used, room - used, ", ...");
            return;
        }
        used += (size_t)snprintf(out + used, room - used, "%s\"%s\"", shown > 1 ? ", " : "", key);
    }
}

static bool has_field(const json_t *object, const slc_field_names *names)
{
    for (int f = 0; f < SLC_FIELDS; f++)
        if (json_object_get(object, names->of[f])) return true;
    return false;
}

static sluice_status refuse_json(const head *h, const char *what, const char *filter)
{
    const char *path = h->file->path;
    return slc_error(SLUICE_ERR_FORMAT,
                     "%s is %s, and records are lines of JSON, one object each: jq -c '%s' %s > records.jsonl makes "
                     "them; or --data-type text reads it as text",
                     path, what, filter, slc_shell_word_of(path).text);
}

/* Conversations as other programs write them, with the filter of jq that makes messages of a record. */
static const struct {
    const char *has, *with; /* keys of the record; of a turn, if `has` is a list of them */
    const char *filter;
} conversations[] = {
    {"conversations", "from",
     "{messages: [.conversations[] | {role: ({human: \"user\", gpt: \"assistant\"}[.from] // .from), content: "
     ".value}]}"},
    {"instruction", "output",
     "{messages: [{role: \"user\", content: (.instruction + \"\\n\" + (.input // \"\"))}, "
     "{role: \"assistant\", content: .output}]}"},
    {"prompt", "completion",
     "{messages: [{role: \"user\", content: .prompt}, {role: \"assistant\", content: .completion}]}"},
    {"prompt", "response",
     "{messages: [{role: \"user\", content: .prompt}, {role: \"assistant\", content: .response}]}"},
    {"question", "answer",
     "{messages: [{role: \"user\", content: .question}, {role: \"assistant\", content: .answer}]}"},
};

/* Returns the filter for a record that is such a conversation; NULL: it is none. */
static const char *find_conversation(const json_t *object)
{
    for (size_t i = 0; i < sizeof conversations / sizeof *conversations; i++) {
        const json_t *has = json_object_get(object, conversations[i].has);
        const json_t *beside = json_is_array(has) ? json_array_get(has, 0) : object;
        if (has && json_object_get(beside, conversations[i].with)) return conversations[i].filter;
    }
    return NULL;
}

static sluice_status refuse_conversation(const head *h, const char *keys, const char *filter)
{
    const char *path = h->file->path;
    return slc_error(SLUICE_ERR_FORMAT,
                     "%s holds JSON lines with the fields %s, which are conversations in another form; jq -c '%s' %s > "
                     "chat.jsonl makes messages of them; or say which field is a text, as --fields text=NAME",
                     path, keys, filter, slc_shell_word_of(path).text);
}

static sluice_status look_for_json(const head *h, const slc_field_names *names, slc_records_form *out)
{
    size_t at = h->begin;
    const char sign = next_sign(h, &at);
    if (sign == '[' && begins_object(h, at)) return refuse_json(h, "one list of records", ".[]");
    if (sign != '{' || !begins_object(h, h->begin)) return SLUICE_OK;
    const slc_span line = first_line(h);
    json_t *object = json_loadb(line.text, line.bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    if (!object) {
        /* A line that ends inside an object is the beginning of JSON over several lines; any other is damaged. */
        if (line.text[line.bytes - 1] != '}') return refuse_json(h, "JSON over several lines", ".");
        *out = SLC_RECORDS_JSON;
        return SLUICE_OK;
    }
    char keys[400];
    const bool known = has_field(object, names);
    const char *filter = known ? NULL : find_conversation(object);
    list_keys(object, keys, sizeof keys);
    json_decref(object);
    *out = SLC_RECORDS_JSON;
    if (known) return SLUICE_OK;
    if (filter) return refuse_conversation(h, keys, filter);
    return slc_error(SLUICE_ERR_FORMAT,
                     "%s holds JSON lines with the fields %s, and none of \"%s\", \"%s\", \"%s\" and \"%s\"; say which "
                     "is what, as --fields text=NAME,label=NAME",
                     h->file->path, *keys ? keys : "(none)", names->of[SLC_FIELD_TEXT], names->of[SLC_FIELD_PAIR],
                     names->of[SLC_FIELD_LABEL], names->of[SLC_FIELD_MESSAGES]);
}

/* ---- Tables ---- */

static bool is_name(slc_span cell)
{
    if (!cell.bytes || cell.bytes > NAME_LIKE) return false;
    for (size_t i = 0; i < cell.bytes; i++) {
        const unsigned char c = (unsigned char)cell.text[i];
        if (!isalnum(c) && !strchr("_-. ", c)) return false;
    }
    return cell.text[0] != ' ' && !isdigit((unsigned char)cell.text[0]);
}

/* Counts the fields of the row that begins at *at, and passes it. -1: the row does not end in what is there. */
static int count_fields(const head *h, slc_records_form form, size_t *at)
{
    const char between = form == SLC_RECORDS_CSV ? ',' : '\t';
    bool quoted = false;
    int count = 1;
    for (; *at < h->bytes; ++*at) {
        const char c = h->text[*at];
        if (c == '"' && form == SLC_RECORDS_CSV) quoted = !quoted;
        if (quoted) continue;
        count += c == between;
        if (c == '\n') break;
    }
    if (*at == h->bytes && h->bytes < h->file->bytes) return -1;
    ++*at;
    return count;
}

/* Returns true if the rows after the first have `columns` fields too. */
static bool rows_are_alike(const head *h, slc_records_form form, int columns)
{
    size_t at = h->begin;
    int alike = 0;
    count_fields(h, form, &at);
    for (; alike < LIKE_ROWS && at < h->bytes; alike++) {
        const size_t begin = at;
        const int count = count_fields(h, form, &at);
        if (count < 0) break;
        if (isspace((unsigned char)h->text[begin])) { /* an empty line */
            alike--;
            continue;
        }
        if (count != columns) return false;
    }
    return alike > 0;
}

typedef struct {
    int columns;
    bool names, known; /* all are like names; one is a field's */
    char shown[400];
} columns;

static columns find_columns(const head *h, slc_records_form form, const slc_field_names *names)
{
    columns c = {.names = true};
    const slc_span line = first_line(h);
    slc_span rest = line, cell;
    char *row = h->text + h->begin;
    bool more = true;
    size_t used = 0;
    while (slc_table_next_field(form, &rest, &more, row, &cell)) {
        c.names = c.names && is_name(cell);
        for (int f = 0; f < SLC_FIELD_MESSAGES; f++) c.known = c.known || slc_span_is(cell, names->of[f]);
        if (c.names && c.columns < COLUMNS_SHOWN)
            used += (size_t)snprintf(c.shown + used, sizeof c.shown - used, "%s\"%.*s\"", c.columns ? ", " : "",
                                     NAME_LIKE > cell.bytes ? (int)cell.bytes : NAME_LIKE, cell.text);
        if (used > sizeof c.shown - NAME_LIKE - 8) used = sizeof c.shown - NAME_LIKE - 8;
        c.columns++;
    }
    return c;
}

static sluice_status look_for_table(const head *h, slc_records_form form, const slc_field_names *names,
                                    slc_records_form *out)
{
    const slc_span line = first_line(h);
    if (!memchr(line.text, form == SLC_RECORDS_CSV ? ',' : '\t', line.bytes) || line.bytes > HEAD / 2) return SLUICE_OK;
    /* A field in quotes is shortened in place, so a copy is looked at. */
    head copy = *h;
    copy.text = malloc(h->bytes + 1);
    if (!copy.text) return slc_error(SLUICE_ERR_MEMORY, "the beginning of %s", h->file->path);
    memcpy(copy.text, h->text, h->bytes + 1);
    const columns c = find_columns(&copy, form, names);
    free(copy.text);
    if (c.columns < 2 || !c.names || (!c.known && !rows_are_alike(h, form, c.columns))) return SLUICE_OK;
    *out = form;
    if (c.known) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_FORMAT,
        "%s looks like a table (%s) with the columns %s, and none of them is \"%s\"; say which is what, as "
        "--fields text=NAME,label=NAME; or --data-type text reads it as text",
        h->file->path, slc_records_form_name(form), c.shown, names->of[SLC_FIELD_TEXT]);
}

/* ---- What only its name says ---- */

/* Returns true if the first line has names between semicolons, as some programs write CSV. */
static bool has_semicolons(const head *h, const slc_field_names *names)
{
    const slc_span line = first_line(h);
    size_t cells = 0;
    bool found = false;
    for (size_t at = 0, end; at <= line.bytes; at = end + 1, cells++) {
        const char *sign = memchr(line.text + at, ';', line.bytes - at);
        end = sign ? (size_t)(sign - line.text) : line.bytes;
        slc_span cell = {line.text + at, end - at};
        if (cells && at == line.bytes) break; /* the line ends with a semicolon */
        if (cell.bytes > 1 && *cell.text == '"') cell = (slc_span){cell.text + 1, cell.bytes - 2};
        if (!is_name(cell)) return false;
        for (int f = 0; f < SLC_FIELD_MESSAGES; f++) found = found || slc_span_is(cell, names->of[f]);
    }
    return found && cells > 1;
}

static bool is_named(const char *path, const char *ending)
{
    const size_t length = strlen(path), end = strlen(ending);
    return length > end && !strcasecmp(path + length - end, ending);
}

/* Refuses a file of no known form that would be trained on as raw text, and is most likely none. */
static sluice_status refuse_unread(const head *h, const slc_field_names *names)
{
    const char *path = h->file->path;
    const bool table = is_named(path, ".csv") || is_named(path, ".tsv");
    const bool json = is_named(path, ".jsonl") || is_named(path, ".ndjson") || is_named(path, ".json");
    const slc_shell_word word = slc_shell_word_of(path);
    if (has_semicolons(h, names))
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s looks like a table with semicolons between its fields; python3 -c 'import csv, sys; "
                         "csv.writer(sys.stdout).writerows(csv.reader(sys.stdin, delimiter=\";\"))' < %s > "
                         "records.csv makes CSV of it; or --data-type text reads it as text",
                         path, word.text);
    if (table)
        return slc_error(
            SLUICE_ERR_FORMAT,
            "%s is called a table, and its first line names no columns; put a line with their names "
            "before all others, as %s and %s, with a %s between them; or --data-type text reads it as text",
            path, names->of[SLC_FIELD_TEXT], names->of[SLC_FIELD_LABEL], is_named(path, ".tsv") ? "tab" : "comma");
    if (json)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s is called JSON, and its first line is no object; records are lines such as {\"%s\": "
                         "\"...\"}; or --data-type text reads it as text",
                         path, names->of[SLC_FIELD_TEXT]);
    return SLUICE_OK;
}

sluice_status slc_records_form_of(const slc_file *file, const slc_field_names *names, slc_records_form *out)
{
    head h;
    *out = SLC_RECORDS_NONE;
    sluice_status status = take_head(file, &h);
    if (!status && h.begin < h.bytes && !memchr(h.text, 0, slc_least(h.bytes, HEAD))) {
        status = look_for_json(&h, names, out);
        if (!status && *out == SLC_RECORDS_NONE) status = look_for_table(&h, SLC_RECORDS_TSV, names, out);
        if (!status && *out == SLC_RECORDS_NONE) status = look_for_table(&h, SLC_RECORDS_CSV, names, out);
        if (!status && *out == SLC_RECORDS_NONE) status = refuse_unread(&h, names);
    }
    free(h.text);
    return status;
}
