/* The model that the options describe, and how many stages it is cut into. bench/train/train_run_test.c covers this
 * file. */
#include "bench/train/options/options.h"

#include "bench/cli/path_hints.h"
#include "lib/base/status.h"
#include "lib/model/shape.h"
#include "lib/weights/family.h"

#include <stdlib.h>
#include <string.h>

enum { VISUAL_TOKENS = 8192, VISUAL_TOKENS_SMALL = 64 }; /* BEiT's, and enough for small images */

/* Gives a configuration another head than its size or file has, with the fields that the head needs; the data sets the
 * rest. */
static void set_head(sluice_model_config *model, sluice_model_head head)
{
    if (model->head == head) return;
    model->head = head;
    if (head == SLUICE_HEAD_CLASSES) {
        model->classes = 2;
    } else if (slc_family_of(model->family)->sees) {
        model->classes = 0;
        model->mask_token = true;
        if (!model->vocabulary) model->vocabulary = model->image_size < 224 ? VISUAL_TOKENS_SMALL : VISUAL_TOKENS;
    }
}

const char *slc_training_family(const slc_training_options *o)
{
    for (uint32_t f = 0; !strcmp(o->norm, "before") && f < SLUICE_MODEL_FAMILIES; f++) {
        const slc_family *family = slc_family_of((sluice_model_family)f);
        if (!strcmp(o->model, family->name) && family->norms_before) return family->norms_before;
    }
    return o->model;
}

static sluice_status check_norms(const slc_training_options *o, const sluice_model_config *model)
{
    const bool after = slc_family_of(model->family)->norms_after;
    if (!*o->norm || !strcmp(o->norm, "after") == after) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--norm %s: the norms of %s, a %s, come %s its branches; leave it out",
                     o->norm, o->weights ? o->weights : o->size, slc_family_of(model->family)->name,
                     after ? "after" : "before");
}

/* Gives a BEiT tables of relative positions for each block, or one for all of them. Its published weights share one
 * where they guess masked patches. */
static sluice_status set_positions(const slc_training_options *o, sluice_model_config *model)
{
    const bool asked = *o->positions, shared = asked && !strcmp(o->positions, "shared");
    const bool named = !o->weights && !o->shape.struct_size;
    const char *from = o->weights ? o->weights : o->size;
    if (!model->relative_positions && !model->shared_positions) {
        if (!asked) return SLUICE_OK;
        return slc_error(SLUICE_ERR_ARGUMENT, "--positions %s: %s has no relative positions; leave it out",
                         o->positions, from);
    }
    if (shared && !named && !model->shared_positions)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--positions shared: each block of %s has a table of its own, and one cannot be made of them; "
                         "leave it out",
                         from);
    if (!asked && !(named && model->head == SLUICE_HEAD_TOKENS)) return SLUICE_OK;
    model->shared_positions = asked ? shared : true;
    model->relative_positions = !model->shared_positions;
    return SLUICE_OK;
}

sluice_status slc_training_model(const slc_training_options *o, sluice_model_config *model, uint32_t *length)
{
    sluice_status status = SLUICE_OK;
    if (o->weights)
        status = o->shape_only ? slc_model_shape_read(o->weights, model) : sluice_model_config_read(o->weights, model);
    else if (o->shape.struct_size)
        *model = o->shape;
    else
        status = sluice_model_config_named(slc_training_family(o), o->size, model);
    status = slc_hint_weights(status, o->weights);
    if (status) return slc_error_context(status, o->weights ? "--weights" : "--model, --size");
    if (*o->head) set_head(model, !strcmp(o->head, "classes") ? SLUICE_HEAD_CLASSES : SLUICE_HEAD_TOKENS);
    status = check_norms(o, model);
    if (!status) status = set_positions(o, model);
    if (status) return status;
    model->dropout = o->dropout;
    model->drop_path = o->drop_path;
    *length = 0;
    if (model->context) {
        if (o->context > model->context)
            return slc_error(SLUICE_ERR_ARGUMENT, "--context %llu: %s has a context of %u",
                             (unsigned long long)o->context, o->weights ? o->weights : o->size, model->context);
        *length = o->context ? (uint32_t)o->context : model->context < 256 ? model->context : 256;
    } else if (o->context) {
        return slc_error(SLUICE_ERR_ARGUMENT, "--context %llu: %s sees images, whose size is the model's",
                         (unsigned long long)o->context, sluice_model_family_name((uint32_t)model->family));
    }
    return slc_error_context(sluice_model_config_check(model), "--head");
}

uint64_t slc_training_stages(const slc_training_options *o)
{
    const char *text = o->pipeline;
    char *end;
    if (!strcmp(text, "off")) return 0;
    const unsigned long long stages = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && stages >= 2 && stages <= SLC_TRAINING_STAGES_MOST ? stages
                                                                                                      : UINT64_MAX;
}

/* Ranks that no whole number of replicas makes are refused at commit. */
uint64_t slc_training_replicas(const slc_training_options *o, uint64_t ranks)
{
    const uint64_t stages = slc_training_stages(o);
    return stages && ranks >= stages ? ranks / stages : ranks;
}
