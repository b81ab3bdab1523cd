/* CSV: a row an image. The first line may name the columns, and then says which one holds the classes; else it is the
 * last one, unless the numbers themselves speak against it. images_test.c covers this file. */
#include "lib/data/images/images_parts.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CLASSES_MAX = 1 << 20, NUMBERED_LEAST = 16 };

typedef struct {
    const char *path;
    const uint8_t *at, *end;
    uint64_t line;             /* the number of lines before `at` */
    uint32_t pixels, label_at; /* of a row: its samples; the place of its class among all columns */
    bool named;                /* the first line names the columns */
} table;

/* ---- Fields ---- */

/* Reads one number and the comma or end of line after it; *at moves past that. Decimal zeros may follow the number:
 * "16.0". */
static bool read_field(const uint8_t **at, const uint8_t *end, uint32_t most, uint32_t *out, bool *last)
{
    const uint8_t *c = *at;
    uint32_t number = 0;
    while (c < end && *c == ' ') c++;
    const uint8_t *digits = c;
    for (; c < end && *c >= '0' && *c <= '9'; c++)
        if ((number = number * 10 + (*c - '0')) > most) return false;
    if (c == digits) return false;
    if (c < end && *c == '.')
        for (c++; c < end && *c == '0'; c++) {
        }
    while (c < end && (*c == ' ' || *c == '\r')) c++;
    *last = c == end || *c == '\n';
    if (!*last && *c != ',') return false;
    *at = c < end ? c + 1 : c;
    *out = number;
    return true;
}

static uint32_t fields_of_line(const uint8_t *at, const uint8_t *end)
{
    uint32_t fields = 1;
    for (; at < end && *at != '\n'; at++) fields += *at == ',';
    return fields;
}

static uint32_t root_of(uint32_t square)
{
    uint32_t root = 0;
    while ((uint64_t)(root + 1) * (root + 1) <= square) root++;
    return root;
}

/* Reads a line: the samples and the class of one image. */
static bool read_line(table *t, uint8_t *samples, uint32_t *label)
{
    bool last = false;
    for (uint32_t i = 0; i <= t->pixels; i++) {
        uint32_t value;
        if (last || !read_field(&t->at, t->end, i == t->label_at ? CLASSES_MAX - 1 : 255, &value, &last)) return false;
        if (i == t->label_at)
            *label = value;
        else
            *samples++ = (uint8_t)value;
    }
    return last;
}

/* ---- The first line ---- */

/* Takes the name at *at, without spaces and quotation marks around it; *at moves past its comma or its line. */
static size_t take_name(const uint8_t **at, const uint8_t *end, const char **name)
{
    const uint8_t *first = *at, *c = first;
    while (c < end && *c != ',' && *c != '\n') c++;
    *at = c < end ? c + 1 : c;
    while (first < c && strchr(" \r\"'", *first)) first++;
    while (c > first && strchr(" \r\"'", c[-1])) c--;
    *name = (const char *)first;
    return (size_t)(c - first);
}

static bool begins_a_name(const char *name, size_t bytes)
{
    const unsigned char c = bytes ? (unsigned char)*name : 0;
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

/* True if the line is column numbers, as a program writes them: 0, 1, 2 and so on. A small image may look like that by
 * chance, so there must be many. */
static bool is_numbered(const table *t)
{
    const uint8_t *at = t->at;
    bool last = false;
    for (uint32_t i = 0, number; i <= t->pixels; i++)
        if (last || !read_field(&at, t->end, UINT32_MAX / 16, &number, &last) || number != i) return false;
    return last && t->pixels >= NUMBERED_LEAST;
}

static sluice_status read_names(table *t)
{
    const uint8_t *at = t->at;
    const char *name;
    uint32_t labels = 0;
    for (uint32_t i = 0; i <= t->pixels; i++) {
        const size_t bytes = take_name(&at, t->end, &name);
        t->named |= begins_a_name(name, bytes);
        if (bytes != 5 || (strncasecmp(name, "label", 5) && strncasecmp(name, "class", 5))) continue;
        t->label_at = i;
        labels++;
    }
    if (labels == 1 || (!t->named && !is_numbered(t))) {
        if (t->named) t->at = at, t->line++;
        return SLUICE_OK;
    }
    return slc_error(
        SLUICE_ERR_FORMAT,
        "%s: is no IDX file, and as CSV its first line %s the columns, and %s of them is called \"label\" or "
        "\"class\"; call the one with the classes so",
        t->path, t->named ? "names" : "numbers", labels ? "more than one" : "none");
}

static sluice_status read_first_line(table *t)
{
    static const uint8_t mark[] = {0xEF, 0xBB, 0xBF}; /* UTF-8's, which some programs write before all else */
    if ((size_t)(t->end - t->at) > sizeof mark && !memcmp(t->at, mark, sizeof mark)) t->at += sizeof mark;
    t->pixels = t->label_at = fields_of_line(t->at, t->end) - 1;
    const uint32_t side = root_of(t->pixels);
    if (!t->pixels || side * side != t->pixels)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: is no IDX file, and no CSV of square grey images: its first line has %u samples and a "
                         "class; name one of them, or a folder with a folder of images for each class",
                         t->path, t->pixels);
    return read_names(t);
}

/* ---- Which column holds the classes ---- */

typedef struct {
    uint32_t distinct, most; /* values; the largest one */
    double share;            /* of the rows that have the value that most rows have */
} column;

/* *out begins as {0}. */
static sluice_status look_at_column(const slc_images *images, const uint8_t *samples, size_t stride, column *out)
{
    uint64_t *counts = calloc(samples ? 256 : images->classes, sizeof *counts), largest = 0;
    if (!counts) return slc_error(SLUICE_ERR_MEMORY, "values of a column");
    for (uint64_t i = 0; i < images->count; i++) {
        const uint32_t value = samples ? samples[i * stride] : (uint32_t)images->labels[i];
        const uint64_t count = ++counts[value];
        out->distinct += count == 1;
        if (value > out->most) out->most = value;
        if (count > largest) largest = count;
    }
    out->share = (double)largest / (double)images->count;
    free(counts);
    return SLUICE_OK;
}

/* True if the column looks like classes: it has a few values, none of which nearly all rows have. */
static bool may_be_classes(const column *first)
{
    return first->distinct >= 2 && first->share <= .9 && (first->most < 2 * first->distinct || first->distinct <= 32);
}

/* True if the last column looks like samples, and the first one does not. `most` is the largest sample between the two.
 * The last column must not go beyond `most`. Besides, one of these must hold: the first column goes beyond all samples
 * and has more than half as many values as its largest one; the last column has more different values than the first;
 * the first column is nowhere bright, and the last is dark nearly everywhere or as bright as the samples are. */
static bool looks_like_pixels(const column *last, const column *first, uint32_t most)
{
    if (last->most > most) return false;
    const bool beyond = first->most > most && first->most < 2 * first->distinct;
    return beyond || last->distinct > first->distinct ||
           (10 * first->most <= 9 * most && (last->share > .9 || 10 * last->most >= 9 * most));
}

/* Refuses the file if the first column looks more like classes than the last one, which was taken for them because
 * nothing says which it is. */
static sluice_status doubt_last_column(const table *t, const slc_images *images)
{
    column first = {0}, last = {0};
    uint32_t most = 0;
    sluice_status status = look_at_column(images, images->samples, t->pixels, &first);
    if (!status) status = look_at_column(images, NULL, 0, &last);
    if (status || !may_be_classes(&first)) return status;
    for (uint64_t i = 0; i < images->count; i++)
        for (uint32_t p = 1; p < t->pixels; p++)
            if (images->samples[i * t->pixels + p] > most) most = images->samples[i * t->pixels + p];
    if (!looks_like_pixels(&last, &first, most)) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_FORMAT,
        "%s: its first column looks like classes (%u values up to %u), and its last one like samples (%u "
        "up to %u); put a line before all others that names the columns and calls the one with the classes "
        "\"label\"",
        t->path, first.distinct, first.most, last.distinct, last.most);
}

/* ---- All of it ---- */

static sluice_status read_rows(table *t, slc_images *images)
{
    uint64_t room = 0;
    uint32_t label = 0;
    while (t->at < t->end) {
        uint8_t *samples = images->samples + images->count * t->pixels;
        t->line++;
        if (!read_line(t, samples, &label))
            return slc_error(SLUICE_ERR_FORMAT, "%s:%llu: is not %u whole numbers from 0 to 255 and a class%s", t->path,
                             (unsigned long long)t->line, t->pixels,
                             t->named ? " in the places that the first line names" : "");
        for (uint32_t i = 0; i < t->pixels; i++)
            if (samples[i] > images->raster.white) images->raster.white = samples[i];
        sluice_status status = slc_images_add_label(images, (int32_t)label, &room);
        if (status) return status;
    }
    images->bytes += room * sizeof *images->labels;
    if (images->count) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "%s: has a line with the names of columns and no images", t->path);
}

sluice_status slc_images_from_csv(const char *path, const uint8_t *bytes, size_t count, slc_images *images)
{
    table t = {.path = path, .at = bytes, .end = bytes + count};
    sluice_status status = read_first_line(&t);
    if (status) return status;
    const uint32_t side = root_of(t.pixels);
    images->samples = malloc(count); /* a sample takes at least two characters */
    if (!images->samples) return slc_error(SLUICE_ERR_MEMORY, "%s: its images", path);
    images->bytes = count;
    images->raster = (slc_raster){.height = side, .width = side, .channels = 1, .white = 1};
    status = read_rows(&t, images);
    return status || t.named || t.pixels == 1 ? status : doubt_last_column(&t, images);
}
