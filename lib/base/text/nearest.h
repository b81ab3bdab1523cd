/* The known name that is most like a mistyped one, for messages that end with "did you mean". Any thread. */
#pragma once

#include <stddef.h>

/* The search so far; begins as {0}. */
typedef struct {
    const char *name; /* the nearest known name; NULL: none was offered */
    size_t distance;  /* insertions, deletions and replacements that lead to it (Levenshtein); 0: it is that name */
} slc_nearest;

/* Compares `typed`, of `length` characters, with one more known name, which must outlive the search. */
void slc_nearest_offer(slc_nearest *nearest, const char *typed, size_t length, const char *known);

/* Returns the name to suggest; NULL: no name is near enough. A name is near enough if at most a third of the typed
 * characters are wrong, or at most two that are no more than half of them. */
const char *slc_nearest_suggestion(const slc_nearest *nearest, size_t length);
