/* Compares two profiles member by member, to the bit. */
#pragma once

#include "lib/plan/profile.h"

#include <string.h>

#define TEST_EQUAL static inline __attribute__((unused))

TEST_EQUAL bool test_units_equal(const slc_unit *a, const slc_unit *b)
{
    if (strcmp(a->name, b->name) || a->elements != b->elements || a->block_elements != b->block_elements ||
        a->dtype != b->dtype || a->trainable != b->trainable || a->use_count != b->use_count || a->fused != b->fused ||
        memcmp(&a->exchange, &b->exchange, sizeof a->exchange) != 0 || a->role != b->role || a->partner != b->partner ||
        a->row_elements != b->row_elements || a->row_count != b->row_count || a->most_rows != b->most_rows)
        return false;
    for (uint32_t n = 0; n < a->use_count; n++)
        if (a->uses[n].layer != b->uses[n].layer || a->uses[n].backward_value != b->uses[n].backward_value)
            return false;
    return true;
}

TEST_EQUAL bool test_lives_equal(const slc_job *a, const slc_job *b)
{
    if (a->activation_count != b->activation_count || a->workspace_count != b->workspace_count) return false;
    for (uint32_t i = 0; i < a->activation_count; i++) {
        const slc_activation_life *x = &a->activations[i], *y = &b->activations[i];
        if (strcmp(x->name, y->name) || x->bytes != y->bytes || x->first_slot != y->first_slot ||
            x->last_slot != y->last_slot || x->last_forward_slot != y->last_forward_slot ||
            x->recomputable != y->recomputable)
            return false;
        const slc_activation_readers *of_x = slc_readers_of(a, x), *of_y = slc_readers_of(b, y);
        if (!of_x != !of_y || (of_x && of_x->count != of_y->count)) return false;
        for (uint32_t n = 0; of_x && n < of_x->count; n++)
            if (of_x->at[n].layer != of_y->at[n].layer || of_x->at[n].forward != of_y->at[n].forward ||
                of_x->at[n].backward != of_y->at[n].backward)
                return false;
    }
    for (uint32_t i = 0; i < a->workspace_count; i++) {
        const slc_workspace_life *x = &a->workspaces[i], *y = &b->workspaces[i];
        if (strcmp(x->name, y->name) || x->bytes != y->bytes || x->slot != y->slot) return false;
    }
    return true;
}

TEST_EQUAL bool test_jobs_equal(const slc_job *a, const slc_job *b)
{
    if (a->world != b->world || a->micro_batches != b->micro_batches || a->each != b->each || a->wire != b->wire ||
        a->barrier != b->barrier || a->states != b->states || a->norm_words != b->norm_words ||
        a->layer_count != b->layer_count || a->unit_count != b->unit_count || a->scratch_bytes != b->scratch_bytes ||
        a->reserved_bytes != b->reserved_bytes || a->compressed != b->compressed || a->refreshes != b->refreshes ||
        a->norms_barrier != b->norms_barrier || a->local_arrays != b->local_arrays)
        return false;
    for (uint32_t l = 0; l < a->layer_count; l++)
        if (strcmp(a->layers[l], b->layers[l]) ||
            (a->can_recompute && a->can_recompute[l]) != (b->can_recompute && b->can_recompute[l]))
            return false;
    for (uint32_t u = 0; u < a->unit_count; u++)
        if (!test_units_equal(&a->units[u], &b->units[u])) return false;
    return test_lives_equal(a, b);
}

TEST_EQUAL bool test_times_equal(const slc_job *job, const slc_times *a, const slc_times *b)
{
    const slc_link *x = &a->link, *y = &b->link;
    return !memcmp(a->slot_s, b->slot_s, slc_job_slots(job) * sizeof *a->slot_s) &&
           !memcmp(a->recompute_s, b->recompute_s, job->layer_count * sizeof *a->recompute_s) &&
           !a->weight_s == !b->weight_s && !a->keeps == !b->keeps &&
           (!a->keeps || !memcmp(a->keeps, b->keeps, job->layer_count * sizeof *a->keeps)) &&
           (!a->weight_s || !memcmp(a->weight_s, b->weight_s, job->layer_count * sizeof *a->weight_s)) &&
           x->channel.latency_s == y->channel.latency_s && x->channel.bytes_per_s == y->channel.bytes_per_s &&
           a->update_s_per_element == b->update_s_per_element &&
           a->update_compute_s_per_element == b->update_compute_s_per_element &&
           a->compress_s_per_element == b->compress_s_per_element && a->apply_s_per_element == b->apply_s_per_element &&
           a->average_s_per_element == b->average_s_per_element && a->outside_s == b->outside_s &&
           a->late_s == b->late_s && x->reduce_scatter.latency_s == y->reduce_scatter.latency_s &&
           x->reduce_scatter.bytes_per_s == y->reduce_scatter.bytes_per_s &&
           x->all_gather.latency_s == y->all_gather.latency_s &&
           x->all_gather.bytes_per_s == y->all_gather.bytes_per_s && x->kappa == y->kappa && x->sigma == y->sigma &&
           x->update_kappa == y->update_kappa && x->thread_moves == y->thread_moves &&
           x->block_bytes == y->block_bytes && x->operation_s == y->operation_s;
}

TEST_EQUAL bool test_profiles_equal(const slc_profile *a, const slc_profile *b)
{
    if (strcmp(a->model, b->model) || strcmp(a->source, b->source) || !test_jobs_equal(&a->job, &b->job)) return false;
    for (uint32_t u = 0; u < a->job.unit_count; u++)
        if (a->parameters[u] != b->parameters[u] || a->block_bytes[u] != b->block_bytes[u] ||
            a->tensors[u].count != b->tensors[u].count ||
            memcmp(a->tensors[u].elements, b->tensors[u].elements,
                   a->tensors[u].count * sizeof *a->tensors[u].elements) != 0)
            return false;
    return a->compressed == b->compressed && a->scratch_in_flight == b->scratch_in_flight &&
           test_times_equal(&a->job, &a->times, &b->times);
}
