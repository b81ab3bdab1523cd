/* Words that are no UTF-8, which JSON cannot hold, have question marks in them. */
#include "bench/cli/output/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *program_name;
static int word_count;
static char **words; /* in the order in which they were typed; a parser changes argv's */
static time_t began;

void slc_provenance_begin(const char *program, int argc, char **argv)
{
    program_name = program;
    began = time(NULL);
    free(words);
    words = calloc((size_t)argc + 1, sizeof *words);
    word_count = words ? argc : 0;
    for (int i = 0; i < word_count; i++) words[i] = argv[i];
}

static char *write_date(time_t when, char text[32])
{
    struct tm utc;
    *text = 0;
    if (gmtime_r(&when, &utc)) strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

char *slc_provenance_began(char text[32])
{
    return write_date(began, text);
}

char *slc_date_now(char text[32])
{
    return write_date(time(NULL), text);
}

json_t *slc_plain_text_json(const char *text)
{
    json_t *whole = json_string(text);
    char *plain = whole ? NULL : strdup(text);
    if (!plain) return whole;
    for (char *at = plain; *at; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    whole = json_string(plain);
    free(plain);
    return whole;
}

static json_t *command_line_json(void)
{
    json_t *line = json_array();
    json_array_append_new(line, slc_plain_text_json(program_name));
    for (int i = 1; i < word_count; i++) json_array_append_new(line, slc_plain_text_json(words[i]));
    return line;
}

/* Lists the variables that set something, without the token of a job, which is a secret. */
static json_t *variables_json(void)
{
    static const char prefix[] = "SLUICE_", secret[] = "SLUICE_JOB_TOKEN=";
    extern char **environ;
    json_t *variables = json_object();
    for (char **at = environ; at && *at; at++) {
        const char *equals = strchr(*at, '=');
        char name[128];
        if (!equals || strncmp(*at, prefix, strlen(prefix)) || !strncmp(*at, secret, strlen(secret))) continue;
        if (snprintf(name, sizeof name, "%.*s", (int)(equals - *at), *at) >= (int)sizeof name) continue;
        json_object_set_new(variables, name, slc_plain_text_json(equals + 1)); /* a name that is no UTF-8 is left out */
    }
    return variables;
}

void slc_provenance_add(json_t *content)
{
    char date[32];
    if (!program_name || !json_is_object(content) || json_object_get(content, "command_line")) return;
    json_object_set_new(content, "command_line", command_line_json());
    json_object_set_new(content, "variables", variables_json());
    json_object_set_new(content, "date", json_string(slc_provenance_began(date)));
}
