/* Quantities as people write them. Units are read in upper or lower case; the whole text must be one quantity. Errors:
 * ARGUMENT quotes the text and says what is allowed. */
#pragma once

#include <sluice/status.h>
#include <stdint.h>

/* "4096", "4096B", "64K" = "64KiB" = 65536, "1.5GB" = 1500000000. Fractions of a byte are cut off. */
sluice_status slc_parse_bytes(const char *text, uint64_t *out);

/* Parses a budget: "900MiB" (*fraction becomes 0) or "60%" (*bytes becomes 0, *fraction 0.6). A number below 4096 must
 * have a unit, for it is more often a share or a number of MiB than one of bytes. */
sluice_status slc_parse_budget(const char *text, uint64_t *bytes, double *fraction);

/* "1gbit" = 125000000 bytes a second, "100mbit", "1.5GB" and "100MiB" (a second). */
sluice_status slc_parse_bandwidth(const char *text, double *bytes_per_s);

/* "50us", "1.5ms", "20ns", "2s", "50min", "1.5h"; without a unit, seconds. */
sluice_status slc_parse_seconds(const char *text, double *out);
