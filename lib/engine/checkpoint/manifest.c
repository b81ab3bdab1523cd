/* tests/checkpoint/onebit_checkpoint_test.c covers this file. */
#include "lib/engine/checkpoint/manifest.h"

#include "lib/base/file/file.h"
#include "lib/base/hash/crc32c.h"
#include "lib/base/status.h"
#include "lib/plan/json/json_read.h"
#include "lib/plan/json/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With this limit no sum of bytes overflows. */
static const uint64_t elements_max = UINT64_C(1) << 56;

/* ---- The checksum ---- */

enum { SEAL_ROOM = 48 };
static const char seal_begins[] = ",\n  \"crc32c\": ";

/* Makes the end of a manifest whose text so far is `text`. */
static void make_seal(const char *text, size_t length, char seal[SEAL_ROOM])
{
    snprintf(seal, SEAL_ROOM, "%s%u\n}\n", seal_begins, slc_crc32c(0, text, length));
}

/* Checks the seal at the end of the text. Anything but the right seal is damage, and so is text after it. */
static sluice_status check_seal(const char *text, size_t length)
{
    char seal[SEAL_ROOM];
    size_t least = sizeof seal_begins - 1, at = length;
    while (at && (length - at < least || memcmp(text + at, seal_begins, least))) at--;
    make_seal(text, at, seal);
    if (at && length - at == strlen(seal) && !memcmp(text + at, seal, length - at)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "damaged: it does not end with the checksum of its text");
}

/* ---- Writing ---- */

static void put_file(slc_json_text *text, const slc_manifest_file *file)
{
    slc_json_text_add(text, "{\"bytes\": %llu, \"crc32c\": %u}", (unsigned long long)file->bytes, file->crc32c);
}

static void put_names(slc_json_text *text, const char *key, char *const *names, uint32_t count)
{
    slc_json_text_add(text, ",\n  \"%s\": [", key);
    for (uint32_t i = 0; i < count; i++) slc_json_text_string(text, i ? ", " : "", names[i]);
    slc_json_text_add(text, "]");
}

static void put_progress(slc_json_text *text, const slc_manifest *m)
{
    slc_json_text_add(text, ",\n  \"progress\": [");
    for (uint32_t i = 0; i < m->progress_count; i++) {
        slc_json_text_string(text, i ? ",\n    {\"name\": " : "\n    {\"name\": ", m->progress[i].name);
        slc_json_text_real(text, ", \"value\": ", m->progress[i].value);
        slc_json_text_add(text, "}");
    }
    slc_json_text_add(text, "\n  ]");
}

static void put_param(slc_json_text *text, const slc_manifest *m, const slc_manifest_param *param)
{
    slc_json_text_string(text, "\n    {\"name\": ", param->name);
    slc_json_text_add(text, ", \"elements\": %llu, \"trainable\": %s", (unsigned long long)param->elements,
                      param->trainable ? "true" : "false");
    if (param->missed) slc_json_text_add(text, ", \"updates\": %llu", (unsigned long long)(m->step - param->missed));
    for (uint32_t i = 0; param->trainable && i < m->number_count; i++)
        slc_json_text_real(text, i ? ", " : ", \"numbers\": [", param->numbers[i]);
    slc_json_text_add(text, param->trainable && m->number_count ? "]}" : "}");
}

static int version_of(const slc_manifest *m)
{
    bool alike = true;
    for (uint32_t p = 0; p < m->param_count; p++) alike &= !m->params[p].missed;
    return alike ? SLC_MANIFEST_VERSION_ALIKE : SLC_MANIFEST_VERSION;
}

sluice_status slc_manifest_to_json(const slc_manifest *m, char **out)
{
    slc_json_text text = {0};
    slc_json_text_add(&text, "{\n  \"version\": %d,\n  \"serial\": %llu,\n  \"step\": %llu", version_of(m),
                      (unsigned long long)m->serial, (unsigned long long)m->step);
    slc_json_text_string(&text, ",\n  \"optimizer\": ", m->optimizer);
    put_names(&text, "states", m->states, m->state_count);
    if (m->own_count) put_names(&text, "own", m->own, m->own_count);
    if (m->progress_count) put_progress(&text, m);
    if (m->number_count) put_names(&text, "numbers", m->number_names, m->number_count);
    slc_json_text_add(&text, ",\n  \"parameters\": [");
    for (uint32_t p = 0; p < m->param_count; p++) {
        if (p) slc_json_text_add(&text, ",");
        put_param(&text, m, &m->params[p]);
    }
    slc_json_text_add(&text, "\n  ],\n  \"files\": [");
    for (uint32_t f = 0; f < m->file_count; f++) {
        slc_json_text_add(&text, f ? ",\n    " : "\n    ");
        put_file(&text, &m->files[f]);
    }
    slc_json_text_add(&text, "\n  ],\n  \"extra\": ");
    put_file(&text, &m->extra);
    if (!text.status && !fflush(text.out)) {
        char seal[SEAL_ROOM];
        make_seal(text.bytes, text.length, seal);
        slc_json_text_add(&text, "%s", seal);
    }
    return slc_json_text_finish(&text, out);
}

/* ---- Reading ---- */

typedef struct {
    uint32_t version;
    uint64_t serial, step, crc32c;
    const char *optimizer;
    json_t *states, *own, *progress, *numbers, *parameters, *files, *extra;
} top_row;

typedef struct {
    const char *name;
    uint64_t elements;
    bool trainable;
    uint64_t updates;
    json_t *numbers;
} param_row;

typedef struct {
    const char *name;
    double value;
} number_row;

typedef struct {
    uint64_t bytes, crc32c;
} file_row;

#define REQUIRED(row, member, type) FIELD(row, member, #member, type, true)
#define OPTIONAL(row, member, type) FIELD(row, member, #member, type, false)

static const slc_json_field top_fields[] = {
    REQUIRED(top_row, version, SLC_JSON_COUNT),    REQUIRED(top_row, step, SLC_JSON_SIZE),
    REQUIRED(top_row, optimizer, SLC_JSON_NAME),   REQUIRED(top_row, states, SLC_JSON_ARRAY),
    REQUIRED(top_row, parameters, SLC_JSON_ARRAY), REQUIRED(top_row, files, SLC_JSON_ARRAY),
    REQUIRED(top_row, extra, SLC_JSON_ANY),        OPTIONAL(top_row, own, SLC_JSON_ARRAY),
    OPTIONAL(top_row, progress, SLC_JSON_ARRAY),   OPTIONAL(top_row, numbers, SLC_JSON_ARRAY),
    OPTIONAL(top_row, crc32c, SLC_JSON_SIZE),      OPTIONAL(top_row, serial, SLC_JSON_SIZE),
};
static const slc_json_field param_fields[] = {
    REQUIRED(param_row, name, SLC_JSON_NAME),      REQUIRED(param_row, elements, SLC_JSON_SIZE),
    REQUIRED(param_row, trainable, SLC_JSON_FLAG), OPTIONAL(param_row, updates, SLC_JSON_SIZE),
    OPTIONAL(param_row, numbers, SLC_JSON_ARRAY),
};
static const slc_json_field number_fields[] = {
    REQUIRED(number_row, name, SLC_JSON_NAME),
    REQUIRED(number_row, value, SLC_JSON_NUMBER),
};
static const slc_json_field file_fields[] = {
    REQUIRED(file_row, bytes, SLC_JSON_SIZE),
    REQUIRED(file_row, crc32c, SLC_JSON_SIZE),
};

static sluice_status copy_name(const char *name, char **out)
{
    *out = strdup(name);
    return *out ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "manifest");
}

/* Reads names, which must differ, at most `most`. `names` NULL: there are none. */
static sluice_status read_names(const slc_json_place *list, const json_t *names, uint32_t most, char **out,
                                uint32_t *out_count)
{
    size_t count = json_array_size(names);
    if (count > most) return slc_json_fault(list, "%zu of them; there are at most %u", count, most);
    for (size_t i = 0; i < count; i++) {
        slc_json_place at = {list, NULL, i};
        const char *name;
        sluice_status status = slc_json_value(&at, json_array_get(names, i), SLC_JSON_NAME, &name);
        for (uint32_t k = 0; !status && k < *out_count; k++)
            if (!strcmp(out[k], name)) status = slc_json_fault(&at, "\"%s\" is there already", name);
        if (!status) status = copy_name(name, &out[*out_count]);
        if (status) return status;
        ++*out_count;
    }
    return SLUICE_OK;
}

static sluice_status read_progress(const slc_json_place *top, const json_t *progress, slc_manifest *out)
{
    slc_json_place list = {top, "progress", 0};
    size_t count = json_array_size(progress);
    if (count > SLC_MANIFEST_NUMBERS_MAX)
        return slc_json_fault(&list, "%zu numbers; an optimizer keeps at most %d", count, SLC_MANIFEST_NUMBERS_MAX);
    for (size_t i = 0; i < count; i++) {
        slc_json_place at = {&list, NULL, i};
        number_row row = {0};
        sluice_status status = SLC_JSON_MEMBERS(&at, json_array_get(progress, i), number_fields, &row);
        if (!status) status = copy_name(row.name, &out->progress[i].name);
        if (status) return status;
        out->progress[i].value = row.value;
        out->progress_count++;
    }
    return SLUICE_OK;
}

static sluice_status read_numbers(const slc_json_place *param, const json_t *numbers, uint32_t wanted,
                                  slc_manifest_param *out)
{
    slc_json_place list = {param, "numbers", 0};
    size_t count = json_array_size(numbers);
    sluice_status status = SLUICE_OK;
    if (count != (out->trainable ? wanted : 0))
        return slc_json_fault(&list, "%zu numbers of a %s parameter, not %u", count,
                              out->trainable ? "trainable" : "frozen", out->trainable ? wanted : 0);
    for (size_t i = 0; !status && i < count; i++) {
        slc_json_place at = {&list, NULL, i};
        status = slc_json_value(&at, json_array_get(numbers, i), SLC_JSON_NUMBER, &out->numbers[i]);
    }
    return status;
}

static sluice_status read_param(const slc_json_place *at, const json_t *object, json_t *names, const slc_manifest *m,
                                slc_manifest_param *out)
{
    param_row row = {.updates = m->step};
    slc_json_place name = {at, "name", 0}, elements = {at, "elements", 0}, updates = {at, "updates", 0};
    sluice_status status = SLC_JSON_MEMBERS(at, object, param_fields, &row);
    if (status) return status;
    if (row.updates > m->step)
        return slc_json_fault(&updates, "%llu, of a checkpoint after %llu", (unsigned long long)row.updates,
                              (unsigned long long)m->step);
    if (!row.elements || row.elements > elements_max)
        return slc_json_fault(&elements, "%llu; give 1 to 2^56", (unsigned long long)row.elements);
    if (json_object_get(names, row.name)) return slc_json_fault(&name, "\"%s\" is there already", row.name);
    if (json_object_set_new(names, row.name, json_true())) return slc_error(SLUICE_ERR_MEMORY, "manifest");
    *out = (slc_manifest_param){.elements = row.elements, .trainable = row.trainable, .missed = m->step - row.updates};
    status = copy_name(row.name, &out->name);
    return status ? status : read_numbers(at, row.numbers, m->number_count, out);
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
        status = read_param(&at, json_array_get(params, p), names, out, &out->params[p]);
        out->param_count = (uint32_t)p + 1;
    }
    json_decref(names);
    return status;
}

static sluice_status read_file(const slc_json_place *at, const json_t *object, slc_manifest_file *out)
{
    file_row row = {0};
    slc_json_place crc = {at, "crc32c", 0};
    sluice_status status = SLC_JSON_MEMBERS(at, object, file_fields, &row);
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

/* Parses the text of any version that this build reads. If the text is of none of them, the error is that of the newest
 * version. */
static sluice_status parse_version(const char *text, size_t length, json_t **document, int *version)
{
    static const int versions[] = {SLC_MANIFEST_VERSION, SLC_MANIFEST_VERSION_ALIKE, SLC_MANIFEST_VERSION_UNCOUNTED,
                                   SLC_MANIFEST_VERSION_UNSEALED};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        *version = versions[i];
        if (!slc_json_parse(text, length, *version, *version, document)) return SLUICE_OK;
    }
    return slc_json_parse(text, length, SLC_MANIFEST_VERSION, SLC_MANIFEST_VERSION, document);
}

/* Parses a manifest and checks its seal. Version 1 had no seal, so a manifest that says version 1 and yet has a
 * checksum is a damaged one of a later version. */
static sluice_status parse(const char *text, size_t length, json_t **document, bool *unsealed)
{
    int version;
    sluice_status status = parse_version(text, length, document, &version);
    *unsealed = version == SLC_MANIFEST_VERSION_UNSEALED;
    if (status || (*unsealed && !json_object_get(*document, "crc32c"))) return status;
    status = check_seal(text, length);
    if (!status && *unsealed) status = slc_error(SLUICE_ERR_FORMAT, "$.version: 1 has no checksum");
    if (status) json_decref(*document);
    return status;
}

sluice_status slc_manifest_from_json(const char *text, size_t length, slc_manifest *out)
{
    slc_json_place top = {0}, extra = {&top, "extra", 0};
    top_row row = {0};
    json_t *document;
    bool unsealed;
    *out = (slc_manifest){0};
    sluice_status status = parse(text, length, &document, &unsealed);
    if (status) return status;
    out->unsealed = unsealed;
    status = SLC_JSON_MEMBERS(&top, document, top_fields, &row);
    out->serial = row.serial;
    out->step = row.step;
    if (!status) status = copy_name(row.optimizer, &out->optimizer);
    slc_json_place states = {&top, "states", 0}, own = {&top, "own", 0}, numbers = {&top, "numbers", 0};
    if (!status) status = read_names(&states, row.states, SLUICE_OPTIMIZER_STATES_MAX, out->states, &out->state_count);
    if (!status) status = read_names(&own, row.own, SLC_MANIFEST_OWN_MAX, out->own, &out->own_count);
    if (!status) status = read_progress(&top, row.progress, out);
    if (!status)
        status = read_names(&numbers, row.numbers, SLC_MANIFEST_NUMBERS_MAX, out->number_names, &out->number_count);
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
    for (uint32_t i = 0; i < m->own_count; i++) free(m->own[i]);
    for (uint32_t i = 0; i < m->progress_count; i++) free(m->progress[i].name);
    for (uint32_t i = 0; i < m->number_count; i++) free(m->number_names[i]);
    for (uint32_t p = 0; p < m->param_count; p++) free(m->params[p].name);
    free(m->optimizer);
    free(m->params);
    free(m->files);
    *m = (slc_manifest){0};
}

/* ---- The file ---- */

static sluice_status read_text(const char *path, char **text, size_t *length)
{
    static const uint64_t most_bytes = UINT64_C(1) << 30;
    slc_file file;
    sluice_status status = slc_file_open(path, &file);
    /* A pipe or a device in its place might block or never end. */
    if (status == SLUICE_ERR_ARGUMENT) status = slc_error(SLUICE_ERR_FORMAT, "%s", sluice_last_error());
    if (!status && file.bytes > most_bytes)
        status = slc_error(SLUICE_ERR_FORMAT, "%s: %llu bytes are too many for a manifest", path,
                           (unsigned long long)file.bytes);
    *length = status ? 0 : (size_t)file.bytes;
    *text = status ? NULL : malloc(*length + 1);
    if (!status && !*text) status = slc_error(SLUICE_ERR_MEMORY, "%s", path);
    if (!status) status = slc_file_read(&file, 0, *length, *text);
    slc_file_close(&file);
    return status;
}

sluice_status slc_manifest_read(const char *path, slc_manifest *out, uint32_t *checksum)
{
    char *text = NULL;
    size_t length = 0;
    *out = (slc_manifest){0};
    sluice_status status = read_text(path, &text, &length);
    if (!status) *checksum = slc_crc32c(0, text, length);
    if (!status) status = slc_error_context(slc_manifest_from_json(text, length, out), "%s", path);
    free(text);
    return status;
}
