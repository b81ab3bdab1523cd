/* Notes where results come from: the command line and the time stand in each JSON that a command writes
 * (docs/formats.md). One thread. */
#pragma once

#include <jansson.h>

/* Notes the command line, whose words must live as long as the process, and the time. */
void slc_provenance_begin(const char *program, int argc, char **argv);

/* Write a time in UTC, as "2026-11-26T01:12:38Z": slc_provenance_began that of the process's beginning, slc_date_now
 * the present one. Both return `text`. */
char *slc_provenance_began(char text[32]);
char *slc_date_now(char text[32]);

/* Returns the text as JSON. A text that is no UTF-8, as the name of a file may be, has question marks in it. NULL: no
 * memory. */
json_t *slc_plain_text_json(const char *text);

/* Adds "command_line", "variables" and "date" to an object that has them not: the words of the command line, the
 * settings that the environment makes, and when the process began. Other values, and a process that has noted nothing,
 * stay as they are. */
void slc_provenance_add(json_t *content);
