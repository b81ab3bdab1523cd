/* Computes Levenshtein's distance, and keeps only one row of its table. */
#include "lib/base/text/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST_NAME = 64 };

static size_t distance(const char *a, size_t a_length, const char *b)
{
    size_t row[LONGEST_NAME + 1], b_length = strlen(b);
    if (a_length > LONGEST_NAME || b_length > LONGEST_NAME) return a_length + b_length;
    for (size_t k = 0; k <= b_length; k++) row[k] = k;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            size_t replaced = diagonal + (a[i - 1] != b[k - 1]);
            size_t shorter = row[k] < row[k - 1] ? row[k] : row[k - 1];
            diagonal = row[k];
            row[k] = replaced < shorter + 1 ? replaced : shorter + 1;
        }
    }
    return row[b_length];
}

void slc_nearest_offer(slc_nearest *nearest, const char *typed, size_t length, const char *known)
{
    const size_t far = distance(typed, length, known);
    if (nearest->name && far >= nearest->distance) return;
    *nearest = (slc_nearest){known, far};
}

const char *slc_nearest_suggestion(const slc_nearest *nearest, size_t length)
{
    const bool few = nearest->distance <= 2 && 2 * nearest->distance <= length; /* two neighbours that changed places */
    return nearest->name && (few || 3 * nearest->distance <= length) ? nearest->name : NULL;
}
