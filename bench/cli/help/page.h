/* The content of a command's help, apart from the form in which it is printed. */
#pragma once

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

/* True for the row after the last one of a table of options. */
static inline bool slc_help_ends(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc && !option->group;
}

typedef struct {
    const struct argp_option *option; /* a heading has no name */
    int section;                      /* a heading begins one, and so does another group of options */
} slc_help_row;

typedef struct {
    const char *program, *arguments; /* "sluice nccl", "[DIR...]" */
    char *about;                     /* one paragraph */
    char *notes, *examples;          /* lines; "": none */
    char *more;                      /* "docs/planning.md"; "": none */
    char *text;                      /* owns all four */
    slc_help_row *rows;              /* in the order in which they are shown; hidden ones are not there */
    size_t count;                    /* of rows */
    size_t options;                  /* of them: those that are no headings */
    bool has_short;                  /* an option is marked SLC_OPTION_SHORT */
} slc_help_page;

/* The page points into the parser's texts, and slc_help_page_fini frees the rest. Returns 0, or -1: no memory. */
int slc_help_page_init(slc_help_page *page, const struct argp *parser, const char *program);
void slc_help_page_fini(slc_help_page *page);

/* The letter of the option, as 'n'; 0: none. */
char slc_help_letter(const struct argp_option *option);
/* Writes the word for the option's value, as FILE, into word[32]. Returns false for an option without a value. */
bool slc_help_value(const struct argp_option *option, char word[32]);
/* The values that the option takes, with commas: "auto,none,all"; NULL: not listed. */
const char *slc_help_choices(const struct argp_option *option);
