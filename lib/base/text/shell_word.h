/* Texts as a shell takes them, for commands that are printed to be copied. */
#pragma once

typedef struct {
    char text[5000];
} slc_shell_word;

/* Returns the text as it is if every character is a plain one for a shell, else in single quotes. It is cut if it is
 * longer than any path. */
slc_shell_word slc_shell_word_of(const char *text);
