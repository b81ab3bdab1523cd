/* A copy of the text is walked once before jansson reads it. Numbers in it are replaced in their place, so lines and
 * columns stay. */
#include "lib/base/text/python_json.h"

#include "lib/base/status.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 2048, KEY_SHOWN = 64 }; /* jansson refuses what is nested deeper */

typedef struct {
    const char *path;
    char *at; /* the text ends with a 0, which is no part of it */
    int line;
    int depth;
    const char
        *keys[DEPTH_MAX + 1]; /* where the last key of each level begins, behind its quote; NULL: there is none */
} walk;

/* Passes a string: afterwards `at` is behind it. A string that is a key becomes that of its level. */
static void pass_string(walk *w)
{
    const char *begin = ++w->at;
    while (*w->at && *w->at != '"') w->at += w->at[0] == '\\' && w->at[1] ? 2 : 1;
    if (*w->at) w->at++;
    const char *next = w->at;
    while (*next && isspace((unsigned char)*next)) next++;
    if (*next == ':') w->keys[w->depth] = begin;
}

/* Passes a number: afterwards `at` is behind it, and the number is one that jansson can hold. */
static void pass_number(walk *w)
{
    char *begin = w->at, *end, shown[32];
    errno = 0;
    strtoll(begin, &end, 10);
    const bool beyond = errno == ERANGE && begin[*begin == '-'] != '0';
    w->at += strspn(begin, "0123456789+-.eE");
    if (!beyond || end != w->at) return; /* with a point or an exponent it is a real number, which jansson judges */
    double value = strtod(begin, NULL);
    if (value > 1e308) value = 1e308;
    if (value < -1e308) value = -1e308;
    const int used = snprintf(shown, sizeof shown, "%.0e", value); /* shorter than what 64 bits do not hold */
    memset(begin, ' ', (size_t)(end - begin));
    memcpy(begin, shown, (size_t)used);
}

static const char *not_finite(const char *at)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(at, words[i], strlen(words[i]))) return words[i];
    return NULL;
}

static sluice_status refuse(const walk *w, const char *word)
{
    char key[KEY_SHOWN + 1] = "";
    const char *from = w->keys[w->depth];
    for (size_t i = 0; from && i < KEY_SHOWN && from[i] && from[i] != '"'; i++)
        key[i] = iscntrl((unsigned char)from[i]) ? '?' : from[i];
    return slc_error(SLUICE_ERR_FORMAT, "%s:%d: \"%s\": %s: give a finite number, or leave the key out", w->path,
                     w->line, key, word);
}

static sluice_status walk_text(walk *w)
{
    const char *word;
    while (*w->at) {
        const char c = *w->at;
        if (c == '"') {
            pass_string(w);
        } else if ((word = not_finite(w->at)) != NULL) {
            return refuse(w, word);
        } else if (c == '-' || isdigit((unsigned char)c)) {
            pass_number(w);
        } else if (c == '{' || c == '[') {
            if (w->depth == DEPTH_MAX) return SLUICE_OK;
            w->keys[w->depth + 1] = w->keys[w->depth]; /* what stands in a list belongs to the list's key */
            w->depth++;
            w->at++;
        } else {
            if ((c == '}' || c == ']') && w->depth) w->depth--;
            w->line += c == '\n';
            w->at++;
        }
    }
    return SLUICE_OK;
}

sluice_status slc_python_json_read(const char *path, const char *text, size_t length, size_t flags, json_t **out)
{
    char *copy = malloc(length + 1);
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "%s: no memory for %zu bytes", path, length);
    memcpy(copy, text, length);
    copy[length] = '\0';
    walk w = {.path = path, .at = copy, .line = 1};
    json_error_t error;
    sluice_status status = walk_text(&w);
    json_t *root = status ? NULL : json_loadb(copy, length, flags, &error);
    free(copy);
    if (root) *out = root;
    if (status || root) return status;
    return slc_error(SLUICE_ERR_FORMAT, "%s:%d:%d: %s", path, error.line, error.column, error.text);
}
