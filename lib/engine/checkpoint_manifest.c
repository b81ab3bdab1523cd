#include "lib/engine/checkpoint_manifest.h"

#include "lib/base/status.h"
#include "lib/plan/json_read.h"
#include "lib/plan/json_text.h"

#include <stdlib.h>
#include <string.h>

/* So that no sum of bytes overflows. */
static const uint64_t elements_max = UINT64_C(1) << 56;

/* ---- Writing ---- */

static void put_file(slc_json_text *text, const slc_manifest_file *file)
{
    slc_json_text_add(text, "{\"bytes\": %llu, \"crc32c\": %u}", (unsigned long long)file->bytes, file->crc32c);
}

sluice_status slc_manifest_to_json(const slc_manifest *m, char **out)
{
    slc_json_text text = {0};
    slc_json_text_add(&text, "{\n  \"version\": %d,\n  \"step\": %llu,\n  \"optimizer\": ", SLC_CHECKPOINT_VERSION,
                      (unsigned long long)m->step);
    slc_json_text_string(&text, m->optimizer);
    slc_json_text_add(&text, ",\n  \"states\": [");
    for (uint32_t s = 0; s < m->state_count; s++) {
        slc_json_text_add(&text, s ? ", " : "");
        slc_json_text_string(&text, m->states[s]);
    }
    slc_json_text_add(&text, "],\n  \"parameters\": [");
    for (uint32_t p = 0; p < m->param_count; p++) {
        slc_json_text_add(&text, "%s\n    {\"name\": ", p ? "," : "");
        slc_json_text_string(&text, m->params[p].name);
        slc_json_text_add(&text, ", \"elements\": %llu, \"trainable\": %s}", (unsigned long long)m->params[p].elements,
                          m->params[p].trainable ? "true" : "false");
    }
    slc_json_text_add(&text, "\n  ],\n  \"files\": [");
    for (uint32_t f = 0; f < m->file_count; f++) {
        slc_json_text_add(&text, f ? ",\n    " : "\n    ");
        put_file(&text, &m->files[f]);
    }
    slc_json_text_add(&text, "\n  ],\n  \"extra\": ");
    put_file(&text, &m->extra);
    slc_json_text_add(&text, "\n}\n");
    return slc_json_text_finish(&text, out);
}

/* ---- Reading ---- */

typedef struct {
    uint32_t version;
    uint64_t step;
    const char *optimizer;
    json_t *states, *parameters, *files, *extra;
} top_row;

typedef struct {
    const char *name;
    uint64_t elements;
    bool trainable;
} param_row;

typedef struct {
    uint64_t bytes, crc32c;
} file_row;

#define FIELD(row, member, type)                                                                                       \
    {                                                                                                                  \
#member, type, true, offsetof(row, member)                                                                     \
    }
#define COUNT_OF(fields) (sizeof fields / sizeof *fields)

static const slc_json_field top_fields[] = {
    FIELD(top_row, version, SLC_JSON_COUNT),    FIELD(top_row, step, SLC_JSON_SIZE),
    FIELD(top_row, optimizer, SLC_JSON_NAME),   FIELD(top_row, states, SLC_JSON_ARRAY),
    FIELD(top_row, parameters, SLC_JSON_ARRAY), FIELD(top_row, files, SLC_JSON_ARRAY),
    FIELD(top_row, extra, SLC_JSON_ANY),
};
static const slc_json_field param_fields[] = {
    FIELD(param_row, name, SLC_JSON_NAME),
    FIELD(param_row, elements, SLC_JSON_SIZE),
    FIELD(param_row, trainable, SLC_JSON_FLAG),
};
static const slc_json_field file_fields[] = {
    FIELD(file_row, bytes, SLC_JSON_SIZE),
    FIELD(file_row, crc32c, SLC_JSON_SIZE),
};

static sluice_status copy_name(const char *name, char **out)
{
    *out = strdup(name);
    return *out ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "manifest");
}

static sluice_status read_states(const slc_json_place *top, const json_t *states, slc_manifest *out)
{
    slc_json_place list = {top, "states", 0};
    size_t count = json_array_size(states);
    if (count > SLUICE_OPTIMIZER_STATES_MAX)
        return slc_json_fault(&list, "%zu states; an optimizer has at most %d", count, SLUICE_OPTIMIZER_STATES_MAX);
    for (size_t s = 0; s < count; s++) {
        slc_json_place at = {&list, NULL, s};
        const char *name;
        sluice_status status = slc_json_value(&at, json_array_get(states, s), SLC_JSON_NAME, &name);
        for (uint32_t k = 0; !status && k < out->state_count; k++)
            if (!strcmp(out->states[k], name)) status = slc_json_fault(&at, "\"%s\" is there already", name);
        if (!status) status = copy_name(name, &out->states[out->state_count]);
        if (status) return status;
        out->state_count++;
    }
    return SLUICE_OK;
}

static sluice_status read_param(const slc_json_place *at, const json_t *object, json_t *names, slc_manifest_param *out)
{
    param_row row = {0};
    slc_json_place name = {at, "name", 0}, elements = {at, "elements", 0};
    sluice_status status = slc_json_members(at, object, param_fields, COUNT_OF(param_fields), &row);
    if (status) return status;
    if (!row.elements || row.elements > elements_max)
        return slc_json_fault(&elements, "%llu; give 1 to 2^56", (unsigned long long)row.elements);
    if (json_object_get(names, row.name)) return slc_json_fault(&name, "\"%s\" is there already", row.name);
    if (json_object_set_new(names, row.name, json_true())) return slc_error(SLUICE_ERR_MEMORY, "manifest");
    *out = (slc_manifest_param){.elements = row.elements, .trainable = row.trainable};
    return copy_name(row.name, &out->name);
}

static sluice_status read_params(const slc_json_place *top, const json_t *params, slc_manifest *out)
{
    slc_json_place list = {top, "parameters", 0};
    size_t count = json_array_size(params);
    json_t *names = json_object();
    out->params = calloc(count + 1, sizeof *out->params);
    sluice_status status = out->params && names ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%zu parameters", count);
    if (!status && count >= UINT32_MAX) status = slc_json_fault(&list, "%zu are too many", count);
    for (size_t p = 0; !status && p < count; p++) {
        slc_json_place at = {&list, NULL, p};
        status = read_param(&at, json_array_get(params, p), names, &out->params[p]);
        out->param_count = (uint32_t)p + 1;
    }
    json_decref(names);
    return status;
}

static sluice_status read_file(const slc_json_place *at, const json_t *object, slc_manifest_file *out)
{
    file_row row = {0};
    slc_json_place crc = {at, "crc32c", 0};
    sluice_status status = slc_json_members(at, object, file_fields, COUNT_OF(file_fields), &row);
    if (!status && row.crc32c > UINT32_MAX)
        status = slc_json_fault(&crc, "%llu is no checksum of 32 bits", (unsigned long long)row.crc32c);
    *out = (slc_manifest_file){row.bytes, (uint32_t)row.crc32c};
    return status;
}

static sluice_status read_files(const slc_json_place *top, const json_t *files, slc_manifest *out)
{
    slc_json_place list = {top, "files", 0};
    size_t count = json_array_size(files);
    if (!count || count > INT32_MAX) return slc_json_fault(&list, "%zu files; there is one of each rank", count);
    out->files = calloc(count, sizeof *out->files);
    if (!out->files) return slc_error(SLUICE_ERR_MEMORY, "%zu files", count);
    out->file_count = (uint32_t)count;
    sluice_status status = SLUICE_OK;
    for (size_t f = 0; !status && f < count; f++) {
        slc_json_place at = {&list, NULL, f};
        status = read_file(&at, json_array_get(files, f), &out->files[f]);
    }
    return status;
}

sluice_status slc_manifest_from_json(const char *text, size_t length, slc_manifest *out)
{
    slc_json_place top = {0}, extra = {&top, "extra", 0};
    top_row row = {0};
    json_t *document;
    *out = (slc_manifest){0};
    sluice_status status = slc_json_parse(text, length, SLC_CHECKPOINT_VERSION, &document);
    if (status) return status;
    status = slc_json_members(&top, document, top_fields, COUNT_OF(top_fields), &row);
    out->step = row.step;
    if (!status) status = copy_name(row.optimizer, &out->optimizer);
    if (!status) status = read_states(&top, row.states, out);
    if (!status) status = read_params(&top, row.parameters, out);
    if (!status) status = read_files(&top, row.files, out);
    if (!status) status = read_file(&extra, row.extra, &out->extra);
    if (status) slc_manifest_fini(out);
    json_decref(document);
    return status;
}

void slc_manifest_fini(slc_manifest *m)
{
    for (uint32_t s = 0; s < m->state_count; s++) free(m->states[s]);
    for (uint32_t p = 0; p < m->param_count; p++) free(m->params[p].name);
    free(m->optimizer);
    free(m->params);
    free(m->files);
    *m = (slc_manifest){0};
}
