/* Lists with commas between their items, as a command line has them. */
#pragma once

#include <stddef.h>

/* Cuts the next item off *rest, in place, as strsep does: NULL when there is none left. `\,` is a comma that belongs to
 * the item, which gets it without the backslash. */
char *slc_next_item(char **rest);

/* Writes an item as a list has it. Cut if it does not fit. */
void slc_item_write(const char *item, char *out, size_t bytes);
