/* Prints a command's branch in the completion for bash: its options, and what can follow the word before the cursor.
 * help_text_test.c covers this file. */
#include "bench/cli/help/forms.h"

#include <string.h>

static bool is_file(const char *value)
{
    return !strcmp(value, "FILE") || !strcmp(value, "PATH");
}

static void put_words(FILE *out, const char *list)
{
    fputs("words='", out);
    for (; *list; list++) fputc(*list == ',' ? ' ' : *list, out);
    fputs("'", out);
}

static void put_values(const struct argp_option *option, FILE *out)
{
    char value[32], letter = slc_help_letter(option);
    if (!slc_help_value(option, value)) return;
    const char *choices = slc_help_choices(option);
    fputs("        ", out);
    if (letter) fprintf(out, "-%c | ", letter);
    fprintf(out, "--%s) ", option->name);
    if (choices)
        put_words(out, choices);
    else
        fprintf(out, "kind=%s", is_file(value) ? "files" : !strcmp(value, "DIR") ? "folders" : "unknown");
    fputs(" ;;\n", out);
}

void slc_help_bash(const slc_help_page *page, FILE *out)
{
    const char *name = strrchr(page->program, ' ');
    fprintf(out, "    0%s)\n        options='", name ? name + 1 : page->program);
    for (size_t i = 0; i < page->count; i++)
        if (page->rows[i].option->name) fprintf(out, "--%s ", page->rows[i].option->name);
    fprintf(out, "--help%s'\n        case $previous in\n", page->has_short ? " --help-all" : "");
    for (size_t i = 0; i < page->count; i++)
        if (page->rows[i].option->name) put_values(page->rows[i].option, out);
    fputs("        esac\n        ;;\n", out);
}
