/* tests/command/recipe/curriculum_test.sh covers this file. */
#include "bench/train/options/length_options.h"

#include "bench/train/options/batch_options.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MULTIPLE = 8, FIELDS = 5, SMALLEST_SHAPE = 8 };

typedef unsigned long long whole;

/* ---- Reading ---- */

static sluice_status refuse(const slc_training_options *o, const char *why)
{
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--curriculum %s: %s; give MIN:MAX:STEPS[:ROOT[:MULTIPLE]], as 64:1024:15000, or "
                     "LENGTH@STEP,...,LENGTH, as 128@9000,512",
                     o->curriculum, why);
}

/* Reads a whole number from 1 to `most` at *at, and goes on behind it. Returns false where there is none. */
static bool take_number(const char **at, uint64_t most, uint64_t *out)
{
    char *end;
    if (**at < '0' || **at > '9') return false;
    const whole value = strtoull(*at, &end, 10);
    *at = end;
    *out = value;
    return value >= 1 && value <= most;
}

static sluice_status read_growth(const slc_training_options *o, slc_recipe_length *out)
{
    static const char *const wrong[FIELDS] = {"MIN is no number of tokens", "MAX is no number of tokens",
                                              "STEPS is no number of steps", "ROOT is no whole number from 1 to 16",
                                              "MULTIPLE is no number of tokens"};
    static const uint64_t most[FIELDS] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, SLC_RECIPE_ROOT_MAX, UINT32_MAX};
    uint64_t fields[FIELDS] = {0, 0, 0, 1, MULTIPLE};
    const char *at = o->curriculum;
    for (int i = 0; i < FIELDS; i++) {
        if (!take_number(&at, most[i], &fields[i]) || (*at && *at != ':')) return refuse(o, wrong[i]);
        if (!*at && i >= 2) break;
        if (!*at) return refuse(o, "it has fewer than three numbers");
        if (i + 1 == FIELDS) return refuse(o, "it has more than five numbers");
        at++;
    }
    *out = (slc_recipe_length){.least = (uint32_t)fields[0],
                               .most = (uint32_t)fields[1],
                               .over = fields[2],
                               .root = (uint32_t)fields[3],
                               .multiple = (uint32_t)fields[4]};
    return SLUICE_OK;
}

static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Adds a stretch; l->multiple becomes the greatest number of which all lengths so far are multiples. */
static void add_stretch(slc_recipe_length *l, uint32_t length, uint64_t until)
{
    l->least = l->stretch_count ? (uint32_t)slc_least(l->least, length) : length;
    l->most = (uint32_t)slc_most(l->most, length);
    l->multiple = greatest_divisor(length, l->multiple);
    l->stretches[l->stretch_count].length = length;
    l->stretches[l->stretch_count++].until = until;
}

static sluice_status read_stretches(const slc_training_options *o, slc_recipe_length *out)
{
    const char *at = o->curriculum;
    uint64_t length, until, last = 0;
    *out = (slc_recipe_length){0};
    for (;;) {
        if (!take_number(&at, UINT32_MAX, &length)) return refuse(o, "a length is no number of tokens");
        if (out->stretch_count == SLC_RECIPE_STRETCHES_MAX) return refuse(o, "it has more than 32 lengths");
        if (!*at) {
            add_stretch(out, (uint32_t)length, 0);
            return SLUICE_OK;
        }
        if (*at++ != '@' || !take_number(&at, UINT32_MAX, &until) || *at++ != ',')
            return refuse(o, "each length but the last needs @STEP, the last step that has it");
        if (until <= last) return refuse(o, "each step must be above the one before");
        add_stretch(out, (uint32_t)length, until);
        last = until;
    }
}

sluice_status slc_length_options_read(const slc_training_options *o, slc_recipe_length *out)
{
    *out = (slc_recipe_length){0};
    if (!slc_length_options_vary(o)) return SLUICE_OK;
    return strchr(o->curriculum, '@') || !strchr(o->curriculum, ':') ? read_stretches(o, out) : read_growth(o, out);
}

bool slc_length_options_vary(const slc_training_options *o)
{
    return *o->curriculum != 0;
}

/* ---- Checking ---- */

static bool folds(const slc_training_options *o)
{
    return !strcmp(o->curriculum_batch, "tokens");
}

static sluice_status check_lengths(const slc_training_options *o, const slc_recipe_length *l, uint32_t context)
{
    if (l->least > l->most)
        return slc_error(SLUICE_ERR_ARGUMENT, "--curriculum %s: its shortest length %u is above its longest %u",
                         o->curriculum, l->least, l->most);
    if (l->most > context)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--curriculum %s: %u tokens are beyond the context of %u; give a longer --context, or shorter "
                         "lengths",
                         o->curriculum, l->most, context);
    for (int i = 0; i < 2; i++) {
        const uint32_t length = i ? l->most : l->least;
        if (length % l->multiple)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "--curriculum %s: %u is not a multiple of %u, as all lengths are; give others, or another "
                             "MULTIPLE",
                             o->curriculum, length, l->multiple);
    }
    return SLUICE_OK;
}

sluice_status slc_length_options_check(const slc_training_options *o, uint32_t context)
{
    slc_recipe_length length;
    if (!slc_length_options_vary(o)) {
        if (!folds(o)) return SLUICE_OK;
        return slc_error(SLUICE_ERR_ARGUMENT, "--curriculum-batch tokens: give --curriculum too");
    }
    if (!context)
        return slc_error(SLUICE_ERR_ARGUMENT, "--curriculum %s: %s sees images, which have no length; leave it out",
                         o->curriculum, o->model);
    if (!strcmp(o->sequences, "documents"))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "--curriculum %s: with --sequences documents each record brings a length of its own; give "
                         "--sequences windows, or leave one out",
                         o->curriculum);
    if (o->first_batch && o->first_batches > 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "--first-batches %llu: steps that grow have no equal batches; give 1",
                         (whole)o->first_batches);
    sluice_status status = slc_length_options_read(o, &length);
    return status ? status : check_lengths(o, &length, context);
}

/* ---- What follows ---- */

slc_recipe_sizes slc_length_options_sizes(const slc_training_options *o, uint32_t rows)
{
    slc_recipe_sizes sizes = {.batch = slc_batch_options_growth(o), .folds = folds(o), .whole = rows};
    if (slc_length_options_read(o, &sizes.length)) sizes.length = (slc_recipe_length){0}; /* the check has read it */
    return sizes;
}

/* Finds the lengths of shapes, in falling order. There are none without a budget, because all plans fit then, nor with
 * folded steps, which take the memory of whole ones. */
static uint32_t find_shapes(const slc_training_options *o, const slc_recipe_sizes *sizes, uint32_t context,
                            uint32_t shapes[SLUICE_SHAPES_MOST])
{
    const slc_recipe_length *l = &sizes->length;
    uint32_t count = 0, last = context;
    if (!*o->budget || sizes->folds) return 0;
    for (uint32_t part = 2; part <= SMALLEST_SHAPE; part *= 2) {
        const uint32_t length = (uint32_t)slc_round_up((context + part - 1) / part, l->multiple);
        if (length >= last || length < l->least) continue;
        shapes[count++] = last = length;
    }
    return count;
}

void slc_length_options_set_model(const slc_training_options *o, uint32_t shapes[SLUICE_SHAPES_MOST],
                                  sluice_model_options *model)
{
    const slc_recipe_sizes sizes = slc_length_options_sizes(o, 1);
    if (!sizes.length.most) return;
    model->length_step = sizes.length.multiple;
    model->length_least = sizes.length.least;
    model->folds = sizes.folds;
    model->shape_count = find_shapes(o, &sizes, model->length, shapes);
    model->shape_lengths = model->shape_count ? shapes : NULL;
}

void slc_length_options_drop(slc_training_options *o)
{
    o->curriculum = "";
    o->curriculum_batch = "fixed";
}

void slc_length_options_words(const slc_training_options *o, char *text, size_t bytes)
{
    const slc_recipe_length l = slc_length_options_sizes(o, 1).length;
    *text = 0;
    if (l.stretch_count)
        snprintf(text, bytes, ", lengths by steps %s%s", o->curriculum, folds(o) ? ", folded" : "");
    else if (l.most)
        snprintf(text, bytes, ", lengths growing from %u to %u over %llu steps%s", l.least, l.most, (whole)l.over,
                 folds(o) ? ", folded" : "");
}

void slc_length_options_doubt(const slc_training_options *o, uint64_t freeze, char *text, size_t bytes)
{
    const slc_recipe_length l = slc_length_options_sizes(o, 1).length;
    const uint64_t settles = slc_recipe_length_settles(&l);
    *text = 0;
    if (!freeze || !settles || freeze > settles) return;
    snprintf(text, bytes,
             "--curriculum %s: sequences grow until step %llu, and the variance is frozen at step %llu, when positions "
             "beyond their length have had no gradient yet: their variance stays 0; give --freeze-step %llu or more",
             o->curriculum, (whole)settles, (whole)freeze, (whole)settles + 1);
}
