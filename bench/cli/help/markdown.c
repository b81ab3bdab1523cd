/* Prints the help as a section of docs/command.md. help_text_test.c covers this file. */
#include "bench/cli/help/forms.h"

#include <string.h>

/* Writes the text of a cell, in which a plain bar would end the column. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|') fputc('\\', out);
        if (*text == '<') fputc('\\', out);
        fputc(*text, out);
    }
}

static void put_option(const struct argp_option *option, FILE *out)
{
    char value[32] = "", letter = slc_help_letter(option);
    bool has_value = slc_help_value(option, value);
    fputs("| ", out);
    if (letter) fprintf(out, "`-%c`, ", letter);
    fprintf(out, "`--%s%s", option->name, has_value ? " " : "");
    put_cell(out, value);
    fputs("` | ", out);
    put_cell(out, option->doc ? option->doc : "");
    fputs(" |\n", out);
}

/* Lines that begin with a space become a block of code. */
static void put_lines(FILE *out, const char *text)
{
    bool code = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool kept = *text == ' ';
        if (kept != code) fputs(kept ? "\n```\n" : "```\n", out);
        if (!kept && code && length) fputc('\n', out);
        code = kept;
        size_t margin = kept ? 2 : 0;
        fprintf(out, "%.*s\n", (int)(length - margin), text + margin);
        text += length + (text[length] != 0);
    }
    if (code) fputs("```\n", out);
}

static void put_table(const slc_help_page *page, FILE *out)
{
    int section = 0;
    for (size_t i = 0; i < page->count; i++) {
        const slc_help_row *row = &page->rows[i];
        if (row->section != section)
            fprintf(out, "\n| %.*s | |\n|---|---|\n", row->option->name ? 6 : (int)strcspn(row->option->doc, ":"),
                    row->option->name ? "option" : row->option->doc);
        section = row->section;
        if (row->option->name) put_option(row->option, out);
    }
}

void slc_help_markdown(const slc_help_page *page, FILE *out)
{
    fprintf(out, "\n## %s\n\n%s\n\n```\n%s%s%s%s\n```\n", page->program, page->about, page->program,
            page->options ? " [OPTION...]" : "", *page->arguments ? " " : "", page->arguments);
    put_table(page, out);
    if (*page->notes) {
        fputc('\n', out);
        put_lines(out, page->notes);
    }
    if (*page->examples) {
        fputs("\nExamples:\n", out);
        put_lines(out, page->examples);
    }
    if (strncmp(page->more, "docs/", 5)) return;
    fprintf(out, "\nMore: [%s](%s)\n", page->more + 5, page->more + 5);
}
