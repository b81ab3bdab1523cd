/* Reads the units of a profile from JSON: parameters of layers, and the rows that a look-up touches of a tied
 * parameter. profile_json_test.c covers this file. */
#include "lib/plan/json/profile_reader.h"

#include "lib/base/status.h"

#include <stdlib.h>

static const uint64_t parameters_max = UINT64_C(1) << 58;

typedef struct {
    const char *name, *dtype;
    uint64_t parameters, block_bytes;
    bool trainable, fused;
    json_t *tensors; /* NULL: the unit is one tensor */
    json_t *rows;    /* the unit is the rows of a look-up; NULL: it has parameters of its own */
    json_t *uses;    /* NULL: the layer that the unit is named for */
} unit_row;

static const slc_json_field unit_fields[] = {
    FIELD(unit_row, name, "name", SLC_JSON_NAME, true),
    FIELD(unit_row, parameters, "parameters", SLC_JSON_SIZE, false), /* required without `rows` */
    FIELD(unit_row, tensors, "tensors", SLC_JSON_ARRAY, false),
    FIELD(unit_row, block_bytes, "block_bytes", SLC_JSON_SIZE, false),
    FIELD(unit_row, dtype, "dtype", SLC_JSON_TEXT, false),
    FIELD(unit_row, trainable, "trainable", SLC_JSON_FLAG, false),
    FIELD(unit_row, fused, "fused", SLC_JSON_FLAG, false),
    FIELD(unit_row, rows, "rows", SLC_JSON_OBJECT, false),
    FIELD(unit_row, uses, "uses", SLC_JSON_ARRAY, false),
};

typedef struct {
    const char *of;
    uint64_t row_elements, row_count, most_rows;
} rows_row;

static const slc_json_field rows_fields[] = {
    FIELD(rows_row, of, "of", SLC_JSON_NAME, true),
    FIELD(rows_row, row_elements, "row_elements", SLC_JSON_SIZE, true),
    FIELD(rows_row, row_count, "row_count", SLC_JSON_SIZE, true),
    FIELD(rows_row, most_rows, "most_rows", SLC_JSON_SIZE, true),
};

typedef struct {
    const char *layer;
    bool backward_value;
} use_row;

static const slc_json_field use_fields[] = {
    FIELD(use_row, layer, "layer", SLC_JSON_NAME, true),
    FIELD(use_row, backward_value, "backward_value", SLC_JSON_FLAG, false),
};

static sluice_status read_use(const slc_profile_reader *r, const slc_json_place *at, const json_t *value,
                              slc_unit *unit)
{
    use_row row = {.backward_value = true};
    sluice_status status = json_is_object(value) ? SLC_JSON_MEMBERS(at, value, use_fields, &row)
                                                 : slc_json_value(at, value, SLC_JSON_NAME, &row.layer);
    slc_use use = {.backward_value = row.backward_value};
    if (!status) status = slc_profile_find_layer(r, at, row.layer, &use.layer);
    if (status) return status;
    if (!use.backward_value && r->can_recompute[use.layer])
        return slc_json_fault(at,
                              "\"backward_value\" is false, and layer \"%s\" can recompute, which reads the values in "
                              "its backward; leave one of the two out",
                              row.layer);
    if (unit->use_count && use.layer <= unit->uses[unit->use_count - 1].layer)
        return slc_json_fault(at, "layer \"%s\" comes at or before \"%s\"; name the layers in forward order, each once",
                              row.layer, r->job.layers[unit->uses[unit->use_count - 1].layer]);
    unit->uses[unit->use_count++] = use;
    return SLUICE_OK;
}

static sluice_status read_uses(const slc_profile_reader *r, const slc_json_place *at, const unit_row *row,
                               slc_unit *unit)
{
    slc_json_place list = {at, "uses", 0};
    size_t count = row->uses ? json_array_size(row->uses) : 1;
    uint32_t layer = 0;
    if (!row->uses && !slc_profile_layer_of(r, row->name, &layer))
        return slc_json_fault(&list, "is missing and there is no layer \"%s\"; name the layers that use it", row->name);
    if (!count) return slc_json_fault(&list, "is empty; name the layers that use it");
    if (count > r->job.layer_count)
        return slc_json_fault(&list, "%zu layers of %u; name each once", count, r->job.layer_count);
    unit->uses = calloc(count, sizeof *unit->uses);
    if (!unit->uses) return slc_error(SLUICE_ERR_MEMORY, "unit \"%s\"", row->name);
    if (!row->uses) unit->uses[unit->use_count++] = (slc_use){layer, true};
    sluice_status status = SLUICE_OK;
    for (size_t n = 0; row->uses && !status && n < count; n++) {
        slc_json_place place = {&list, NULL, n};
        status = read_use(r, &place, json_array_get(row->uses, n), unit);
    }
    return status;
}

/* Keeps the lengths in the order of units, with their count; a unit of one tensor keeps none here. */
static sluice_status read_tensors(slc_profile_reader *r, const slc_json_place *at, const unit_row *row, uint32_t u)
{
    slc_json_place list = {at, "tensors", 0};
    size_t count = json_array_size(row->tensors);
    slc_profile_tensors *tensors = &r->tensors[u];
    uint64_t sum = 0;
    if (!row->tensors) return SLUICE_OK;
    if (!count || count >= INT32_MAX) return slc_json_fault(&list, "%zu tensors; give at least one", count);
    tensors->elements = calloc(count, sizeof *tensors->elements);
    if (!tensors->elements) return slc_error(SLUICE_ERR_MEMORY, "%zu tensors", count);
    tensors->count = (uint32_t)count;
    for (size_t t = 0; t < count; t++) {
        slc_json_place place = {&list, NULL, t};
        sluice_status status =
            slc_json_value(&place, json_array_get(row->tensors, t), SLC_JSON_SIZE, &tensors->elements[t]);
        if (status) return status;
        if (tensors->elements[t] > row->parameters - sum)
            return slc_json_fault(&place, "the tensors are longer than the unit's %llu parameters",
                                  (unsigned long long)row->parameters);
        sum += tensors->elements[t];
    }
    return SLUICE_OK;
}

static sluice_status check_fused(const slc_profile_reader *r, const slc_json_place *at, const slc_unit *unit)
{
    slc_json_place uses = {at, "uses", 0}, fused = {at, "fused", 0};
    if (!unit->fused) return SLUICE_OK;
    if (unit->use_count < 2 || !unit->trainable)
        return slc_json_fault(&fused, "true, but it is the trainable parameters of at least two layers that can be");
    for (uint32_t n = 1; n < unit->use_count; n++)
        if (unit->uses[n].layer != unit->uses[n - 1].layer + 1)
            return slc_json_fault(&uses, "layer \"%s\" does not follow \"%s\", as layers of a fused unit must",
                                  r->job.layers[unit->uses[n].layer], r->job.layers[unit->uses[n - 1].layer]);
    return SLUICE_OK;
}

/* ---- Rows of a look-up ---- */

/* Finds the unit that rows are rows of. They must follow it, and no other rows may have taken it. */
static sluice_status find_partner(const slc_profile_reader *r, const slc_json_place *rows, const char *name, uint32_t u)
{
    slc_json_place at = {rows, "of", 0};
    const json_t *number = json_object_get(r->unit_index, name);
    uint32_t of = number ? (uint32_t)json_integer_value(number) : u;
    const slc_unit *unit = &r->job.units[of];
    if (of == u) return slc_json_fault(&at, "there is no unit \"%s\" before this one", name);
    if (unit->role == SLC_UNIT_SPLIT)
        return slc_json_fault(&at, "unit \"%s\" has its rows already: \"%s\"", name, r->job.units[unit->partner].name);
    if (of + 1 != u) return slc_json_fault(&at, "unit \"%s\" is not the one before this; put its rows after it", name);
    if (unit->role == SLC_UNIT_ROWS || unit->fused)
        return slc_json_fault(&at, "unit \"%s\" is %s; give that of one tied parameter", name,
                              unit->fused ? "fused" : "of rows itself");
    return SLUICE_OK;
}

static sluice_status check_rows(const slc_json_place *at, const rows_row *row, uint64_t parameters)
{
    slc_json_place elements = {at, "row_elements", 0}, count = {at, "row_count", 0}, most = {at, "most_rows", 0};
    if (!row->row_elements) return slc_json_fault(&elements, "0 elements; give at least one");
    if (!row->row_count || row->row_count > UINT32_MAX)
        return slc_json_fault(&count, "%llu rows; give a count from 1 to 2^32 - 1", (unsigned long long)row->row_count);
    if (row->row_count > parameters / row->row_elements)
        return slc_json_fault(&count, "%llu rows of %llu elements are more than the %llu parameters of \"%s\"",
                              (unsigned long long)row->row_count, (unsigned long long)row->row_elements,
                              (unsigned long long)parameters, row->of);
    if (!row->most_rows || row->most_rows > row->row_count)
        return slc_json_fault(&most, "%llu rows; give a count from 1 to row_count, which is %llu",
                              (unsigned long long)row->most_rows, (unsigned long long)row->row_count);
    return SLUICE_OK;
}

/* Checks that the look-up is one layer, before all layers that use the whole parameter. */
static sluice_status check_look_up(const slc_profile_reader *r, const slc_json_place *at, const slc_unit *unit)
{
    slc_json_place uses = {at, "uses", 0};
    uint32_t first = r->job.units[unit->partner].uses[0].layer;
    if (unit->use_count != 1) return slc_json_fault(&uses, "%u layers; it is one that looks rows up", unit->use_count);
    if (unit->uses[0].layer >= first)
        return slc_json_fault(&uses, "layer \"%s\" does not come before \"%s\", which uses all of \"%s\"",
                              r->job.layers[unit->uses[0].layer], r->job.layers[first],
                              r->job.units[unit->partner].name);
    return SLUICE_OK;
}

/* Reads a ROWS unit, which takes everything but its rows and uses from the unit that they are rows of. */
static sluice_status read_rows(slc_profile_reader *r, const slc_json_place *at, const json_t *object,
                               const unit_row *in, uint32_t u)
{
    static const char *const others[] = {"parameters", "tensors", "block_bytes", "dtype", "trainable", "fused"};
    slc_json_place rows = {at, "rows", 0};
    slc_unit *unit = &r->job.units[u], *of;
    rows_row row;
    sluice_status status = SLC_JSON_MEMBERS(&rows, in->rows, rows_fields, &row);
    if (!status) status = find_partner(r, &rows, row.of, u);
    if (!status) status = check_rows(&rows, &row, r->parameters[u - 1]);
    for (size_t k = 0; !status && k < sizeof others / sizeof *others; k++) {
        slc_json_place other = {at, others[k], 0};
        if (json_object_get(object, others[k]))
            status = slc_json_fault(&other, "follows from \"%s\", whose rows these are; leave it out", row.of);
    }
    if (status) return status;
    of = &r->job.units[u - 1];
    *unit = (slc_unit){.name = in->name,
                       .dtype = of->dtype,
                       .trainable = of->trainable,
                       .role = SLC_UNIT_ROWS,
                       .partner = u - 1,
                       .row_elements = row.row_elements,
                       .row_count = row.row_count,
                       .most_rows = row.most_rows};
    of->role = SLC_UNIT_SPLIT;
    of->partner = u;
    slc_profile_unit_lengths(0, 0, r->job.world, unit);
    status = read_uses(r, at, in, unit);
    return status ? status : check_look_up(r, at, unit);
}

static sluice_status read_unit(slc_profile_reader *r, const slc_json_place *at, const json_t *object, uint32_t u)
{
    unit_row row = {.trainable = true, .dtype = "fp32", .block_bytes = r->times.link.block_bytes};
    slc_unit *unit = &r->job.units[u];
    slc_json_place parameters = {at, "parameters", 0};
    sluice_status status = SLC_JSON_MEMBERS(at, object, unit_fields, &row);
    if (!status) status = slc_profile_add_name(at, r->unit_index, row.name);
    if (status) return status;
    if (row.rows) return read_rows(r, at, object, &row, u);
    if (!json_object_get(object, "parameters"))
        return slc_json_fault(&parameters, "is missing; give a count from 1 to 2^58");
    if (!row.parameters || row.parameters > parameters_max)
        return slc_json_fault(&parameters, "%llu elements; give a count from 1 to 2^58",
                              (unsigned long long)row.parameters);
    status = slc_profile_read_dtype(at, "dtype", row.dtype, &unit->dtype);
    if (status) return status;
    unit->name = row.name;
    unit->trainable = row.trainable;
    r->parameters[u] = row.parameters;
    r->block_bytes[u] = row.block_bytes;
    slc_profile_unit_lengths(row.parameters, row.block_bytes, r->job.world, unit);
    status = read_tensors(r, at, &row, u);
    if (!status) status = read_uses(r, at, &row, unit);
    unit->fused = row.fused;
    return status ? status : check_fused(r, at, unit);
}

sluice_status slc_profile_read_units(slc_profile_reader *r)
{
    slc_json_place list = {&r->top, "units", 0};
    size_t count = json_array_size(r->row.units);
    if (!count) return slc_json_fault(&list, "is empty; give at least one unit");
    if (count >= INT32_MAX) return slc_json_fault(&list, "%zu units are too many", count);
    r->job.units = calloc(count, sizeof *r->job.units);
    r->parameters = calloc(count, sizeof *r->parameters);
    r->block_bytes = calloc(count, sizeof *r->block_bytes);
    r->tensors = calloc(count, sizeof *r->tensors);
    if (!r->job.units || !r->parameters || !r->block_bytes || !r->tensors)
        return slc_error(SLUICE_ERR_MEMORY, "%zu units", count);
    sluice_status status = SLUICE_OK;
    for (uint32_t u = 0; !status && u < count; u++) {
        slc_json_place at = {&list, NULL, u};
        r->job.unit_count++;
        status = read_unit(r, &at, json_array_get(r->row.units, u), u);
    }
    return status;
}
