/* The job inside a plan's JSON. One function makes it for writing and for comparing it, member by member, with the job
 * at hand. plan_json_test.c covers this file. */
#include "lib/plan/json/plan_json_parts.h"

#include "lib/base/status.h"
#include "lib/plan/roles.h"

#include <string.h>

/* ---- Making it ---- */

/* Adds `value`, which it takes over; the list becomes NULL if that fails. */
static void add_to(json_t **list, json_t *value)
{
    if (!json_array_append_new(*list, value)) return;
    json_decref(*list);
    *list = NULL;
}

static json_t *layers_of(const slc_job *job)
{
    json_t *layers = json_array();
    for (uint32_t l = 0; l < job->layer_count; l++) add_to(&layers, json_string(job->layers[l]));
    return layers;
}

static json_t *uses_of(const slc_unit *unit)
{
    json_t *uses = json_array();
    for (uint32_t n = 0; n < unit->use_count; n++) {
        const slc_use *use = &unit->uses[n];
        add_to(&uses, json_pack("[i, b]", (int)use->layer, (int)use->backward_value));
    }
    return uses;
}

/* Writes the sizes of a unit's exchange, which there is only in the compressed phase. */
static json_t *exchange_of(const slc_exchange_sizes *sizes)
{
    return json_pack("[I, I, I, I, I]", (json_int_t)sizes->worker, (json_int_t)sizes->server,
                     (json_int_t)sizes->packets, (json_int_t)sizes->results, (json_int_t)sizes->wire);
}

static json_t *rows_of(const slc_job *job, const slc_unit *unit)
{
    return json_pack("{s:s, s:I, s:I, s:I}", "of", job->units[unit->partner].name, "row_elements",
                     (json_int_t)unit->row_elements, "row_count", (json_int_t)unit->row_count, "most_rows",
                     (json_int_t)unit->most_rows);
}

static json_t *units_of(const slc_job *job)
{
    json_t *units = json_array();
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        json_t *row =
            json_pack("{s:s, s:I, s:I, s:s, s:b, s:o}", "name", unit->name, "elements", (json_int_t)unit->elements,
                      "block_elements", (json_int_t)unit->block_elements, "dtype", sluice_dtype_name(unit->dtype),
                      "trainable", (int)unit->trainable, "uses", uses_of(unit));
        int failed = slc_looks_up(unit) && json_object_set_new(row, "rows", rows_of(job, unit));
        failed |= unit->held && json_object_set_new(row, "held", json_true());
        failed |= unit->adds_first && json_object_set_new(row, "adds_first", json_true());
        failed |= job->compressed && json_object_set_new(row, "exchange", exchange_of(&unit->exchange));
        add_to(&units, row);
        if (failed) add_to(&units, NULL);
    }
    return units;
}

/* A slot of evaluation, or null, because a job may say in several ways that there is none. */
static json_t *evaluation_of(const slc_job *job, const slc_activation_life *life)
{
    bool used = life->last_forward_slot >= life->first_slot && life->last_forward_slot < job->layer_count;
    return used ? json_integer(life->last_forward_slot) : json_null();
}

static json_t *activations_of(const slc_job *job)
{
    json_t *activations = json_array();
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        json_t *row = json_pack("[s, I, i, i, o, b]", life->name, (json_int_t)life->bytes, (int)life->first_slot,
                                (int)life->last_slot, evaluation_of(job, life), (int)life->recomputable);
        add_to(&activations, row);
    }
    return activations;
}

static json_t *workspaces_of(const slc_job *job)
{
    json_t *workspaces = json_array();
    for (uint32_t w = 0; w < job->workspace_count; w++) {
        const slc_workspace_life *life = &job->workspaces[w];
        json_t *row = json_pack("[s, I, i]", life->name, (json_int_t)life->bytes, (int)life->slot);
        add_to(&workspaces, row);
    }
    return workspaces;
}

/* Makes the object for what only a stage of a pipeline has: its channels, and whose turn each activation has. The order
 * of its slots is that of the plan's items. */
static json_t *stage_of(const slc_job *job)
{
    json_t *channels = json_array(), *turns = json_array();
    for (uint32_t c = 0; c < job->channel_count; c++) {
        const slc_stage_channel *channel = &job->channels[c];
        add_to(&channels,
               json_pack("[i, i, b, o, o, I]", (int)channel->number, (int)channel->stage, (int)channel->receives,
                         channel->slot == SLC_NONE ? json_null() : json_integer(channel->slot),
                         channel->unit == SLC_NONE ? json_null() : json_integer(channel->unit),
                         (json_int_t)channel->bytes));
    }
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_turn *turn = &job->turns[a];
        add_to(&turns,
               json_pack("[i, i, i, i]", (int)turn->turns, (int)turn->turn, (int)turn->receive, (int)turn->send));
    }
    return json_pack("{s:o, s:o}", "channels", channels, "turns", turns);
}

json_t *slc_plan_job_to_json(const slc_job *job)
{
    json_t *made =
        json_pack("{s:I, s:I, s:s, s:s, s:b, s:I, s:I, s:o, s:o, s:o, s:o}", "world", (json_int_t)job->world,
                  "micro_batches", (json_int_t)job->micro_batches, "accumulate", job->each ? "each" : "last", "wire",
                  sluice_dtype_name(job->wire), "barrier", (int)job->barrier, "optimizer_states",
                  (json_int_t)job->states, "scratch_bytes", (json_int_t)job->scratch_bytes, "layers", layers_of(job),
                  "units", units_of(job), "activations", activations_of(job), "workspaces", workspaces_of(job));
    bool ok = made;
    if (ok && job->stage_slots) ok = !json_object_set_new(made, "stage", stage_of(job));
    if (ok && job->norm_words)
        ok = !json_object_set_new(made, "optimizer_norm_words", json_integer((json_int_t)job->norm_words));
    if (ok && job->compressed)
        ok = !json_object_set_new(made, "compressed",
                                  json_pack("{s:b, s:b, s:I}", "refreshes", (int)job->refreshes, "norms_barrier",
                                            (int)job->norms_barrier, "local_arrays", (json_int_t)job->local_arrays));
    if (ok) return made;
    json_decref(made);
    return NULL;
}

/* ---- Comparing ---- */

/* The words for a difference that a user can act on, by the member of the job that differs. */
static const struct {
    const char *member, *means;
} meanings[] = {
    {"world", "number of ranks"},
    {"micro_batches", "micro-batches a step"},
    {"accumulate", "how micro-batches add up"},
    {"wire", "precision, or the type of gradients between ranks"},
    {"barrier", "clipping, skipping of steps, or the optimizer"},
    {"optimizer_states", "the optimizer"},
    {"optimizer_norm_words", "the optimizer"},
    {"scratch_bytes", "transport, or its messages on the way"},
    {"layers", "model"},
    {"units", "model, precision, block size, or tied tables"},
    {"stage", "cuts, schedule, chunks, or readers of activations"},
    {"activations", "batch, context, precision, or model"},
    {"workspaces", "batch, context, precision, dropout, or model"},
};

/* Returns the meaning of the job's member that a place lies in, as "number of ranks" for "world"; NULL: its name says
 * enough. */
static const char *meaning_of(const slc_json_place *at)
{
    while (at->in && at->in->in && !(at->in->key && !strcmp(at->in->key, "job"))) at = at->in;
    for (size_t i = 0; at->key && i < sizeof meanings / sizeof *meanings; i++)
        if (!strcmp(meanings[i].member, at->key)) return meanings[i].means;
    return NULL;
}

static sluice_status differ(const slc_json_place *at, const json_t *held, const json_t *ours)
{
    const char *means = meaning_of(at);
    char theirs[SLC_JSON_SHOWN_BYTES] = "nothing", mine[SLC_JSON_SHOWN_BYTES] = "nothing";
    if (held) slc_json_show(held, theirs);
    if (ours) slc_json_show(ours, mine);
    return slc_json_fault(at, "the plan was made for %s, this job has %s%s%s%s", theirs, mine, means ? " (" : "",
                          means ? means : "", means ? ")" : "");
}

static sluice_status compare(const slc_json_place *at, const json_t *held, const json_t *ours);

/* Compares two arrays, element by element and not by their lengths first, because a name in the error says more than a
 * number. */
static sluice_status compare_arrays(const slc_json_place *at, const json_t *held, const json_t *ours)
{
    size_t theirs = json_array_size(held), mine = json_array_size(ours);
    for (size_t i = 0; i < theirs || i < mine; i++) {
        slc_json_place place = {at, NULL, i};
        sluice_status status = compare(&place, json_array_get(held, i), json_array_get(ours, i));
        if (status) return status;
    }
    return SLUICE_OK;
}

/* True if the file does not mention a type that is fp32 in the job: files from before there was another type do not. */
static bool says_nothing_of_fp32(const json_t *held, const char *key, const json_t *value)
{
    const char *text = json_string_value(value);
    return !json_object_get(held, key) && text && !strcmp(text, sluice_dtype_name(SLUICE_FP32));
}

static sluice_status compare_objects(const slc_json_place *at, json_t *held, json_t *ours)
{
    const char *key;
    json_t *value;
    json_object_foreach (ours, key, value) {
        slc_json_place place = {at, key, 0};
        if (says_nothing_of_fp32(held, key, value)) continue;
        sluice_status status = compare(&place, json_object_get(held, key), value);
        if (status) return status;
    }
    json_object_foreach (held, key, value)
        if (!json_object_get(ours, key)) return slc_json_unknown_key(at, key, "");
    return SLUICE_OK;
}

static sluice_status compare(const slc_json_place *at, const json_t *held, const json_t *ours)
{
    if (!held || !ours || json_typeof(held) != json_typeof(ours)) return differ(at, held, ours);
    if (json_is_object(ours)) return compare_objects(at, (json_t *)held, (json_t *)ours);
    if (json_is_array(ours)) return compare_arrays(at, held, ours);
    return json_equal(held, ours) ? SLUICE_OK : differ(at, held, ours);
}

/* Checks that both jobs are of one phase. This comes first, because the phase explains the other differences that come
 * with it. */
static sluice_status check_phase(const slc_json_place *at, const slc_job *job, const json_t *held)
{
    slc_json_place compressed = {at, "compressed", 0};
    bool theirs = json_object_get(held, "compressed");
    if (theirs == job->compressed) return SLUICE_OK;
    return slc_json_fault(&compressed, theirs ? "the plan is of the compressed phase, this job is not"
                                              : "this job is of the compressed phase, the plan is not");
}

sluice_status slc_plan_job_check(const slc_json_place *at, const slc_job *job, const json_t *held)
{
    json_t *ours = slc_plan_job_to_json(job);
    if (!ours) return slc_error(SLUICE_ERR_MEMORY, "no memory for the job's description, or a name is not UTF-8");
    sluice_status status = check_phase(at, job, held);
    if (!status) status = compare(at, held, ours);
    json_decref(ours);
    return status;
}
