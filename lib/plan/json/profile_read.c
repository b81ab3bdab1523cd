/* Reads a profile from JSON. The job is put together from names that the document owns, then copied. Every part checks
 * its rows in one walk; sums of sizes, which no single row can check, are checked at the end.
 * profile_json_test.c covers this file. */
#include "lib/plan/json/profile_reader.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPTIMIZER_STATES_MAX = 16,
    LOCAL_ARRAYS_MAX = 16,
    WORLD_MAX = SLC_PROFILE_WORLD_MAX,
    LINK_BLOCK_BYTES = 4 << 20
};
static const uint64_t total_max = UINT64_C(1) << 62;

/* ---- Names ---- */

/* Finds the slot that "forward h.0" or "backward h.0" names. */
static sluice_status find_slot(const slc_profile_reader *r, const slc_json_place *at, const char *text, uint32_t *slot)
{
    bool forward = !strncmp(text, "forward ", 8), backward = !strncmp(text, "backward ", 9);
    uint32_t layer = 0;
    if (!forward && !backward)
        return slc_json_fault(at, "\"%s\" is no slot; give \"forward LAYER\" or \"backward LAYER\"", text);
    sluice_status status = slc_profile_find_layer(r, at, text + (forward ? 8 : 9), &layer);
    if (!status) *slot = forward ? slc_forward_slot(layer) : slc_backward_slot(&r->job, layer);
    return status;
}

/* ---- The top ---- */

#define TOP(member, key, type, required) FIELD(slc_profile_reader, member, key, type, required)
static const slc_json_field top_fields[] = {
    TOP(row.version, "version", SLC_JSON_COUNT, true),
    TOP(row.model, "model", SLC_JSON_TEXT, false),
    TOP(row.source, "source", SLC_JSON_TEXT, false),
    TOP(job.world, "world", SLC_JSON_COUNT, true),
    TOP(job.micro_batches, "micro_batches", SLC_JSON_COUNT, false),
    TOP(row.accumulate, "accumulate", SLC_JSON_TEXT, false),
    TOP(row.wire, "wire", SLC_JSON_TEXT, false),
    TOP(job.barrier, "barrier", SLC_JSON_FLAG, false),
    TOP(job.states, "optimizer_states", SLC_JSON_INDEX, false),
    TOP(job.norm_words, "optimizer_norm_words", SLC_JSON_INDEX, false),
    TOP(times.update_s_per_element, "update_s_per_element", SLC_JSON_SECONDS, false),
    TOP(times.update_compute_s_per_element, "update_compute_s_per_element", SLC_JSON_SECONDS, false),
    TOP(row.compressed, "compressed", SLC_JSON_OBJECT, false),
    TOP(times.compress_s_per_element, "compress_s_per_element", SLC_JSON_SECONDS, false),
    TOP(times.apply_s_per_element, "apply_s_per_element", SLC_JSON_SECONDS, false),
    TOP(times.average_s_per_element, "average_s_per_element", SLC_JSON_SECONDS, false),
    TOP(times.outside_s, "outside_s", SLC_JSON_SECONDS, false),
    TOP(times.late_s, "late_s", SLC_JSON_SECONDS, false),
    TOP(job.reserved_bytes, "reserved_bytes", SLC_JSON_SIZE, false),
    TOP(row.scratch_in_flight, "scratch_in_flight_bytes", SLC_JSON_SIZE, false),
    TOP(row.link, "link", SLC_JSON_OBJECT, true),
    TOP(row.layers, "layers", SLC_JSON_ARRAY, true),
    TOP(row.units, "units", SLC_JSON_ARRAY, true),
    TOP(row.activations, "activations", SLC_JSON_ARRAY, false),
    TOP(row.workspaces, "workspaces", SLC_JSON_ARRAY, false),
};

/* Refuses a key that files of version 1 do not have. */
static sluice_status need_version(const slc_profile_reader *r, const slc_json_place *in, const char *key, int version)
{
    slc_json_place at = {in, key, 0};
    if ((int)r->row.version >= version) return SLUICE_OK;
    return slc_json_fault(&at, "is a key of version %d; write \"version\": %d", version, version);
}

static const slc_json_field compressed_fields[] = {
    FIELD(slc_job, refreshes, "refreshes", SLC_JSON_FLAG, false),
    FIELD(slc_job, norms_barrier, "norms_barrier", SLC_JSON_FLAG, false),
    FIELD(slc_job, local_arrays, "local_arrays", SLC_JSON_INDEX, false),
};

/* Reads "compressed". A world of one rank keeps it in the profile, for planning other worlds. */
static sluice_status read_compressed(slc_profile_reader *r)
{
    slc_json_place at = {&r->top, "compressed", 0}, arrays = {&at, "local_arrays", 0};
    r->job.compressed = r->row.compressed;
    if (!r->row.compressed) return SLUICE_OK;
    sluice_status status = SLC_JSON_MEMBERS(&at, r->row.compressed, compressed_fields, &r->job);
    if (!status && r->job.each)
        status = slc_json_fault(&at, "gradients are reduced in each micro-batch; leave one of them out");
    if (!status && r->job.local_arrays > LOCAL_ARRAYS_MAX)
        status = slc_json_fault(&arrays, "%u arrays; give a count from 0 to %d", r->job.local_arrays, LOCAL_ARRAYS_MAX);
    return status;
}

static sluice_status read_top(slc_profile_reader *r, const json_t *document)
{
    slc_profile_top *row = &r->row;
    slc_job *job = &r->job;
    *row = (slc_profile_top){.model = "", .source = "", .accumulate = "last", .wire = "fp32"};
    *job = (slc_job){.micro_batches = 1, .states = 2};
    slc_times_estimate_exchange(&r->times);
    sluice_status status = SLC_JSON_MEMBERS(&r->top, document, top_fields, r);
    if (status) return status;
    slc_json_place world = {&r->top, "world", 0}, accumulate = {&r->top, "accumulate", 0},
                   states = {&r->top, "optimizer_states", 0};
    job->each = !strcmp(row->accumulate, "each");
    if (job->world > WORLD_MAX)
        return slc_json_fault(&world, "%u ranks; give a count from 1 to %d", job->world, WORLD_MAX);
    if (!job->each && strcmp(row->accumulate, "last"))
        return slc_json_fault(&accumulate, "\"%s\"; give \"last\" or \"each\"", row->accumulate);
    if (job->states > OPTIMIZER_STATES_MAX)
        return slc_json_fault(&states, "%u states; give a count from 0 to %d", job->states, OPTIMIZER_STATES_MAX);
    job->scratch_bytes = (row->scratch_in_flight + job->world - 1) / job->world * (job->world - 1);
    status = read_compressed(r);
    return status ? status : slc_profile_read_dtype(&r->top, "wire", row->wire, &job->wire);
}

/* ---- The link ---- */

typedef struct {
    double latency_s, bytes_per_s; /* 0: not given */
    json_t *reduce_scatter, *all_gather, *channel;
    slc_link link;
} link_row;

static const slc_json_field link_fields[] = {
    FIELD(link_row, latency_s, "latency_s", SLC_JSON_SECONDS, false),
    FIELD(link_row, bytes_per_s, "bytes_per_s", SLC_JSON_RATE, false),
    FIELD(link_row, reduce_scatter, "reduce_scatter", SLC_JSON_OBJECT, false),
    FIELD(link_row, all_gather, "all_gather", SLC_JSON_OBJECT, false),
    FIELD(link_row, channel, "channel", SLC_JSON_OBJECT, false),
    FIELD(link_row, link.kappa, "kappa", SLC_JSON_FACTOR, false),
    FIELD(link_row, link.sigma, "sigma", SLC_JSON_FACTOR, false),
    FIELD(link_row, link.update_kappa, "update_kappa", SLC_JSON_FACTOR, false),
    FIELD(link_row, link.thread_moves, "thread_moves", SLC_JSON_FLAG, false),
    FIELD(link_row, link.block_bytes, "block_bytes", SLC_JSON_SIZE, false),
    FIELD(link_row, link.operation_s, "operation_s", SLC_JSON_SECONDS, false),
};

static const slc_json_field line_fields[] = {
    FIELD(slc_link_line, latency_s, "latency_s", SLC_JSON_SECONDS, false),
    FIELD(slc_link_line, bytes_per_s, "bytes_per_s", SLC_JSON_RATE, false),
};

/* Reads the line of a direction. Members that its own object lacks are those of the link. */
static sluice_status read_line(const slc_json_place *link, const link_row *row, const char *key, const json_t *object,
                               slc_link_line *line)
{
    slc_json_place place = {link, key, 0}, rate = {object ? &place : link, "bytes_per_s", 0};
    *line = (slc_link_line){row->latency_s, row->bytes_per_s};
    sluice_status status = SLUICE_OK;
    if (object) status = SLC_JSON_MEMBERS(&place, object, line_fields, line);
    if (!status && line->bytes_per_s <= 0)
        status = slc_json_fault(&rate, "is missing; give bytes a second, there or in \"link\" for both directions");
    return status;
}

static sluice_status read_link(slc_profile_reader *r)
{
    slc_json_place at = {&r->top, "link", 0}, kappa = {&at, "kappa", 0}, sigma = {&at, "sigma", 0};
    link_row row = {.link = {.sigma = 1, .block_bytes = LINK_BLOCK_BYTES}};
    slc_link *link = &row.link;
    sluice_status status = SLC_JSON_MEMBERS(&at, r->row.link, link_fields, &row);
    if (!status) status = read_line(&at, &row, "reduce_scatter", row.reduce_scatter, &link->reduce_scatter);
    if (!status) status = read_line(&at, &row, "all_gather", row.all_gather, &link->all_gather);
    if (!status && row.channel) status = need_version(r, &at, "channel", SLC_PROFILE_VERSION_STAGES);
    if (!status && row.channel) status = read_line(&at, &row, "channel", row.channel, &link->channel);
    if (!status && link->sigma < 1) status = slc_json_fault(&sigma, "%g; give a factor of at least 1", link->sigma);
    if (!status && link->kappa > link->sigma)
        status = slc_json_fault(&kappa, "%g; give a factor from 0 to sigma, which is %g", link->kappa, link->sigma);
    r->times.link = *link;
    return status;
}

/* ---- Layers ---- */

typedef struct {
    const char *name;
    double forward_s, backward_s, input_s, weight_s, recompute_s; /* below 0: not given */
    double keeps;
    bool can_recompute;
} layer_row;

static const slc_json_field layer_fields[] = {
    FIELD(layer_row, name, "name", SLC_JSON_NAME, true),
    FIELD(layer_row, forward_s, "forward_s", SLC_JSON_SECONDS, true),
    FIELD(layer_row, backward_s, "backward_s", SLC_JSON_SECONDS, false), /* required without `input_s` */
    FIELD(layer_row, input_s, "input_s", SLC_JSON_SECONDS, false),
    FIELD(layer_row, weight_s, "weight_s", SLC_JSON_SECONDS, false),
    FIELD(layer_row, recompute_s, "recompute_s", SLC_JSON_SECONDS, false),
    FIELD(layer_row, keeps, "keeps", SLC_JSON_SECONDS, false),
    FIELD(layer_row, can_recompute, "can_recompute", SLC_JSON_FLAG, false),
};

/* Checks a backward, which is given whole, or as what its input's gradient takes and what those of its weights take; a
 * whole one may say what the weights take of it. */
static sluice_status read_backward(const slc_profile_reader *r, const slc_json_place *at, layer_row *row)
{
    slc_json_place backward = {at, "backward_s", 0}, input = {at, "input_s", 0}, weight = {at, "weight_s", 0};
    if (row->input_s >= 0 || row->weight_s >= 0) {
        sluice_status status =
            need_version(r, at, row->input_s >= 0 ? "input_s" : "weight_s", SLC_PROFILE_VERSION_STAGES);
        if (status) return status;
    }
    if (row->backward_s < 0 && row->input_s < 0)
        return slc_json_fault(&backward, "is missing; give seconds from 0 to 1e9");
    if (row->backward_s >= 0 && row->input_s >= 0)
        return slc_json_fault(&input, "there is a backward_s too; give one of them");
    if (row->input_s >= 0 && row->weight_s < 0)
        return slc_json_fault(&weight, "is missing beside input_s; give seconds from 0 to 1e9");
    if (row->backward_s < 0) row->backward_s = row->input_s + row->weight_s;
    if (row->weight_s > row->backward_s)
        return slc_json_fault(&weight, "%g seconds of a backward of %g; give at most that", row->weight_s,
                              row->backward_s);
    return SLUICE_OK;
}

static sluice_status check_keeps(const slc_profile_reader *r, const slc_json_place *at, const layer_row *row)
{
    slc_json_place keeps = {at, "keeps", 0};
    if (row->keeps == 1) return SLUICE_OK;
    if (!(row->keeps > 0 && row->keeps < 1))
        return slc_json_fault(&keeps, "%g; give a probability above 0 and at most 1", row->keeps);
    return need_version(r, at, "keeps", SLC_PROFILE_VERSION_DRAWN);
}

static sluice_status read_layer(slc_profile_reader *r, const slc_json_place *at, const json_t *object, uint32_t l)
{
    layer_row row = {.backward_s = -1, .input_s = -1, .weight_s = -1, .recompute_s = -1, .keeps = 1};
    sluice_status status = SLC_JSON_MEMBERS(at, object, layer_fields, &row);
    if (!status) status = read_backward(r, at, &row);
    if (!status) status = check_keeps(r, at, &row);
    if (!status) status = slc_profile_add_name(at, r->layer_index, row.name);
    if (status) return status;
    r->times.weight_s[l] = row.weight_s;
    r->weights |= row.weight_s >= 0;
    r->times.keeps[l] = row.keeps;
    r->drawn |= row.keeps < 1;
    r->job.layers[l] = row.name;
    r->can_recompute[l] = row.can_recompute;
    r->times.slot_s[slc_forward_slot(l)] = row.forward_s;
    r->times.slot_s[slc_backward_slot(&r->job, l)] = row.backward_s;
    r->times.recompute_s[l] = row.recompute_s < 0 ? row.forward_s : row.recompute_s;
    return SLUICE_OK;
}

static sluice_status read_layers(slc_profile_reader *r)
{
    slc_json_place list = {&r->top, "layers", 0};
    size_t count = json_array_size(r->row.layers);
    if (!count) return slc_json_fault(&list, "is empty; give at least one layer");
    if (count > INT32_MAX / 2 / r->job.micro_batches)
        return slc_json_fault(&list, "%zu layers in %u micro-batches; 2^30 passes through a layer can be planned",
                              count, r->job.micro_batches);
    r->job.layer_count = (uint32_t)count;
    r->job.layers = calloc(count, sizeof *r->job.layers);
    r->job.can_recompute = r->can_recompute = calloc(count, sizeof *r->can_recompute);
    r->times.slot_s = calloc(2 * count, sizeof *r->times.slot_s);
    r->times.recompute_s = calloc(count, sizeof *r->times.recompute_s);
    r->times.weight_s = calloc(count, sizeof *r->times.weight_s);
    r->times.keeps = calloc(count, sizeof *r->times.keeps);
    if (!r->job.layers || !r->can_recompute || !r->times.slot_s || !r->times.recompute_s || !r->times.weight_s ||
        !r->times.keeps)
        return slc_error(SLUICE_ERR_MEMORY, "%zu layers", count);
    sluice_status status = SLUICE_OK;
    for (uint32_t l = 0; !status && l < count; l++) {
        slc_json_place at = {&list, NULL, l};
        status = read_layer(r, &at, json_array_get(r->row.layers, l), l);
    }
    if (!r->weights) {
        free(r->times.weight_s);
        r->times.weight_s = NULL;
    }
    if (!r->drawn) {
        free(r->times.keeps);
        r->times.keeps = NULL;
    }
    return status;
}

/* ---- Activations and workspaces ---- */

typedef struct {
    const char *name, *first, *last;
    uint64_t bytes;
    json_t *last_in_evaluation; /* NULL: not given */
    json_t *readers;            /* NULL: not known */
    bool recomputable;
} activation_row;

typedef struct {
    const char *layer;
    bool forward, backward;
} reader_row;

static const slc_json_field reader_fields[] = {
    FIELD(reader_row, layer, "layer", SLC_JSON_NAME, true),
    FIELD(reader_row, forward, "forward", SLC_JSON_FLAG, false),
    FIELD(reader_row, backward, "backward", SLC_JSON_FLAG, false),
};

static const slc_json_field activation_fields[] = {
    FIELD(activation_row, name, "name", SLC_JSON_NAME, true),
    FIELD(activation_row, bytes, "bytes", SLC_JSON_SIZE, true),
    FIELD(activation_row, first, "first", SLC_JSON_NAME, false),
    FIELD(activation_row, last, "last", SLC_JSON_NAME, false),
    FIELD(activation_row, last_in_evaluation, "last_in_evaluation", SLC_JSON_ANY, false),
    FIELD(activation_row, readers, "readers", SLC_JSON_ARRAY, false),
    FIELD(activation_row, recomputable, "recomputable", SLC_JSON_FLAG, false),
};

static sluice_status read_slots(const slc_profile_reader *r, const slc_json_place *at, const activation_row *row,
                                slc_activation_life *life)
{
    slc_json_place first = {at, "first", 0}, last = {at, "last", 0};
    uint32_t layer = 0;
    if (!row->first && !slc_profile_layer_of(r, row->name, &layer))
        return slc_json_fault(&first, "is missing and there is no layer \"%s\"; give \"forward LAYER\"", row->name);
    life->first_slot = slc_forward_slot(layer);
    sluice_status status = row->first ? find_slot(r, &first, row->first, &life->first_slot) : SLUICE_OK;
    if (status) return status;
    life->last_slot = slc_backward_slot(&r->job, slc_slot_layer(&r->job, life->first_slot));
    if (row->last) status = find_slot(r, &last, row->last, &life->last_slot);
    if (!status && life->last_slot < life->first_slot)
        status = slc_json_fault(&last, "it ends before it begins; name a slot not before its first");
    return status;
}

/* By default an activation lives until the next layer's forward. */
static sluice_status read_evaluation(const slc_profile_reader *r, const slc_json_place *at, const activation_row *row,
                                     slc_activation_life *life)
{
    slc_json_place place = {at, "last_in_evaluation", 0};
    uint32_t first = life->first_slot, none = first ? 0 : UINT32_MAX;
    bool forward = slc_slot_is_forward(&r->job, first);
    life->last_forward_slot = none;
    if (forward) life->last_forward_slot = first + 1 < r->job.layer_count ? first + 1 : first;
    if (!row->last_in_evaluation) return SLUICE_OK;
    life->last_forward_slot = none;
    if (json_is_null(row->last_in_evaluation)) return SLUICE_OK;
    const char *name;
    sluice_status status = slc_json_value(&place, row->last_in_evaluation, SLC_JSON_NAME, &name);
    if (!status) status = slc_profile_find_layer(r, &place, name, &life->last_forward_slot);
    if (!status && life->last_forward_slot < first)
        status = slc_json_fault(&place, "\"%s\" comes before its first slot; give null where it is not needed", name);
    return status;
}

static bool is_within(const slc_activation_life *life, uint32_t slot)
{
    return slot > life->first_slot && slot <= life->last_slot;
}

static sluice_status read_reader(const slc_profile_reader *r, const slc_json_place *at, const json_t *value, uint32_t a,
                                 slc_reader *out)
{
    const slc_activation_life *life = &r->job.activations[a];
    const slc_activation_readers *before = &r->readers[a];
    reader_row row = {0};
    sluice_status status = SLC_JSON_MEMBERS(at, value, reader_fields, &row);
    if (!status) status = slc_profile_find_layer(r, at, row.layer, &out->layer);
    if (status) return status;
    out->forward = row.forward;
    out->backward = row.backward;
    if (!row.forward && !row.backward)
        return slc_json_fault(at, "layer \"%s\" reads it in no direction; give forward, backward or both", row.layer);
    if (out->layer == slc_slot_layer(&r->job, life->first_slot))
        return slc_json_fault(at, "it begins in layer \"%s\"; name those that read it besides", row.layer);
    if (before->count && out->layer <= before->at[before->count - 1].layer)
        return slc_json_fault(at, "layer \"%s\" comes at or before \"%s\"; name the layers in forward order, each once",
                              row.layer, r->job.layers[before->at[before->count - 1].layer]);
    if ((row.forward && !is_within(life, slc_forward_slot(out->layer))) ||
        (row.backward && !is_within(life, slc_backward_slot(&r->job, out->layer))))
        return slc_json_fault(at, "layer \"%s\" reads it when it is not in memory; let it live until its last reader",
                              row.layer);
    return SLUICE_OK;
}

static sluice_status read_readers(const slc_profile_reader *r, const slc_json_place *at, const json_t *list, uint32_t a)
{
    slc_json_place place = {at, "readers", 0};
    const size_t count = json_array_size(list);
    if (!list) return SLUICE_OK;
    sluice_status status = need_version(r, at, "readers", SLC_PROFILE_VERSION_STAGES);
    if (status) return status;
    if (count >= r->job.layer_count)
        return slc_json_fault(&place, "%zu readers; there are %u layers besides its own", count,
                              r->job.layer_count - 1);
    slc_reader *readers = calloc(count + 1, sizeof *readers);
    if (!readers) return slc_error(SLUICE_ERR_MEMORY, "%zu readers", count);
    r->readers[a].at = readers;
    for (size_t n = 0; !status && n < count; n++) {
        slc_json_place row = {&place, NULL, n};
        status = read_reader(r, &row, json_array_get(list, n), a, &readers[n]);
        r->readers[a].count += !status;
    }
    return status;
}

static sluice_status read_activation(const slc_profile_reader *r, const slc_json_place *at, const json_t *object,
                                     uint32_t a)
{
    slc_activation_life *life = &r->job.activations[a];
    activation_row row = {0};
    slc_json_place again = {at, "recomputable", 0};
    sluice_status status = SLC_JSON_MEMBERS(at, object, activation_fields, &row);
    *life = (slc_activation_life){.name = row.name, .bytes = row.bytes, .recomputable = row.recomputable};
    if (!status) status = read_slots(r, at, &row, life);
    if (!status) status = read_evaluation(r, at, &row, life);
    if (!status) status = read_readers(r, at, row.readers, a);
    if (status || !life->recomputable) return status;
    uint32_t layer = slc_slot_layer(&r->job, life->first_slot);
    if (!slc_slot_is_forward(&r->job, life->first_slot) || life->last_slot != slc_backward_slot(&r->job, layer))
        return slc_json_fault(&again, "only what lives from a layer's forward to the same layer's backward can be");
    return SLUICE_OK;
}

static sluice_status read_activations(slc_profile_reader *r)
{
    slc_json_place list = {&r->top, "activations", 0};
    size_t count = json_array_size(r->row.activations);
    if (count >= INT32_MAX) return slc_json_fault(&list, "%zu are too many", count);
    r->job.activations = calloc(count + 1, sizeof *r->job.activations);
    r->job.readers = r->readers = calloc(count + 1, sizeof *r->readers);
    if (!r->job.activations || !r->readers) return slc_error(SLUICE_ERR_MEMORY, "%zu activations", count);
    r->job.activation_count = (uint32_t)count;
    sluice_status status = SLUICE_OK;
    for (size_t a = 0; !status && a < count; a++) {
        slc_json_place at = {&list, NULL, a};
        status = read_activation(r, &at, json_array_get(r->row.activations, a), (uint32_t)a);
    }
    return status;
}

typedef struct {
    const char *name, *slot, *layer;
    uint64_t bytes;
} workspace_row;

static const slc_json_field workspace_fields[] = {
    FIELD(workspace_row, name, "name", SLC_JSON_NAME, true),
    FIELD(workspace_row, bytes, "bytes", SLC_JSON_SIZE, true),
    FIELD(workspace_row, slot, "slot", SLC_JSON_NAME, false),
    FIELD(workspace_row, layer, "layer", SLC_JSON_NAME, false),
};

static void add_workspace(slc_job *job, const workspace_row *row, uint32_t slot)
{
    job->workspaces[job->workspace_count++] =
        (slc_workspace_life){.name = row->name, .bytes = row->bytes, .slot = slot};
}

/* Reads a workspace, which belongs to one slot; if a layer is given without a slot, both slots of the layer get one
 * each. */
static sluice_status read_workspace(slc_profile_reader *r, const slc_json_place *at, const json_t *object)
{
    workspace_row row = {0};
    slc_json_place slot_place = {at, "slot", 0}, layer_place = {at, "layer", 0};
    uint32_t slot = 0, layer = 0;
    sluice_status status = SLC_JSON_MEMBERS(at, object, workspace_fields, &row);
    if (!status && row.slot && row.layer)
        status = slc_json_fault(&layer_place, "there is a slot too; give one of them");
    if (!status && row.slot) {
        status = find_slot(r, &slot_place, row.slot, &slot);
        if (!status) add_workspace(&r->job, &row, slot);
        return status;
    }
    if (!status) status = slc_profile_find_layer(r, &layer_place, row.layer ? row.layer : row.name, &layer);
    if (status) return status;
    add_workspace(&r->job, &row, slc_forward_slot(layer));
    add_workspace(&r->job, &row, slc_backward_slot(&r->job, layer));
    return SLUICE_OK;
}

static sluice_status read_workspaces(slc_profile_reader *r)
{
    slc_json_place list = {&r->top, "workspaces", 0};
    size_t count = json_array_size(r->row.workspaces);
    if (count >= INT32_MAX / 2) return slc_json_fault(&list, "%zu are too many", count);
    r->job.workspaces = calloc(2 * count + 1, sizeof *r->job.workspaces);
    if (!r->job.workspaces) return slc_error(SLUICE_ERR_MEMORY, "%zu workspaces", count);
    sluice_status status = SLUICE_OK;
    for (size_t w = 0; !status && w < count; w++) {
        slc_json_place at = {&list, NULL, w};
        status = read_workspace(r, &at, json_array_get(r->row.workspaces, w));
    }
    return status;
}

/* ---- All together ---- */

static void add_bytes(uint64_t *total, uint64_t count, uint64_t bytes)
{
    uint64_t product;
    if (__builtin_mul_overflow(count, bytes, &product) || __builtin_add_overflow(*total, product, total))
        *total = UINT64_MAX;
}

static sluice_status too_large(const slc_profile_reader *r)
{
    return slc_json_fault(&r->top, "its sizes add up to more than 2^62 bytes");
}

/* Adds the lists and gradients of a ROWS unit; its table is counted elsewhere. */
static void add_rows(uint64_t *total, const slc_job *job, const slc_unit *unit)
{
    uint64_t gradients;
    if (unit->role != SLC_UNIT_ROWS) return;
    if (__builtin_mul_overflow(slc_gradient_rows(job, unit), unit->row_elements, &gradients)) gradients = UINT64_MAX;
    add_bytes(total, 8, gradients);
    add_bytes(total, 1, slc_row_lists_bytes(job, unit));
}

/* Bounds everything that could ever be in memory at once, so that no sum of sizes in planning overflows. */
static sluice_status check_total(const slc_profile_reader *r, const slc_job *job)
{
    uint64_t total = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        uint64_t arrays = 5 + job->states + (uint64_t)job->local_arrays + 2 * (uint64_t)unit->use_count;
        add_bytes(&total, arrays, 4 * unit->elements);
        add_rows(&total, job, unit);
        add_bytes(&total, 1, unit->exchange.worker);
        add_bytes(&total, 1, unit->exchange.server);
        add_bytes(&total, 1, unit->exchange.packets);
        add_bytes(&total, 1, unit->exchange.results);
    }
    for (uint32_t a = 0; a < job->activation_count; a++) add_bytes(&total, 1, job->activations[a].bytes);
    for (uint32_t w = 0; w < job->workspace_count; w++) add_bytes(&total, 1, job->workspaces[w].bytes);
    add_bytes(&total, 1, job->scratch_bytes);
    add_bytes(&total, 1, job->reserved_bytes);
    return total <= total_max ? SLUICE_OK : too_large(r);
}

static sluice_status read_all(slc_profile_reader *r, const json_t *document)
{
    r->layer_index = json_object();
    r->unit_index = json_object();
    if (!r->layer_index || !r->unit_index) return slc_error(SLUICE_ERR_MEMORY, "profile");
    sluice_status status = read_top(r, document);
    if (!status) status = read_link(r);
    if (!status) status = read_layers(r);
    if (!status) status = slc_profile_read_units(r);
    if (!status) status = read_activations(r);
    return status ? status : read_workspaces(r);
}

static void reader_fini(slc_profile_reader *r)
{
    for (uint32_t u = 0; u < r->job.unit_count; u++) {
        free(r->job.units[u].uses);
        free(r->tensors[u].elements);
    }
    free(r->tensors);
    free(r->job.units);
    free(r->job.layers);
    free(r->can_recompute);
    for (uint32_t a = 0; r->readers && a < r->job.activation_count; a++) free((slc_reader *)r->readers[a].at);
    free(r->readers);
    free(r->job.activations);
    free(r->job.workspaces);
    free(r->parameters);
    free(r->block_bytes);
    slc_times_fini(&r->times);
    json_decref(r->layer_index);
    json_decref(r->unit_index);
}

/* Keeps the lengths before rounding, which the job itself no longer shows. */
static sluice_status note_lengths(const slc_profile_reader *r, slc_profile *profile)
{
    sluice_status status = SLUICE_OK;
    memcpy(profile->block_bytes, r->block_bytes, r->job.unit_count * sizeof *r->block_bytes);
    profile->scratch_in_flight = r->row.scratch_in_flight;
    for (uint32_t u = 0; !status && u < r->job.unit_count; u++)
        if (r->tensors[u].count)
            status = slc_profile_set_tensors(profile, u, r->tensors[u].elements, r->tensors[u].count);
    return status ? status : slc_profile_set_world(profile, r->job.world);
}

static sluice_status copy_out(const slc_profile_reader *r, slc_profile **out)
{
    slc_profile *profile = NULL;
    sluice_status status = slc_profile_create(&r->job, r->parameters, &r->times, r->row.model, r->row.source, &profile);
    if (!status) status = note_lengths(r, profile);
    if (status == SLUICE_ERR_ARGUMENT)
        status = too_large(r); /* All else has been checked, so a unit is too large for an exchange. */
    if (!status) status = check_total(r, &profile->job);
    if (status) {
        slc_profile_destroy(profile);
        return status;
    }
    *out = profile;
    return SLUICE_OK;
}

sluice_status slc_profile_from_json(const char *text, size_t length, slc_profile **out)
{
    json_t *document;
    sluice_status status = slc_json_parse(text, length, SLC_PROFILE_VERSION, SLC_PROFILE_VERSION_DRAWN, &document);
    if (status) return status;
    slc_profile_reader r = {0};
    status = read_all(&r, document);
    if (!status) status = copy_out(&r, out);
    reader_fini(&r);
    json_decref(document);
    return status;
}

sluice_status slc_profile_read(const char *path, slc_profile **out)
{
    char *text;
    size_t length;
    sluice_status status = slc_json_file_read(path, &text, &length);
    if (status) return status;
    status = slc_error_context(slc_profile_from_json(text, length, out), "profile %s", path);
    free(text);
    return status;
}
