/* Writes a profile as text that a person can continue: a line for each layer, unit, activation and workspace. Values
 * that the reader would assume anyway are left out if that keeps lines short. profile_json_test.c covers this file.
 */
#include "lib/plan/profile.h"

#include "lib/base/file/json_file.h"
#include "lib/plan/json/json_text.h"
#include "lib/plan/roles.h"

#include "lib/base/status.h"

#include <stdlib.h>

static void put_size(slc_json_text *text, const char *key, uint64_t value)
{
    slc_json_text_add(text, ", \"%s\": %llu", key, (unsigned long long)value);
}

static void open_list(slc_json_text *text, const char *key)
{
    slc_json_text_add(text, ",\n  \"%s\": [", key);
}

static void begin_row(slc_json_text *text, uint32_t index, const char *name)
{
    slc_json_text_string(text, index ? ",\n    {\"name\": " : "\n    {\"name\": ", name);
}

static void close_list(slc_json_text *text, uint32_t count)
{
    slc_json_text_add(text, count ? "\n  ]" : "]");
}

/* ---- The parts ---- */

static const char *yes(bool flag)
{
    return flag ? "true" : "false";
}

/* Returns true if the profile says what only pipelines ask for. */
static bool knows_stages(const slc_profile *profile)
{
    bool knows = profile->times.weight_s || profile->times.link.channel.bytes_per_s > 0;
    for (uint32_t a = 0; a < profile->job.activation_count; a++)
        knows |= slc_readers_of(&profile->job, &profile->job.activations[a]) != NULL;
    return knows;
}

static void put_compression(slc_json_text *text, const slc_profile *profile)
{
    const slc_job *job = &profile->job;
    if (profile->compressed)
        slc_json_text_add(text, ",\n  \"compressed\": {\"refreshes\": %s, \"norms_barrier\": %s, \"local_arrays\": %u}",
                          yes(job->refreshes), yes(job->norms_barrier), job->local_arrays);
    slc_json_text_real(text, ",\n  \"compress_s_per_element\": ", profile->times.compress_s_per_element);
    slc_json_text_real(text, ", \"apply_s_per_element\": ", profile->times.apply_s_per_element);
    slc_json_text_real(text, ", \"average_s_per_element\": ", profile->times.average_s_per_element);
}

static void put_head(slc_json_text *text, const slc_profile *profile)
{
    const slc_job *job = &profile->job;
    slc_json_text_add(text, "{\n  \"version\": %d",
                      profile->times.keeps    ? SLC_PROFILE_VERSION_DRAWN
                      : knows_stages(profile) ? SLC_PROFILE_VERSION_STAGES
                                              : SLC_PROFILE_VERSION);
    slc_json_text_string(text, ",\n  \"model\": ", profile->model);
    slc_json_text_string(text, ",\n  \"source\": ", profile->source);
    slc_json_text_add(text, ",\n  \"world\": %u, \"micro_batches\": %u, \"accumulate\": \"%s\", \"barrier\": %s",
                      job->world, job->micro_batches, job->each ? "each" : "last", job->barrier ? "true" : "false");
    if (job->wire != SLUICE_FP32) slc_json_text_add(text, ", \"wire\": \"%s\"", sluice_dtype_name(job->wire));
    slc_json_text_add(text, ",\n  \"optimizer_states\": %u", job->states);
    if (job->norm_words) slc_json_text_add(text, ", \"optimizer_norm_words\": %u", job->norm_words);
    slc_json_text_real(text, ", \"update_s_per_element\": ", profile->times.update_s_per_element);
    if (profile->times.update_compute_s_per_element > 0)
        slc_json_text_real(text, ", \"update_compute_s_per_element\": ", profile->times.update_compute_s_per_element);
    put_compression(text, profile);
    if (profile->times.outside_s > 0) slc_json_text_real(text, ", \"outside_s\": ", profile->times.outside_s);
    if (profile->times.late_s > 0) slc_json_text_real(text, ", \"late_s\": ", profile->times.late_s);
    slc_json_text_add(text, ",\n  \"reserved_bytes\": %llu", (unsigned long long)job->reserved_bytes);
    put_size(text, "scratch_in_flight_bytes", profile->scratch_in_flight);
}

static void put_line(slc_json_text *text, const char *key, const slc_link_line *line)
{
    slc_json_text_add(text, "\n    \"%s\"", key);
    slc_json_text_real(text, ": {\"latency_s\": ", line->latency_s);
    slc_json_text_real(text, ", \"bytes_per_s\": ", line->bytes_per_s);
    slc_json_text_add(text, "},");
}

static void put_link(slc_json_text *text, const slc_link *link)
{
    slc_json_text_add(text, ",\n  \"link\": {");
    put_line(text, "reduce_scatter", &link->reduce_scatter);
    put_line(text, "all_gather", &link->all_gather);
    if (link->channel.bytes_per_s > 0) put_line(text, "channel", &link->channel);
    slc_json_text_real(text, "\n    \"kappa\": ", link->kappa);
    slc_json_text_real(text, ", \"sigma\": ", link->sigma);
    slc_json_text_real(text, ", \"update_kappa\": ", link->update_kappa);
    slc_json_text_add(text, ", \"thread_moves\": %s", link->thread_moves ? "true" : "false");
    put_size(text, "block_bytes", link->block_bytes);
    slc_json_text_real(text, ", \"operation_s\": ", link->operation_s);
    slc_json_text_add(text, "\n  }");
}

static void put_layers(slc_json_text *text, const slc_profile *profile)
{
    const slc_job *job = &profile->job;
    const slc_times *times = &profile->times;
    open_list(text, "layers");
    for (uint32_t l = 0; l < job->layer_count; l++) {
        begin_row(text, l, job->layers[l]);
        slc_json_text_real(text, ", \"forward_s\": ", times->slot_s[slc_forward_slot(l)]);
        slc_json_text_real(text, ", \"backward_s\": ", times->slot_s[slc_backward_slot(job, l)]);
        if (times->weight_s && times->weight_s[l] >= 0)
            slc_json_text_real(text, ", \"weight_s\": ", times->weight_s[l]);
        slc_json_text_real(text, ", \"recompute_s\": ", times->recompute_s[l]);
        if (times->keeps && times->keeps[l] < 1) slc_json_text_real(text, ", \"keeps\": ", times->keeps[l]);
        slc_json_text_add(text, job->can_recompute[l] ? ", \"can_recompute\": true}" : "}");
    }
    close_list(text, job->layer_count);
}

static void put_uses(slc_json_text *text, const slc_job *job, const slc_unit *unit)
{
    slc_json_text_add(text, ", \"uses\": [");
    for (uint32_t n = 0; n < unit->use_count; n++) {
        const slc_use *use = &unit->uses[n];
        slc_json_text_add(text, n ? ", " : "");
        slc_json_text_string(text, use->backward_value ? "" : "{\"layer\": ", job->layers[use->layer]);
        if (!use->backward_value) slc_json_text_add(text, ", \"backward_value\": false}");
    }
    slc_json_text_add(text, "]");
}

/* Writes the lengths of the unit's tensors; they are left out if the unit is one tensor. */
static void put_tensors(slc_json_text *text, const slc_profile *profile, uint32_t u)
{
    const slc_profile_tensors *tensors = &profile->tensors[u];
    if (tensors->count == 1 && tensors->elements[0] == profile->parameters[u]) return;
    slc_json_text_add(text, ", \"tensors\": [");
    for (uint32_t t = 0; t < tensors->count; t++)
        slc_json_text_add(text, "%s%llu", t ? ", " : "", (unsigned long long)tensors->elements[t]);
    slc_json_text_add(text, "]");
}

/* Writes the rows of a look-up. Everything else about them follows from the unit that they are rows of. */
static void put_rows(slc_json_text *text, const slc_job *job, const slc_unit *unit)
{
    slc_json_text_string(text, ", \"rows\": {\"of\": ", job->units[unit->partner].name);
    put_size(text, "row_elements", unit->row_elements);
    put_size(text, "row_count", unit->row_count);
    put_size(text, "most_rows", unit->most_rows);
    slc_json_text_add(text, "}");
    put_uses(text, job, unit);
}

static void put_parameters(slc_json_text *text, const slc_profile *profile, uint32_t u)
{
    const slc_unit *unit = &profile->job.units[u];
    put_size(text, "parameters", profile->parameters[u]);
    put_tensors(text, profile, u);
    put_size(text, "block_bytes", profile->block_bytes[u]);
    if (unit->dtype != SLUICE_FP32) slc_json_text_add(text, ", \"dtype\": \"%s\"", sluice_dtype_name(unit->dtype));
    put_uses(text, &profile->job, unit);
    if (unit->fused) slc_json_text_add(text, ", \"fused\": true");
    if (!unit->trainable) slc_json_text_add(text, ", \"trainable\": false");
}

static void put_units(slc_json_text *text, const slc_profile *profile)
{
    const slc_job *job = &profile->job;
    open_list(text, "units");
    for (uint32_t u = 0; u < job->unit_count; u++) {
        begin_row(text, u, job->units[u].name);
        if (slc_looks_up(&job->units[u]))
            put_rows(text, job, &job->units[u]);
        else
            put_parameters(text, profile, u);
        slc_json_text_add(text, "}");
    }
    close_list(text, job->unit_count);
}

static void put_slot(slc_json_text *text, const slc_job *job, const char *key, uint32_t slot)
{
    const char *pass = slc_slot_is_forward(job, slot) ? "forward" : "backward";
    slc_json_text_add(text, ", \"%s\": ", key);
    slc_json_text_value(text, "", json_sprintf("%s %s", pass, job->layers[slc_slot_layer(job, slot)]));
}

static void put_readers(slc_json_text *text, const slc_job *job, const slc_activation_life *life)
{
    const slc_activation_readers *readers = slc_readers_of(job, life);
    if (!readers) return;
    slc_json_text_add(text, ", \"readers\": [");
    for (uint32_t n = 0; n < readers->count; n++) {
        const slc_reader *reader = &readers->at[n];
        slc_json_text_string(text, n ? ", {\"layer\": " : "{\"layer\": ", job->layers[reader->layer]);
        if (reader->forward) slc_json_text_add(text, ", \"forward\": true");
        slc_json_text_add(text, reader->backward ? ", \"backward\": true}" : "}");
    }
    slc_json_text_add(text, "]");
}

static void put_activations(slc_json_text *text, const slc_job *job)
{
    open_list(text, "activations");
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        begin_row(text, a, life->name);
        put_size(text, "bytes", life->bytes);
        put_slot(text, job, "first", life->first_slot);
        put_slot(text, job, "last", life->last_slot);
        bool used = life->last_forward_slot >= life->first_slot && life->last_forward_slot < job->layer_count;
        slc_json_text_value(
            text, ", \"last_in_evaluation\": ", used ? json_string(job->layers[life->last_forward_slot]) : json_null());
        put_readers(text, job, life);
        slc_json_text_add(text, life->recomputable ? ", \"recomputable\": true}" : "}");
    }
    close_list(text, job->activation_count);
}

static void put_workspaces(slc_json_text *text, const slc_job *job)
{
    open_list(text, "workspaces");
    for (uint32_t w = 0; w < job->workspace_count; w++) {
        begin_row(text, w, job->workspaces[w].name);
        put_size(text, "bytes", job->workspaces[w].bytes);
        put_slot(text, job, "slot", job->workspaces[w].slot);
        slc_json_text_add(text, "}");
    }
    close_list(text, job->workspace_count);
}

sluice_status slc_profile_to_json(const slc_profile *profile, char **out)
{
    slc_json_text text = {0};
    put_head(&text, profile);
    put_link(&text, &profile->times.link);
    put_layers(&text, profile);
    put_units(&text, profile);
    put_activations(&text, &profile->job);
    put_workspaces(&text, &profile->job);
    slc_json_text_add(&text, "\n}\n");
    return slc_error_context(slc_json_text_finish(&text, out), "profile");
}

sluice_status slc_profile_write(const slc_profile *profile, const char *path)
{
    char *text = NULL;
    sluice_status status = slc_profile_to_json(profile, &text);
    if (!status) status = slc_json_file_write(path, text);
    free(text);
    return status;
}
