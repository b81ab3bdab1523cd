/* Texts as a shell takes them, for commands that are printed to be copied. */
#pragma once

typedef struct {
    char text[5000];
} slc_shell_word;

/* The text itself if no shell would see anything in it but letters, else in single quotes. Cut if it is longer
 * than any path. */
slc_shell_word slc_shell_word_of(const char *text);
