/* Prints the help for a terminal: options in two columns, as wide as the terminal is, and examples as they were
 * written. help_text_test.c covers this file. */
#include "bench/cli/help/forms.h"
#include "bench/cli/help/help.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DOC_COLUMN = 26, NARROW_COLUMN = 8, LEAST_WIDTH = 40, NARROW_WIDTH = 60, USUAL_WIDTH = 80, MOST_WIDTH = 120 };

int slc_help_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = USUAL_WIDTH;
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        width = size.ws_col;
    else if (columns && atoi(columns) > 0)
        width = atoi(columns);
    return width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : width;
}

/* Prints words up to the end of the line; the first stands at `column`, where the cursor is, further lines begin at
 * `indent`. */
static void print_wrapped(FILE *out, const char *text, size_t length, int column, int indent)
{
    const int width = slc_help_width() - 1;
    bool first = true;
    for (const char *end = text + length; text < end;) {
        text += strspn(text, " ");
        int word = (int)strcspn(text, " \n");
        if (word > end - text) word = (int)(end - text);
        if (!word) break;
        if (!first && column + 1 + word > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", word, text);
        column += word;
        text += word;
        first = false;
    }
    fputc('\n', out);
}

static void print_lines(FILE *out, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (*text == ' ')
            fprintf(out, "%.*s\n", (int)length, text);
        else
            print_wrapped(out, text, length, 0, 0);
        text += length + (text[length] != 0);
    }
}

static void print_option(FILE *out, const struct argp_option *option)
{
    char letter[8] = "    ", value[32] = "";
    if (slc_help_letter(option)) snprintf(letter, sizeof letter, "-%c, ", slc_help_letter(option));
    bool has_value = slc_help_value(option, value);
    int column = fprintf(out, "  %s--%s%s%s", letter, option->name, has_value ? " " : "", value);
    const int doc_column = slc_help_width() < NARROW_WIDTH ? NARROW_COLUMN : DOC_COLUMN;
    if (column > doc_column - 2) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", doc_column - column, "");
    const char *doc = option->doc ? option->doc : "";
    print_wrapped(out, doc, strlen(doc), doc_column, doc_column);
}

static bool is_shown(const slc_help_page *page, const slc_help_row *row, bool all)
{
    return row->option->name && (all || !page->has_short || row->option->flags & SLC_OPTION_SHORT);
}

/* A heading is printed before the first option of its group that is shown. */
static void print_options(const slc_help_page *page, bool all, FILE *out)
{
    const char *heading = NULL;
    int section = 0;
    for (size_t i = 0; i < page->count; i++) {
        const slc_help_row *row = &page->rows[i];
        if (row->section != section) heading = row->option->name ? NULL : row->option->doc;
        section = row->section;
        if (!is_shown(page, row, all)) continue;
        if (heading) fprintf(out, "\n%s\n", heading);
        heading = NULL;
        print_option(out, row->option);
    }
}

static const char exit_codes[] = "Exit codes: 0 done, 1 failed, 2 an option or a file cannot be used, 130 stopped; "
                                 "docs/errors.md has all of them.";

/* Prints where the page is: the path of an installed command's page, in share/doc, or else its path in the source
 * tree. */
static void print_more(const char *page, FILE *out)
{
    char self[PATH_MAX], *slash;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0) {
        char path[2 * PATH_MAX], real[PATH_MAX];
        self[length] = 0;
        if ((slash = strrchr(self, '/'))) *slash = 0;
        snprintf(path, sizeof path, "%s/../share/doc/sluice/%s", self, page);
        if (realpath(path, real)) {
            fprintf(out, "More: %s\n", real);
            return;
        }
    }
    fprintf(out, "More: %s\n", page);
}

void slc_help_text(const slc_help_page *page, bool all, FILE *out)
{
    print_wrapped(out, page->about, strlen(page->about), 0, 0);
    fprintf(out, "\nUsage: %s%s%s%s\n", page->program, page->options ? " [OPTION...]" : "", *page->arguments ? " " : "",
            page->arguments);
    if (page->options) {
        if (page->count && page->rows[0].option->name) fputc('\n', out);
        print_options(page, all, out);
    }
    if ((all || !page->has_short) && *page->notes) {
        fputc('\n', out);
        print_lines(out, page->notes);
    }
    if (*page->examples) fprintf(out, "\nExamples:\n%s\n", page->examples);
    fputc('\n', out);
    if (page->has_short && !all)
        fprintf(out, "`%s --help-all` explains all %zu options.\n", page->program, page->options);
    print_wrapped(out, exit_codes, sizeof exit_codes - 1, 0, 0);
    if (*page->more) print_more(page->more, out);
}

void slc_help_usage(const slc_help_page *page, FILE *out)
{
    size_t size = 64 + strlen(page->program) + strlen(page->arguments);
    for (size_t i = 0; i < page->count; i++)
        if (page->rows[i].option->name) size += strlen(page->rows[i].option->name) + 64;
    char *line = malloc(size), value[32];
    if (!line) return;
    size_t used = (size_t)snprintf(line, size, "Usage: %s", page->program);
    for (size_t i = 0; i < page->count; i++) {
        const struct argp_option *o = page->rows[i].option;
        if (!o->name) continue;
        used += (size_t)snprintf(line + used, size - used, slc_help_value(o, value) ? " [--%s=%s]" : " [--%s]", o->name,
                                 value);
    }
    snprintf(line + used, size - used, " %s", page->arguments);
    print_wrapped(out, line, strlen(line), 0, 4);
    free(line);
}
