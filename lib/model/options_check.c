/* The options of a model, checked before anything is made. cache_test.c and
 * lib/model/batch/lengths_test.c cover this file. */
#include "lib/model/options_check.h"

#include "lib/base/status.h"

static sluice_status check_options(const sluice_model_config *c, const sluice_model_options *o)
{
    const char *name = sluice_model_family_name((uint32_t)c->family);
    bool sees = slc_model_sees(c);
    if (!o->batch || (!sees && !o->length))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: a micro-batch needs at least one %s", name,
                         sees ? "image" : "token");
    if (sees && o->length) return slc_error(SLUICE_ERR_ARGUMENT, "%s: images have no length; leave it 0", name);
    if (o->length_step && (sees || o->cache_tokens))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: micro-batches of several lengths (length_step) are for text, without "
                         "a cache; leave it 0",
                         name);
    if (!o->length_step && (o->length_least || o->folds))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: %s goes with length_step; set it, or leave this 0", name,
                         o->folds ? "folds" : "length_least");
    if (o->length_step && (o->length_least % o->length_step || o->length_least > o->length))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: length_least is %u; it must be a multiple of %u (length_step), at most %u (length)", name,
                         o->length_least, o->length_step, o->length);
    if (!sees && o->length > c->context)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: sequences of %u tokens exceed the model's context of %u", name,
                         o->length, c->context);
    if (!(o->label_smoothing >= 0 && o->label_smoothing < 1 && (float)o->label_smoothing < 1))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: label_smoothing is %g; it must be in [0, 1)", name,
                         o->label_smoothing);
    return SLUICE_OK;
}

static sluice_status check_shapes(const sluice_model_config *c, const sluice_model_options *o)
{
    const char *name = sluice_model_family_name((uint32_t)c->family);
    const uint32_t least = o->length_least ? o->length_least : o->length_step;
    if (!o->shape_count) return SLUICE_OK;
    if (!o->shape_lengths || !o->length_step || o->folds || o->shape_count > SLUICE_SHAPES_MOST)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: %llu shapes; give at most %d shape_lengths, with length_step and without folds", name,
                         (unsigned long long)o->shape_count, SLUICE_SHAPES_MOST);
    for (uint64_t s = 0; s < o->shape_count; s++) {
        const uint32_t length = o->shape_lengths[s], longer = s ? o->shape_lengths[s - 1] : o->length;
        if (length < longer && length >= least && length % o->length_step == 0) continue;
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "%s: shape_lengths[%llu] is %u; it must be a multiple of %u (length_step), from %u up and below "
            "%u",
            name, (unsigned long long)s, length, o->length_step, least, longer);
    }
    return SLUICE_OK;
}

static sluice_status check_cache(sluice_runtime *rt, const sluice_model_config *c, const sluice_model_options *o)
{
    if (!o->cache_tokens) return SLUICE_OK;
    const char *name = slc_family_of(c->family)->name;
    if (!slc_family_of(c->family)->causal || c->head != SLUICE_HEAD_TOKENS)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: a cache of keys and values is for models that go on with a text token by token, as gpt2",
                         name);
    if (o->batch != 1 || o->cache_tokens > c->context || o->length > o->cache_tokens)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: a cache of %u tokens, with passes of %u sequences of %u; it is of one sequence, passes "
                         "are no longer than the cache, and the model's context is %u",
                         name, o->cache_tokens, o->batch, o->length, c->context);
    if (slc_device_runs_ahead(sluice_runtime_stream(rt)->device))
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: a cache of keys and values is there on \"cpu\" alone, not on %s",
                         name, sluice_runtime_device(rt));
    if (sluice_world_size(sluice_runtime_world(rt)) > 1)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: a cache of keys and values is for a world of one rank, not %d",
                         name, sluice_world_size(sluice_runtime_world(rt)));
    return SLUICE_OK;
}

sluice_status slc_model_options_check(sluice_runtime *rt, const sluice_model_config *config,
                                      const sluice_model_options *options)
{
    sluice_status status = check_options(config, options);
    if (!status) status = check_shapes(config, options);
    return status ? status : check_cache(rt, config, options);
}
