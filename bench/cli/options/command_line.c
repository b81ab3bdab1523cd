/* Makes an argp parser of a table of options, and parses by it. option_test.c covers this file. */
#include "bench/cli/options/command_line.h"

#include "bench/cli/command.h"
#include "bench/cli/options/parse.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_KEY = 256 };

/* A command line on its way through argp. */
typedef struct parsing {
    const slc_command_line *line;
    void *options;
    struct argp parser;
    struct argp_option *help; /* made of the rows; owned */
    char *texts;              /* of the help; owned */
    size_t used;              /* of `texts` */
    struct argp_child children[2];
    struct parsing *shared; /* NULL: none */
} parsing;

/* ---- Help ---- */

static int count_rows(const slc_option *rows)
{
    int count = 0;
    while (rows && rows[count].name) count++;
    return count;
}

static int last_group(const slc_command_line *line)
{
    int last = 0;
    for (const slc_option *row = line->rows; line->headings && row && row->name; row++)
        if (row->group > last) last = row->group;
    return last;
}

static size_t length_of(const char *text)
{
    return text ? strlen(text) : 0;
}

/* Room for all texts that help_of makes. */
static size_t text_bytes(const slc_option *rows)
{
    size_t bytes = 1;
    for (; rows && rows->name; rows++)
        bytes += length_of(rows->argument) + length_of(rows->choices) + length_of(rows->doc) +
                 length_of(rows->fallback) + length_of(rows->note) + sizeof "= (default )" + 1;
    return bytes;
}

static const char *keep_text(parsing *p, int length)
{
    const char *text = p->texts + p->used;
    p->used += (size_t)length + 1;
    return text;
}

static struct argp_option help_of(parsing *p, const slc_option *row, int key)
{
    struct argp_option option = {
        .name = row->name, .key = key, .arg = row->argument, .doc = row->doc, .group = row->group};
    if (row->flags & SLC_OPTION_SHORT) option.flags |= SLC_OPTION_SHORT;
    if (row->refused || row->flags & SLC_OPTION_HIDDEN) option.flags |= OPTION_HIDDEN;
    if (row->choices && !strchr(row->argument, '='))
        option.arg = keep_text(p, sprintf(p->texts + p->used, "%s=%s", row->argument, row->choices));
    if (row->fallback && *row->fallback)
        option.doc = keep_text(
            p, sprintf(p->texts + p->used, "%s (default %s%s)", row->doc, row->fallback, row->note ? row->note : ""));
    return option;
}

static int key_of(const slc_option *rows, int i)
{
    return rows[i].letter ? rows[i].letter : FIRST_KEY + i;
}

/* Returns false if there is no memory. */
static bool make_help(parsing *p)
{
    const slc_command_line *line = p->line;
    const int count = count_rows(line->rows), groups = last_group(line);
    int used = 0;
    p->help = calloc((size_t)(count + groups) + 1, sizeof *p->help);
    p->texts = malloc(text_bytes(line->rows));
    if (!p->help || !p->texts) return false;
    for (int g = 1; g <= groups; g++)
        if (line->headings[g]) p->help[used++] = (struct argp_option){.doc = line->headings[g], .group = g};
    for (int i = 0; i < count; i++) p->help[used++] = help_of(p, &line->rows[i], key_of(line->rows, i));
    return true;
}

/* ---- Parsing ---- */

static void set_defaults(const slc_command_line *line, void *options)
{
    if (line->begin)
        line->begin(options);
    else if (line->rows)
        slc_option_defaults(line->rows, options);
    if (line->shared) set_defaults(line->shared, (char *)options + line->shared_field);
}

static void refuse_if(struct argp_state *state, sluice_status status)
{
    if (status) argp_error(state, "%s", sluice_last_error());
}

static error_t take_argument(parsing *p, char *text, struct argp_state *state)
{
    const slc_command_line *line = p->line;
    if (line->program) {
        char *const *words = &state->argv[state->next - 1];
        memcpy((char *)p->options + line->program, &words, sizeof words);
        state->next = state->argc;
        return 0;
    }
    if (line->argument) {
        const char **given = (const char **)((char *)p->options + line->argument);
        if (*given) argp_error(state, "one %s, not \"%s\" and \"%s\"", line->arguments, *given, text);
        *given = text;
    } else if (line->take)
        refuse_if(state, line->take(p->options, text));
    else if (line->shared && !line->hint)
        return ARGP_ERR_UNKNOWN;
    else
        argp_error(state, "\"%s\" follows no option%s%s", text, line->hint ? "; " : "", line->hint ? line->hint : "");
    return 0;
}

static error_t set_option(parsing *p, const slc_option *row, char *text, struct argp_state *state)
{
    const char **typed = p->line->typed ? (const char **)((char *)p->options + p->line->typed) : NULL;
    if (row->refused) argp_error(state, "--%s: %s", row->name, row->refused);
    refuse_if(state, slc_option_set(row, p->options, text));
    if (typed) typed[row - p->line->rows] = text ? text : "";
    return 0;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    parsing *p = state->input;
    const slc_command_line *line = p->line;
    switch (key) {
    case ARGP_KEY_INIT:
        if (p->shared) state->child_inputs[0] = p->shared;
        return 0;
    case ARGP_KEY_ARG: return take_argument(p, text, state);
    case ARGP_KEY_END:
        if (line->check) refuse_if(state, line->check(p->options));
        if (line->argument && !*(const char **)((char *)p->options + line->argument))
            argp_error(state, "name a %s", line->arguments);
        return 0;
    default: break;
    }
    for (int i = 0; line->rows && line->rows[i].name; i++)
        if (key == key_of(line->rows, i)) return set_option(p, &line->rows[i], text, state);
    return ARGP_ERR_UNKNOWN;
}

static bool make_parser(parsing *p, const slc_command_line *line, void *options, parsing *shared)
{
    *p = (parsing){.line = line, .options = options, .shared = shared};
    p->parser = (struct argp){.parser = parse_option, .args_doc = line->arguments, .doc = line->doc};
    if (shared) {
        p->children[0].argp = &shared->parser;
        p->parser.children = p->children;
    }
    const bool made = make_help(p);
    p->parser.options = p->help;
    return made;
}

static void free_parser(parsing *p)
{
    free(p->help);
    free(p->texts);
}

void slc_command_line_parse(const slc_command_line *line, int argc, char **argv, void *options)
{
    const slc_command_line *shared = line->shared;
    parsing own, common = {0};
    if ((shared && !make_parser(&common, shared, (char *)options + line->shared_field, NULL)) ||
        !make_parser(&own, line, options, shared ? &common : NULL)) {
        fprintf(stderr, "%s: out of memory\n", argv[0]);
        exit(EXIT_FAILED);
    }
    set_defaults(line, options);
    slc_parse(&own.parser, argc, argv, line->program ? ARGP_IN_ORDER : 0, &own);
    free_parser(&own);
    free_parser(&common);
}
