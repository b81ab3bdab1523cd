/* The functions that the public headers declare, and how many pointers each takes, read from the headers' text: so a
 * list that must have all of them can be held against what there is. */
#pragma once

#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUBLIC_FUNCTIONS_MAX = 300, PUBLIC_NAME_BYTES = 64 };

typedef struct {
    char name[PUBLIC_NAME_BYTES];
    int pointers; /* parameters that are pointers, to functions too, or arrays */
} public_function;

/* Overwrites comments, preprocessor lines, and what is in braces (but those of extern "C") with blanks. */
static inline void blank_what_declares_nothing(char *text)
{
    bool comment = false, line = false;
    int depth = 0;
    for (char *at; (at = strstr(text, "extern \"C\" {")) != NULL;) memset(at, ' ', strlen("extern \"C\" {"));
    for (char *c = text; *c; c++) {
        if (!comment && c[0] == '/' && c[1] == '*') comment = true;
        if (!comment && *c == '#') line = true;
        if (line && *c == '\n' && c[-1] != '\\') line = false;
        if (!comment && !line && *c == '{') depth++;
        const bool closes = !comment && !line && *c == '}';
        const bool ends = comment && c[0] == '*' && c[1] == '/';
        if (ends) c[1] = ' ';
        if (comment || line || depth || closes) *c = ' ';
        if (ends) comment = false;
        if (closes && depth) depth--;
    }
}

/* `at` is behind the opening parenthesis. */
static inline int count_pointers(const char *at)
{
    int depth = 1, pointers = 0;
    bool is_pointer = false;
    for (; *at && depth; at++) {
        depth += (*at == '(') - (*at == ')');
        is_pointer |= *at == '*' || *at == '[';
        if (depth && !(depth == 1 && *at == ',')) continue;
        pointers += is_pointer;
        is_pointer = false;
    }
    return pointers;
}

static inline int add_functions(char *text, public_function *out, int count)
{
    blank_what_declares_nothing(text);
    for (const char *at = text; (at = strstr(at, "sluice_")) != NULL;) {
        size_t length = 0;
        while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
        const bool whole = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (whole && at[length] == '(' && length < PUBLIC_NAME_BYTES && count < PUBLIC_FUNCTIONS_MAX) {
            snprintf(out[count].name, sizeof out[count].name, "%.*s", (int)length, at);
            out[count++].pointers = count_pointers(at + length + 1);
        }
        at += length;
    }
    return count;
}

/* Returns how many functions the headers *.h in `folder` declare; -1: a header cannot be read. */
static inline int read_public_functions(const char *folder, public_function *out)
{
    char pattern[1024];
    glob_t found = {0};
    int count = 0;
    snprintf(pattern, sizeof pattern, "%s/*.h", folder);
    if (glob(pattern, 0, NULL, &found)) return -1;
    for (size_t i = 0; i < found.gl_pathc && count >= 0; i++) {
        static char text[1 << 20];
        FILE *file = fopen(found.gl_pathv[i], "r");
        const size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : sizeof text - 1;
        text[bytes] = 0;
        if (file) fclose(file);
        count = bytes < sizeof text - 1 ? add_functions(text, out, count) : -1;
    }
    globfree(&found);
    return count;
}
