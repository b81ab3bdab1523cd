/* Prints the help as a manual page, for man(7). help_text_test.c covers this file. */
#include "bench/cli/help/forms.h"

#include <ctype.h>
#include <sluice/version.h>
#include <string.h>

/* The page's text is escaped for troff: quotes and hyphens stay as typed, so that commands can be copied from the page,
 * and no line is read as a request. */
static void put_escaped(FILE *out, const char *text, size_t length)
{
    if (length && *text == '.') fputs("\\&", out);
    for (size_t i = 0; i < length; i++) switch (text[i]) {
        case '-': fputs("\\-", out); break;
        case '\\': fputs("\\e", out); break;
        case '\'': fputs("\\(aq", out); break;
        case '`': fputs("\\(ga", out); break;
        case '~': fputs("\\(ti", out); break;
        default: fputc(text[i], out);
        }
}

static void put_text(FILE *out, const char *text)
{
    put_escaped(out, text, strlen(text));
}

/* Lines that begin with a space stay as they are. */
static void put_lines(FILE *out, const char *text)
{
    for (bool kept = false; *text;) {
        const size_t length = strcspn(text, "\n");
        const bool keep = *text == ' ';
        if (keep != kept) fputs(keep ? ".RS\n.nf\n" : ".fi\n.RE\n", out);
        kept = keep;
        const size_t margin = !keep ? 0 : text[1] == ' ' ? 2 : 1;
        put_escaped(out, text + margin, length - margin);
        if (length) fputc('\n', out);
        text += length + (text[length] != 0);
        if (kept && !*text)
            fputs(".fi\n.RE\n", out);
        else if (!kept && *text && *text != ' ')
            fputs(*text == '\n' ? ".PP\n" : ".br\n", out);
        while (*text == '\n') text++;
    }
}

static void put_name(const slc_help_page *page, FILE *out)
{
    char name[64];
    snprintf(name, sizeof name, "%s", page->program);
    for (char *space; (space = strchr(name, ' '));) *space = '-';
    fputs(".TH \"", out);
    for (const char *c = name; *c; c++) fputc(toupper((unsigned char)*c), out);
    fprintf(out, "\" 1 \"\" \"Sluice %s\" \"Sluice\"\n.SH NAME\n", sluice_version());
    put_text(out, name);
    fputs(" \\- ", out);
    size_t first = strcspn(page->about, ".:;"); /* the first sentence, without its full stop */
    fputc(tolower((unsigned char)*page->about), out);
    if (first) put_escaped(out, page->about + 1, first - 1);
    fputs("\n.SH SYNOPSIS\n.B ", out);
    put_text(out, page->program);
    fputs("\n", out);
    if (page->options) fputs("[\\fIOPTION\\fR]...\n", out);
    if (*page->arguments) {
        put_text(out, page->arguments);
        fputc('\n', out);
    }
}

static void put_option(const struct argp_option *option, FILE *out)
{
    char value[32], letter = slc_help_letter(option);
    fputs(".TP\n", out);
    if (letter) fprintf(out, "\\fB\\-%c\\fR, ", letter);
    fputs("\\fB\\-\\-", out);
    put_text(out, option->name);
    fputs("\\fR", out);
    if (slc_help_value(option, value)) {
        fputs(" \\fI", out);
        put_text(out, value);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    put_text(out, option->doc ? option->doc : "");
    fputc('\n', out);
}

void slc_help_man(const slc_help_page *page, FILE *out)
{
    put_name(page, out);
    fputs(".SH DESCRIPTION\n", out);
    put_text(out, page->about);
    fputc('\n', out);
    if (*page->notes) {
        fputs(".PP\n", out);
        put_lines(out, page->notes);
    }
    if (page->options) fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < page->count; i++) {
        const struct argp_option *option = page->rows[i].option;
        if (option->name) {
            put_option(option, out);
        } else {
            fputs(".SS \"", out);
            put_escaped(out, option->doc, strcspn(option->doc, ":"));
            fputs("\"\n", out);
        }
    }
    if (*page->examples) {
        fputs(".SH EXAMPLES\n", out);
        put_lines(out, page->examples);
    }
    fputs(".SH EXIT STATUS\n0: done. 1: failed. 2: an option or a file cannot be used. 130: stopped by a signal.\n"
          "The table of all codes is in docs/errors.md.\n.SH SEE ALSO\n.BR sluice (1)\n",
          out);
    if (*page->more) {
        fputs(".PP\n", out);
        put_text(out, page->more);
        fputc('\n', out);
    }
}
