/* Reads a number and a unit, which it looks up in a table. */
#include "lib/base/text/parse_quantity.h"

#include "lib/base/status.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const char *name;
    double factor;
} unit;

enum { LEAST_WITHOUT_UNIT = 4096 }; /* bytes of a budget */

static const unit byte_units[] = {
    {"", 1},
    {"b", 1},
    {"k", 1024},
    {"kib", 1024},
    {"kb", 1e3},
    {"m", 1048576},
    {"mib", 1048576},
    {"mb", 1e6},
    {"g", 1073741824},
    {"gb", 1e9},
    {"gib", 1073741824},
    {"t", 1099511627776},
    {"tb", 1e12},
    {"tib", 1099511627776},
    {NULL, 0},
};
static const unit bit_units[] = {
    {"bit", 0.125}, {"kbit", 125}, {"mbit", 125e3}, {"gbit", 125e6}, {"tbit", 125e9}, {NULL, 0},
};
static const unit time_units[] = {
    {"", 1}, {"h", 3600}, {"min", 60}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {NULL, 0},
};
static const unit percent_units[] = {{"%", 0.01}, {NULL, 0}};

/* True if the text has no minus but in an exponent, as in 1e-3, and no hexadecimal number, which strtod would read too.
 */
static bool is_plain(const char *text)
{
    for (const char *c = text; *c; c++)
        if (strchr("xXpP", *c) || (*c == '-' && (c == text || tolower((unsigned char)c[-1]) != 'e'))) return false;
    return true;
}

static bool parse(const char *text, const unit *units, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || value < 0 || !is_plain(text)) return false;
    for (const unit *u = units; u->name; u++) {
        if (strcasecmp(end, u->name)) continue;
        *out = value * u->factor;
        return isfinite(*out);
    }
    return false;
}

sluice_status slc_parse_bytes(const char *text, uint64_t *out)
{
    double value;
    if (!parse(text, byte_units, &value) || value >= 9e18)
        return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" is not a size: give a number and B, KiB, MiB, GiB, KB, MB or GB",
                         text);
    *out = (uint64_t)value;
    return SLUICE_OK;
}

/* A few bytes as a bare number, as 60 or 1.5, hold no model: a unit or a per cent sign was forgotten. */
static bool lacks_unit(const char *text, uint64_t bytes)
{
    char *end;
    strtod(text, &end);
    return bytes < LEAST_WITHOUT_UNIT && !*end;
}

sluice_status slc_parse_budget(const char *text, uint64_t *bytes, double *fraction)
{
    double value;
    if (parse(text, percent_units, &value) && value > 0) {
        *bytes = 0;
        *fraction = value;
        return SLUICE_OK;
    }
    if (!strchr(text, '%') && !slc_parse_bytes(text, bytes) && *bytes && !lacks_unit(text, *bytes)) {
        *fraction = 0;
        return SLUICE_OK;
    }
    return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" is not a budget: give a size as 900MiB, or a share of dp as 60%%",
                     text);
}

/* True if a unit follows the number. A number alone is refused: one reader takes it for bits, another one for bytes. */
static bool ends_with_unit(const char *text)
{
    return *text && isalpha((unsigned char)text[strlen(text) - 1]);
}

sluice_status slc_parse_bandwidth(const char *text, double *bytes_per_s)
{
    if (ends_with_unit(text) && (parse(text, bit_units, bytes_per_s) || parse(text, byte_units, bytes_per_s)) &&
        *bytes_per_s > 0)
        return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" is not a bandwidth: give bits as 1gbit, or bytes as 100MiB, a second",
                     text);
}

sluice_status slc_parse_seconds(const char *text, double *out)
{
    if (parse(text, time_units, out)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" is not a time: give a number and h, min, s, ms, us or ns", text);
}
