/* Strategies from JSON: {"layers": {"h.0": "fsdp", "*": "sdp"}}. Every error names the file, the line and the key. */
#include "sched/planner_parts.h"

#include "lib/base/status.h"

#include <jansson.h>
#include <string.h>

enum { NAMES_BYTES = 1024 };

typedef struct {
    const slc_job *job;
    const char *path, *text;
    slc_strategy *out;
} reader;

/* The line on which `key` stands as a key; 0: written with escapes, so not found as it is. */
static int line_of(const reader *r, const char *key)
{
    size_t length = strlen(key);
    int line = 1;
    for (const char *at = r->text; *at; at++) {
        if (*at == '\n') line++;
        if (*at != '"' || strncmp(at + 1, key, length) || at[length + 1] != '"') continue;
        const char *behind = at + length + 2;
        behind += strspn(behind, " \t\r\n");
        if (*behind == ':') return line;
    }
    return 0;
}

static sluice_status wrong(const reader *r, const char *key, const char *what)
{
    int line = line_of(r, key);
    if (!line) return slc_error(SLUICE_ERR_FORMAT, "strategy file %s: \"%s\": %s", r->path, key, what);
    return slc_error(SLUICE_ERR_FORMAT, "strategy file %s, line %d: \"%s\": %s", r->path, line, key, what);
}

static sluice_status no_such_unit(const reader *r, const char *key)
{
    char names[NAMES_BYTES], what[NAMES_BYTES + 64];
    slc_unit_names(r->job, names, sizeof names);
    snprintf(what, sizeof what, "there is no such layer or tied parameter; there are %s", names);
    return wrong(r, key, what);
}

static sluice_status strategy_of(const reader *r, const char *key, const json_t *value, slc_strategy *out)
{
    const char *name = json_string_value(value);
    if (name && slc_strategy_parse(name, out)) return SLUICE_OK;
    char what[192];
    snprintf(what, sizeof what, "%s%.64s%s is not a strategy of a layer; choose dp, oss, sdp or fsdp", name ? "\"" : "",
             name ? name : "its value", name ? "\"" : "");
    return wrong(r, key, what);
}

static uint32_t find_unit(const slc_job *job, const char *name)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (!strcmp(job->units[u].name, name)) return u;
    return SLC_NONE;
}

static sluice_status read_layers(const reader *r, json_t *layers)
{
    slc_strategy others = SLC_STRATEGIES;
    const char *key;
    json_t *value;
    for (uint32_t u = 0; u < r->job->unit_count; u++) r->out[u] = SLC_STRATEGIES;
    json_object_foreach (layers, key, value) {
        uint32_t u = find_unit(r->job, key);
        bool star = !strcmp(key, "*");
        if (u == SLC_NONE && !star) return no_such_unit(r, key);
        sluice_status status = strategy_of(r, key, value, star ? &others : &r->out[u]);
        if (status) return status;
    }
    for (uint32_t u = 0; u < r->job->unit_count; u++) {
        if (r->out[u] == SLC_STRATEGIES) r->out[u] = others;
        if (r->out[u] == SLC_STRATEGIES)
            return slc_error(
                SLUICE_ERR_FORMAT,
                "strategy file %s, line %d: \"layers\" gives no strategy to \"%s\"; name it, or all others "
                "with \"*\"",
                r->path, line_of(r, "layers"), r->job->units[u].name);
    }
    return SLUICE_OK;
}

static sluice_status read_document(const reader *r, json_t *document)
{
    const char *key;
    json_t *value;
    json_object_foreach (document, key, value) {
        if (strcmp(key, "layers")) return wrong(r, key, "unknown; the file holds only \"layers\"");
        if (!json_is_object(value)) return wrong(r, key, "must be an object of layer names and strategies");
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
