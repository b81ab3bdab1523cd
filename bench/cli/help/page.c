/* Collects the rows of a parser and of its children, in groups as argp has them, and takes its text to pieces.
 * help_text_test.c covers this file. */
#include "bench/cli/help/page.h"

#include "bench/cli/help/short_option.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- Rows ---- */

static size_t count_rows(const struct argp *parser)
{
    size_t count = 0;
    for (const struct argp_option *o = parser->options; o && !slc_help_ends(o); o++) count++;
    for (const struct argp_child *c = parser->children; c && c->argp; c++) count += count_rows(c->argp);
    return count;
}

/* A row without a group number belongs to the group of the row before it; a heading without a number begins the next
 * group. */
static void add_rows(slc_help_page *page, const struct argp *parser)
{
    int group = 0;
    for (const struct argp_option *o = parser->options; o && !slc_help_ends(o); o++) {
        group = o->group ? o->group : o->name ? group : group + 1;
        if (o->flags & OPTION_HIDDEN) continue;
        page->rows[page->count++] = (slc_help_row){o, group}; /* of which number_sections makes sections */
        page->options += o->name != NULL;
        page->has_short |= (o->flags & SLC_OPTION_SHORT) != 0;
    }
    for (const struct argp_child *c = parser->children; c && c->argp; c++) add_rows(page, c->argp);
}

/* Sorts by group; within one, rows stay in the order of their table. */
static void sort_rows(slc_help_page *page)
{
    for (size_t i = 1; i < page->count; i++) {
        slc_help_row row = page->rows[i];
        size_t place = i;
        for (; place && page->rows[place - 1].section > row.section; place--) page->rows[place] = page->rows[place - 1];
        page->rows[place] = row;
    }
}

static void number_sections(slc_help_page *page)
{
    for (size_t i = 0, number = 0, group = 0; i < page->count; i++) {
        slc_help_row *row = &page->rows[i];
        number += !i || (size_t)row->section != group || !row->option->name;
        group = (size_t)row->section;
        row->section = (int)number;
    }
}

char slc_help_letter(const struct argp_option *option)
{
    return option->key > 0 && option->key < 256 && isgraph(option->key) ? (char)option->key : 0;
}

bool slc_help_value(const struct argp_option *option, char word[32])
{
    if (!option->arg) return false;
    size_t length = strcspn(option->arg, "=");
    if (length > 31) length = 31;
    memcpy(word, option->arg, length);
    word[length] = 0;
    return true;
}

const char *slc_help_choices(const struct argp_option *option)
{
    const char *list = option->arg ? strchr(option->arg, '=') : NULL;
    return list ? list + 1 : NULL;
}

/* ---- Text ---- */

static void trim(char *text)
{
    size_t length = strlen(text), start = strspn(text, "\n");
    while (length > start && isspace((unsigned char)text[length - 1])) length--;
    memmove(text, text + start, length - start);
    text[length - start] = 0;
}

static void append_line(char *text, const char *line)
{
    strcat(strcat(text, line), "\n");
}

/* Splits a parser's text into its parts, each of which has room for all of the text. */
static int split_text(slc_help_page *page, const char *doc)
{
    size_t size = strlen(doc) + 2;
    page->text = calloc(5, size);
    if (!page->text) return -1;
    page->about = page->text;
    page->notes = page->about + size;
    page->examples = page->notes + size;
    page->more = page->examples + size;
    char *rest = page->more + size, *line;
    const char *after = strchr(doc, '\v');
    memcpy(page->about, doc, after ? (size_t)(after - doc) : strlen(doc));
    strcpy(rest, after ? after + 1 : "");
    for (char *into = page->notes; (line = strsep(&rest, "\n")) != NULL;) {
        if (!strcmp(line, "Examples:") || !strcmp(line, "Example:")) {
            into = page->examples;
        } else if (!strncmp(line, "More: ", 6)) {
            strcpy(page->more, line + 6);
        } else {
            if (into == page->examples && *line && *line != ' ') into = page->notes;
            append_line(into, line);
        }
    }
    trim(page->about);
    trim(page->notes);
    trim(page->examples);
    return 0;
}

int slc_help_page_init(slc_help_page *page, const struct argp *parser, const char *program)
{
    *page = (slc_help_page){.program = program, .arguments = parser->args_doc ? parser->args_doc : ""};
    page->rows = calloc(count_rows(parser) + 1, sizeof *page->rows);
    if (!page->rows || split_text(page, parser->doc ? parser->doc : "")) {
        slc_help_page_fini(page);
        return -1;
    }
    add_rows(page, parser);
    sort_rows(page);
    number_sections(page);
    return 0;
}

void slc_help_page_fini(slc_help_page *page)
{
    free(page->rows);
    free(page->text);
    *page = (slc_help_page){0};
}
