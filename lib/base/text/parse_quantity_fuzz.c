/* Any text must be read or refused; a result must be a valid quantity. */
#include "lib/base/text/parse_quantity.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    uint64_t bytes;
    double fraction = 0, rate, seconds;
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    slc_parse_bytes(text, &bytes);
    if (!slc_parse_budget(text, &bytes, &fraction) && !(fraction >= 0)) abort();
    if (!slc_parse_bandwidth(text, &rate) && !(rate > 0 && isfinite(rate))) abort();
    if (!slc_parse_seconds(text, &seconds) && !(seconds >= 0 && isfinite(seconds))) abort();
    free(text);
    return 0;
}
