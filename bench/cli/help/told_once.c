/* Compares the rows of options as whole lines of text: equal lines are one option with one meaning, one value and one
 * default. help_text_test.c covers this file. */
#include "bench/cli/help/told_once.h"

#include <stdbool.h>
#include <string.h>

/* Returns true if the text has this line, with its line feed. */
static bool has_line(const char *text, const char *line, size_t length)
{
    for (const char *at = text; (at = strstr(at, "\n| `-")) != NULL; at++)
        if (!strncmp(at + 1, line, length)) return true;
    return false;
}

/* The name of a row's option, as "--steps", which ends at a blank or at the backquote. */
static const char *name_of(const char *row, size_t *length)
{
    const char *name = strstr(row, "`--") + 1;
    *length = strcspn(name, " `");
    return name;
}

typedef struct {
    const char *section, *told, *by;
    const char *head; /* of the table being read, until one of its rows is printed; NULL */
    size_t head_bytes;
    bool any; /* a row was left out */
} printer;

static void print_row(printer *p, const char *line, size_t length, FILE *out)
{
    if (has_line(p->told, line, length)) {
        p->any = true;
        return;
    }
    if (p->head) fprintf(out, "\n%.*s", (int)p->head_bytes, p->head);
    p->head = NULL;
    fwrite(line, 1, length, out);
}

/* Names the options that were left out, in the order of their rows, as a block of lines of at most 110 characters. */
static void print_left_out(const printer *p, FILE *out)
{
    size_t column = 0;
    fprintf(out, "\nAs under [%s](#", p->by);
    for (const char *c = p->by; *c; c++) fputc(*c == ' ' ? '-' : *c, out);
    fputs("):\n\n```\n", out);
    for (const char *row = p->section; (row = strstr(row, "\n| `-")) != NULL; row++) {
        size_t length;
        if (!has_line(p->told, row + 1, strcspn(row + 1, "\n") + 1)) continue;
        const char *name = name_of(row, &length);
        const char *before = !column ? "" : column + 1 + length > 110 ? "\n" : " ";
        column = *before == ' ' ? column + 1 + length : length;
        fprintf(out, "%s%.*s", before, (int)length, name);
    }
    fputs("\n```\n", out);
}

void slc_help_tell_once(const char *section, const char *told, const char *by, FILE *out)
{
    static const char rule[] = "|---|---|\n";
    printer p = {.section = section, .told = told, .by = by};
    const char *last_row = NULL;
    for (const char *row = section; (row = strstr(row, "\n| `-")) != NULL; row++) last_row = row + 1;
    for (const char *line = section; *line;) {
        const size_t length = strcspn(line, "\n") + 1;
        const char *next = line + length;
        const bool blank = *line == '\n';
        if (blank && !strncmp(next, "| ", 2) && !strncmp(next + strcspn(next, "\n") + 1, rule, sizeof rule - 1)) {
            p.head = next;
            p.head_bytes = strcspn(next, "\n") + sizeof rule;
            next += p.head_bytes;
        } else if (!strncmp(line, "| `-", 4)) {
            print_row(&p, line, length, out);
            if (line == last_row && p.any) print_left_out(&p, out);
        } else {
            fwrite(line, 1, length, out);
        }
        line = next;
    }
}
