/* Walks the columns of a table: for people, as JSON, and as the documents describe it.
 * bench/nccl/nccl_test.c covers this file. */
#include "bench/nccl/summary/tables.h"
#include "bench/plan/words/quantities.h"
#include "lib/base/text/size_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    bool known;
    char text[SLC_NCCL_CELL_BYTES]; /* for people */
    json_t *json;                   /* owned */
} formed_cell;

static void form_integer(slc_nccl_cell_type type, int64_t integer, formed_cell *out)
{
    out->known = integer != SLC_NCCL_NONE;
    out->json = out->known ? json_integer(integer) : json_null();
    if (out->known && type == SLC_NCCL_BYTES)
        snprintf(out->text, sizeof out->text, "%s", slc_size_of((uint64_t)integer).text);
    else if (out->known)
        snprintf(out->text, sizeof out->text, "%" PRId64, integer);
}

static void form_number(slc_nccl_cell_type type, double number, formed_cell *out)
{
    out->known = !isnan(number);
    out->json = out->known ? json_real(number) : json_null();
    if (out->known && type == SLC_NCCL_SECONDS)
        slc_plan_seconds(number, out->text);
    else if (out->known)
        snprintf(out->text, sizeof out->text,
                 type == SLC_NCCL_RATE   ? "%.2f"
                 : type == SLC_NCCL_MEAN ? "%.6g"
                                         : "%.1f %%",
                 number);
}

static void form_cell(slc_nccl_cell_type type, const slc_nccl_cell *cell, formed_cell *out)
{
    out->known = true;
    *out->text = 0;
    switch (type) {
    case SLC_NCCL_TEXT:
        snprintf(out->text, sizeof out->text, "%s", cell->text);
        out->json = json_string(cell->text);
        return;
    case SLC_NCCL_COUNT:
    case SLC_NCCL_BYTES: form_integer(type, cell->integer, out); return;
    case SLC_NCCL_SECONDS:
    case SLC_NCCL_RATE:
    case SLC_NCCL_MEAN:
    case SLC_NCCL_PERCENT: form_number(type, cell->number, out); return;
    case SLC_NCCL_KEY:
        snprintf(out->text, sizeof out->text, "%04x", (unsigned)(cell->key >> 48));
        out->json = cell->key ? json_sprintf("%016" PRIx64, cell->key) : json_null();
        return;
    case SLC_NCCL_SWITCH: out->json = json_boolean(cell->yes); return;
    case SLC_NCCL_LIST:
    case SLC_NCCL_OBJECT: out->json = cell->json; return;
    }
}

/* Returns false for a row that is not shown; else the caller drops the cells' JSON, or hands it on. */
static bool form_row(const slc_nccl_table *table, const slc_nccl_summary *summary, size_t row, formed_cell *out)
{
    slc_nccl_cell cells[SLC_NCCL_COLUMNS_MAX];
    assert(table->column_count <= SLC_NCCL_COLUMNS_MAX);
    if (!table->fill(summary, row, cells)) return false;
    for (size_t c = 0; c < table->column_count; c++) form_cell(table->columns[c].type, &cells[c], &out[c]);
    return true;
}

/* ---- For people ---- */

/* Forms a row as form_row does, for people: only the columns with a heading are known, and no JSON is kept. */
static bool show_row(const slc_nccl_table *table, const slc_nccl_summary *summary, size_t row, formed_cell *out)
{
    if (!form_row(table, summary, row, out)) return false;
    for (size_t c = 0; c < table->column_count; c++) {
        out[c].known &= table->columns[c].heading != NULL;
        json_decref(out[c].json);
    }
    return true;
}

/* Prints a line, which ends with its last cell that is known. */
static void print_line(const slc_nccl_table *table, const formed_cell *cells, const bool *used, FILE *out)
{
    size_t end = table->column_count;
    bool first = true;
    while (end && !(used[end - 1] && cells[end - 1].known)) end--;
    for (size_t c = 0; c < end; c++) {
        const slc_nccl_column *column = &table->columns[c];
        if (!used[c] || (!column->width && !*cells[c].text)) continue;
        fprintf(out, "%*s%*s", first ? 0 : 1 + column->gap, "", column->width, cells[c].known ? cells[c].text : "");
        first = false;
    }
    fputc('\n', out);
}

static void print_headings(const slc_nccl_table *table, const bool *used, FILE *out)
{
    formed_cell cells[SLC_NCCL_COLUMNS_MAX];
    for (size_t c = 0; c < table->column_count; c++) {
        cells[c].known = used[c];
        snprintf(cells[c].text, sizeof cells[c].text, "%s", used[c] ? table->columns[c].heading : "");
    }
    print_line(table, cells, used, out);
}

bool slc_nccl_table_print(const slc_nccl_table *table, const slc_nccl_summary *summary, FILE *out)
{
    formed_cell cells[SLC_NCCL_COLUMNS_MAX];
    bool used[SLC_NCCL_COLUMNS_MAX] = {false}, any = false;
    const size_t count = table->count(summary);
    for (size_t row = 0; row < count; row++) {
        if (!show_row(table, summary, row, cells)) continue;
        any = true;
        for (size_t c = 0; c < table->column_count; c++) used[c] |= cells[c].known;
    }
    if (!any) return false;
    print_headings(table, used, out);
    for (size_t row = 0; row < count && row < table->most; row++)
        if (show_row(table, summary, row, cells)) print_line(table, cells, used, out);
    if (count > table->most) fprintf(out, "and %zu more %s\n", count - table->most, table->more);
    return true;
}

/* ---- JSON ---- */

json_t *slc_nccl_table_json(const slc_nccl_table *table, const slc_nccl_summary *summary)
{
    formed_cell cells[SLC_NCCL_COLUMNS_MAX];
    const size_t count = table->count(summary);
    json_t *list = json_array();
    int failed = !list;
    for (size_t row = 0; row < count; row++) {
        if (!form_row(table, summary, row, cells)) continue;
        json_t *object = json_object();
        for (size_t c = 0; c < table->column_count; c++)
            if (table->columns[c].key)
                failed |= json_object_set_new(object, table->columns[c].key, cells[c].json);
            else
                json_decref(cells[c].json);
        failed |= json_array_append_new(list, object);
    }
    if (!failed) return list;
    json_decref(list);
    return NULL;
}

/* ---- Documents ---- */

static const char *type_words(slc_nccl_cell_type type)
{
    static const char *const words[] = {
        [SLC_NCCL_TEXT] = "text",      [SLC_NCCL_COUNT] = "integer", [SLC_NCCL_BYTES] = "integer",
        [SLC_NCCL_SECONDS] = "number", [SLC_NCCL_RATE] = "number",   [SLC_NCCL_MEAN] = "number",
        [SLC_NCCL_PERCENT] = "number", [SLC_NCCL_KEY] = "text",      [SLC_NCCL_SWITCH] = "true or false",
        [SLC_NCCL_LIST] = "list",      [SLC_NCCL_OBJECT] = "object",
    };
    return words[type];
}

void slc_nccl_tables_describe(FILE *out)
{
    const slc_nccl_table *const tables[] = {&slc_nccl_processes, &slc_nccl_communicators, &slc_nccl_traffic_rows,
                                            &slc_nccl_sizes, &slc_nccl_sequences};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        fprintf(out, "%s| `%s` | type | meaning |\n|---|---|---|\n", t ? "\n" : "", tables[t]->name);
        for (size_t c = 0; c < tables[t]->column_count; c++) {
            const slc_nccl_column *column = &tables[t]->columns[c];
            if (!column->key) continue;
            fprintf(out, "| `%s` | %s%s%s | %s |\n", column->key, type_words(column->type), *column->unit ? ", " : "",
                    column->unit, column->doc);
        }
    }
}
