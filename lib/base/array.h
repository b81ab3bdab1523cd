/* Arrays that grow by one element at a time. Their room follows from the number of elements, so no struct keeps it: it
 * is the power of two that holds them. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Makes room in `array` for one element more than `count`. The array is NULL at first, and nothing else makes it grow.
 * Returns false if there is no memory; the array is then as it was. */
#define SLC_ROOM_FOR_ONE(array, count) slc_array_grow(&(array), (count), sizeof *(array))

static inline bool slc_array_grow(void *array, size_t count, size_t element_bytes)
{
    void *at;
    if (count & (count - 1)) return true;
    memcpy(&at, array, sizeof at); /* a pointer to elements of any type */
    at = realloc(at, (count ? 2 * count : 1) * element_bytes);
    if (at) memcpy(array, &at, sizeof at);
    return at != NULL;
}
