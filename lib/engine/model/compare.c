/* Compares everything that must be equal on all ranks, before anything depends on it. Settings are compared by a hash
 * of their text; if it differs, ranks show each other the text. Registration is compared by one hash for each layer, so
 * that a difference is named. Workspaces and what is reserved may differ (regions.h). tests/engine/engine_rows_test.c
 * covers this file. */
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/engine/model/registration.h"
#include "lib/engine/model/settings_text.h"
#include "lib/engine/runtime.h"
#include "lib/engine/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void hash_text(uint64_t *hash, const char *text)
{
    *hash = slc_fnv(*hash, text ? text : "", (text ? strlen(text) : 0) + 1);
}

static void hash_number(uint64_t *hash, uint64_t value)
{
    *hash = slc_fnv(*hash, &value, sizeof value);
}

static uint64_t hash_layer(const sluice_runtime *rt, uint32_t index)
{
    const sluice_layer *layer = rt->model.layers[index];
    uint64_t hash = SLC_FNV_START;
    hash_text(&hash, layer->name);
    hash_number(&hash, layer->forced);
    hash_number(&hash, layer->can_recompute);
    hash_number(&hash, layer->precision);
    for (uint32_t i = 0; i < rt->model.param_count; i++) {
        const sluice_param *p = rt->model.params[i];
        if (p->layer != index) continue;
        hash_text(&hash, p->name);
        hash_number(&hash, p->count);
        hash_number(&hash, (uint64_t)p->frozen | (uint64_t)p->no_decay << 1 | (uint64_t)p->tied << 2 |
                               (uint64_t)p->no_backward_value << 3);
        hash_number(&hash, p->row_elements);
        hash_number(&hash, p->most_rows);
        hash_number(&hash, p->group);
    }
    for (uint32_t i = 0; i < layer->use_count; i++) hash_text(&hash, layer->uses[i]->name);
    for (uint32_t i = 0; i < rt->model.activation_count; i++) {
        const sluice_activation *a = rt->model.activations[i];
        if (a->layer != index) continue;
        hash_text(&hash, a->name);
        hash_number(&hash, a->bytes);
        for (uint32_t s = 1; s <= SLUICE_SHAPES_MOST; s++) hash_number(&hash, a->shape_bytes[s]);
        hash_number(&hash, (uint64_t)a->first << 1 | (uint64_t)a->last | (uint64_t)a->recomputable << 2);
        hash_text(&hash, a->last_layer);
        hash_text(&hash, a->last_forward_layer);
    }
    return hash;
}

/* A rank's registration in short: how many layers it has, and hashes of its settings. */
typedef struct {
    uint64_t layers, settings, checks, keep;
} head;

/* All ranks tell their settings, and rank `r` differs from rank 0. Collective. */
static sluice_status name_setting(const sluice_runtime *rt, int r, const char *mine)
{
    char *all = malloc((size_t)rt->size * SLC_SETTINGS_BYTES);
    if (!all) return SLUICE_ERR_MEMORY;
    sluice_status status = sluice_world_all_gather(rt->world, mine, SLC_SETTINGS_BYTES, all);
    slc_settings_difference d = {{0}, {0}, {0}};
    uint32_t count = status ? 0 : slc_settings_differ(all, all + (size_t)r * SLC_SETTINGS_BYTES, &d);
    char more[64] = "";
    if (count > 1) snprintf(more, sizeof more, ", and %u more differ", count - 1);
    free(all);
    if (status) return status;
    return slc_error(
        SLUICE_ERR_MISMATCH,
        "rank %d has other settings than rank 0: %s is %s there and %s on rank 0%s; give every rank the same", r,
        d.name, d.second, d.first, more);
}

static sluice_status compare_settings(const sluice_runtime *rt, const head *heads, const char *mine)
{
    for (int r = 1; r < rt->size; r++)
        if (heads[r].settings != heads[0].settings) return name_setting(rt, r, mine);
    return SLUICE_OK;
}

static sluice_status compare_heads(const sluice_runtime *rt, const head *heads)
{
    for (int r = 1; r < rt->size; r++) {
        if (heads[r].checks != heads[0].checks)
            return slc_error(SLUICE_ERR_MISMATCH,
                             "SLUICE_ENGINE_CHECK is %s on rank 0 and %s on rank %d: set it on every rank, or on none",
                             heads[0].checks ? "on" : "off", heads[r].checks ? "on" : "off", r);
        if (heads[r].keep != heads[0].keep)
            return slc_error(SLUICE_ERR_MISMATCH,
                             "SLUICE_CHECKPOINT_KEEP is %llu on rank %d and %llu on rank 0: set it alike on every rank",
                             (unsigned long long)heads[r].keep, r, (unsigned long long)heads[0].keep);
    }
    return SLUICE_OK;
}

static sluice_status compare_layers(const sluice_runtime *rt, const head *heads, const uint64_t *hashes, uint64_t most)
{
    for (uint64_t l = 0; l < most; l++)
        for (int r = 1; r < rt->size; r++) {
            if (hashes[(uint64_t)r * most + l] == hashes[l]) continue;
            const char *name = l < rt->model.layer_count ? rt->model.layers[l]->name : "(not on this rank)";
            if (l >= heads[0].layers || l >= heads[r].layers)
                return slc_error(SLUICE_ERR_MISMATCH, "rank %d registers %llu layers, rank 0 %llu: layer %llu \"%s\"",
                                 r, (unsigned long long)heads[r].layers, (unsigned long long)heads[0].layers,
                                 (unsigned long long)l, name);
            return slc_error(SLUICE_ERR_MISMATCH,
                             "layer \"%s\" differs between rank 0 and rank %d (name, precision, parameters, sizes "
                             "or activations): register the same on every rank",
                             name, r);
        }
    return SLUICE_OK;
}

sluice_status slc_engine_compare_registration(sluice_runtime *rt)
{
    unsigned keep = 0;
    sluice_status readable = slc_setting_count(&slc_engine_settings, "SLUICE_CHECKPOINT_KEEP", &keep);
    if (readable) return readable;
    char settings[SLC_SETTINGS_BYTES];
    slc_settings_text(rt, settings);
    uint64_t hash = slc_fnv(SLC_FNV_START, settings, sizeof settings);
    head mine = {rt->model.layer_count, hash, rt->check != NULL, keep};
    head *heads = calloc((size_t)rt->size, sizeof *heads);
    uint64_t *own = NULL, *all = NULL, most = 0;
    sluice_status status = SLUICE_ERR_MEMORY;
    if (!heads) goto out;
    status = sluice_world_all_gather(rt->world, &mine, sizeof mine, heads);
    if (status) goto out;
    for (int r = 0; r < rt->size; r++)
        if (heads[r].layers > most) most = heads[r].layers;

    status = slc_runtime_alike(rt, compare_settings(rt, heads, settings));
    if (status) goto out;
    status = SLUICE_ERR_MEMORY;
    own = calloc(most + 1, sizeof *own);
    all = calloc((most + 1) * (size_t)rt->size, sizeof *all);
    if (!own || !all) goto out;
    for (uint32_t l = 0; l < rt->model.layer_count; l++) own[l] = hash_layer(rt, l);
    status = sluice_world_all_gather(rt->world, own, most * sizeof *own, all);
    if (status) goto out;
    status = compare_layers(rt, heads, all, most);
    if (!status) status = compare_heads(rt, heads);
    slc_runtime_alike(rt, status);

out:
    free(all);
    free(own);
    free(heads);
    return status == SLUICE_ERR_MEMORY ? slc_runtime_fail(rt, slc_error(status, "no memory to compare registrations"))
                                       : status;
}
