#include "lib/base/text/list_item.h"

char *slc_next_item(char **rest)
{
    char *item = *rest, *to = item, *from = item;
    if (!item) return NULL;
    for (; *from && *from != ','; from++) {
        if (from[0] == '\\' && from[1] == ',') from++;
        *to++ = *from;
    }
    *rest = *from ? from + 1 : NULL;
    *to = '\0';
    return item;
}

void slc_item_write(const char *item, char *out, size_t bytes)
{
    size_t used = 0;
    for (; *item && used + 2 < bytes; item++) {
        if (*item == ',') out[used++] = '\\';
        out[used++] = *item;
    }
    out[used] = '\0';
}
