/* Reads strategies from JSON: {"layers": {"h.0": "fsdp", "*": "sdp"}}. Every error names the file, the line and the
 * key. A list such as "h.0=fsdp,h.3..h.5=dp" names layers by the same rules.
 * planner_test.c covers this file. */
#include "sched/planner.h"
#include "sched/planner/parts.h"

#include "lib/base/status.h"
#include "lib/base/text/list_item.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_BYTES = 1024, MESSAGE_BYTES = 1280 };

typedef struct {
    const slc_job *job;
    const char *path, *text; /* of the file; NULL: a list is read */
    slc_strategy *out;
} reader;

/* The line on which `key` occurs as a key; 0: it is written with escapes, so it is not found. */
static int line_of(const reader *r, const char *key)
{
    size_t length = strlen(key);
    int line = 1;
    for (const char *at = r->text; *at; at++) {
        if (*at == '\n') line++;
        if (*at != '"' || strncmp(at + 1, key, length) || at[length + 1] != '"') continue;
        const char *after = at + length + 2;
        after += strspn(after, " \t\r\n");
        if (*after == ':') return line;
    }
    return 0;
}

/* Returns an error that says what is wrong and, if a file is read, in which line the key is. */
__attribute__((format(printf, 3, 4))) static sluice_status fault(const reader *r, const char *key, const char *format,
                                                                 ...)
{
    char what[MESSAGE_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (!r->path) return slc_error(SLUICE_ERR_ARGUMENT, "%s", what);
    const int line = line_of(r, key);
    if (!line) return slc_error(SLUICE_ERR_FORMAT, "strategy file %s: %s", r->path, what);
    return slc_error(SLUICE_ERR_FORMAT, "strategy file %s, line %d: %s", r->path, line, what);
}

static sluice_status wrong_key(const reader *r, const char *key, const char *what)
{
    return fault(r, key, "\"%.128s\": %s", key, what);
}

static sluice_status no_such_unit(const reader *r, const char *key)
{
    char names[NAMES_BYTES], what[NAMES_BYTES + 64];
    slc_unit_names(r->job, names, sizeof names);
    snprintf(what, sizeof what, "there is no such layer or tied parameter; there are %s", names);
    return wrong_key(r, key, what);
}

static sluice_status strategy_of(const reader *r, const char *key, const json_t *value, slc_strategy *out)
{
    const char *name = json_string_value(value);
    if (name && slc_strategy_parse(name, out)) return SLUICE_OK;
    char what[192];
    snprintf(what, sizeof what, "%s%.64s%s is not a strategy of a layer; choose dp, oss, sdp, fsdp or onebit",
             name ? "\"" : "", name ? name : "its value", name ? "\"" : "");
    return wrong_key(r, key, what);
}

/* Refuses a strategy that the unit may not have, if a list names it: a list says what a unit must be. In a file the
 * nearest strategy takes its place. */
static sluice_status check_role(const reader *r, const char *key, uint32_t u)
{
    const slc_unit *unit = &r->job->units[u];
    const slc_strategy asked = r->out[u];
    if (r->path || slc_looks_up(unit) || slc_unit_may_be(r->job, unit, asked)) return SLUICE_OK;
    if (asked == SLC_ONEBIT)
        return wrong_key(r, key,
                         unit->trainable
                             ? "onebit is a choice only in a step of a compressed optimizer; choose dp, oss, "
                               "sdp or fsdp, or plan such a step (--lossy onebit)"
                             : "nothing is exchanged of a frozen layer; choose dp, oss, sdp or fsdp");
    return wrong_key(r, key, "a table that is split by its uses cannot be dp; choose oss, sdp or fsdp");
}

/* Reads a strategy that the file gives a unit by its own name. The rows that a look-up takes of a table follow the
 * table. */
static sluice_status read_unit(const reader *r, const char *key, const json_t *value, uint32_t u)
{
    const slc_unit *unit = &r->job->units[u];
    sluice_status status = strategy_of(r, key, value, &r->out[u]);
    if (!status) status = check_role(r, key, u);
    if (status || !slc_looks_up(unit) || slc_unit_may_be(r->job, unit, r->out[u])) return status;
    char what[256];
    snprintf(what, sizeof what, "what a look-up reads is gathered for it: fsdp alone; name \"%.64s\" instead",
             r->job->units[unit->partner].name);
    return wrong_key(r, key, what);
}

static uint32_t find_unit(const slc_job *job, const char *name)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (!strcmp(job->units[u].name, name)) return u;
    return SLC_NONE;
}

static bool in_fused_unit(const slc_job *job, const char *layer)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t n = 0; job->units[u].fused && n < job->units[u].use_count; n++)
            if (!strcmp(job->layers[job->units[u].uses[n].layer], layer)) return true;
    return false;
}

/* The layer whose name is the first `length` bytes; SLC_NONE: there is none. */
static uint32_t find_layer(const slc_job *job, const char *name, size_t length)
{
    for (uint32_t l = 0; l < job->layer_count; l++)
        if (!strncmp(job->layers[l], name, length) && !job->layers[l][length]) return l;
    return SLC_NONE;
}

/* Parses "FIRST..LAST": the layers from one to the other, in the form of a fused unit's name, whether or not they are
 * fused here. */
static bool parse_range(const slc_job *job, const char *key, uint32_t *first, uint32_t *last)
{
    for (const char *dots = strstr(key, ".."); dots; dots = strstr(dots + 1, "..")) {
        *first = find_layer(job, key, (size_t)(dots - key));
        *last = find_layer(job, dots + 2, strlen(dots + 2));
        if (*first != SLC_NONE && *last != SLC_NONE && *first < *last) return true;
    }
    return false;
}

/* The key under which the file names a layer, by itself or in a range; NULL: there is none. */
static const char *key_of(const reader *r, json_t *layers, uint32_t layer)
{
    const char *key;
    json_t *value;
    uint32_t first, last;
    if (json_object_get(layers, r->job->layers[layer])) return r->job->layers[layer];
    json_object_foreach (layers, key, value)
        if (parse_range(r->job, key, &first, &last) && first <= layer && layer <= last) return key;
    return NULL;
}

/* Returns true if the unit holds a layer's own parameters, or those of several layers. */
static bool is_of_layers(const slc_job *job, const slc_unit *unit)
{
    return unit->fused || !strcmp(unit->name, job->layers[unit->uses[0].layer]);
}

/* Reads the strategy of a unit from those of its layers, which must all be the same; the unit's own name takes
 * precedence. */
static sluice_status read_by_layer(const reader *r, json_t *layers, slc_strategy others, uint32_t u)
{
    const slc_unit *unit = &r->job->units[u];
    slc_strategy first = SLC_STRATEGIES;
    if (r->out[u] != SLC_STRATEGIES) return SLUICE_OK;
    for (uint32_t n = 0; n < unit->use_count; n++) {
        const char *layer = r->job->layers[unit->uses[n].layer];
        const char *key = key_of(r, layers, unit->uses[n].layer);
        slc_strategy strategy = others;
        sluice_status status = key ? strategy_of(r, key, json_object_get(layers, key), &strategy) : SLUICE_OK;
        if (status) return status;
        if (!n) first = strategy;
        if (strategy != first)
            return fault(r, "layers",
                         "layers of \"%s\" are one unit and must have one strategy, \"%s\" has another than \"%s\"; "
                         "SLUICE_PLAN_FUSE=off keeps layers apart",
                         unit->name, layer, r->job->layers[unit->uses[0].layer]);
    }
    r->out[u] = first;
    return first == SLC_STRATEGIES || first == others ? SLUICE_OK : check_role(r, unit->name, u);
}

/* Units that a list does not name stay SLC_STRATEGIES. */
static sluice_status read_layers(const reader *r, json_t *layers)
{
    slc_strategy others = SLC_STRATEGIES;
    const char *key;
    json_t *value;
    for (uint32_t u = 0; u < r->job->unit_count; u++) r->out[u] = SLC_STRATEGIES;
    json_object_foreach (layers, key, value) {
        uint32_t u = find_unit(r->job, key);
        bool star = !strcmp(key, "*");
        uint32_t first, last;
        if (u == SLC_NONE && !star && (in_fused_unit(r->job, key) || parse_range(r->job, key, &first, &last))) continue;
        if (u == SLC_NONE && !star) return no_such_unit(r, key);
        sluice_status status = star ? strategy_of(r, key, value, &others) : read_unit(r, key, value, u);
        if (status) return status;
    }
    for (uint32_t u = 0; u < r->job->unit_count; u++) {
        const slc_unit *unit = &r->job->units[u];
        sluice_status status = is_of_layers(r->job, unit) ? read_by_layer(r, layers, others, u) : SLUICE_OK;
        if (status) return status;
        if (r->out[u] == SLC_STRATEGIES) r->out[u] = slc_looks_up(unit) ? slc_role_of(unit)->otherwise : others;
        if (r->out[u] == SLC_STRATEGIES && r->path)
            return fault(r, "layers", "\"layers\" gives no strategy to \"%s\"; name it, or all others with \"*\"",
                         unit->name);
    }
    return SLUICE_OK;
}

static sluice_status read_document(const reader *r, json_t *document)
{
    const char *key;
    json_t *value;
    json_object_foreach (document, key, value) {
        if (strcmp(key, "layers")) return wrong_key(r, key, "unknown; the file holds only \"layers\"");
        if (!json_is_object(value)) return wrong_key(r, key, "must be an object of layer names and strategies");
    }
    json_t *layers = json_object_get(document, "layers");
    if (!layers) return slc_error(SLUICE_ERR_FORMAT, "strategy file %s, line 1: \"layers\" is missing", r->path);
    return read_layers(r, layers);
}

sluice_status slc_strategies_from_json(const slc_job *job, const char *path, const char *text, slc_strategy *out)
{
    reader r = {.job = job, .path = path, .text = text, .out = out};
    json_error_t error;
    json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!document) return slc_error(SLUICE_ERR_FORMAT, "strategy file %s, line %d: %s", path, error.line, error.text);
    sluice_status status = read_document(&r, document);
    json_decref(document);
    return status;
}

/* Cuts "h.3=fsdp" at its last "=" and adds it to the layers. */
static sluice_status add_item(const reader *r, char *item, json_t *layers)
{
    char *equals = strrchr(item, '=');
    if (!equals || equals == item)
        return slc_error(SLUICE_ERR_ARGUMENT, "\"%.128s\" is no LAYER=STRATEGY; give a list such as %s=fsdp", item,
                         r->job->layer_count ? r->job->layers[0] : "h.0");
    *equals = '\0';
    if (json_object_get(layers, item)) return wrong_key(r, item, "it is named twice; leave one out");
    if (!json_object_set_new(layers, item, json_string(equals + 1))) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "the list is not UTF-8");
}

sluice_status slc_strategies_from_list(const slc_job *job, const char *list, slc_strategy *out)
{
    const reader r = {.job = job, .out = out};
    char *copy = strdup(list), *rest = copy, *item;
    json_t *layers = json_object();
    sluice_status status = copy && layers ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "list of strategies");
    while (!status && (item = slc_next_item(&rest))) status = add_item(&r, item, layers);
    if (!status) status = read_layers(&r, layers);
    json_decref(layers);
    free(copy);
    return status;
}
