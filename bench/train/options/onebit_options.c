/* Options of compressed optimizers. The settings of --onebit are those of sluice_onebit in the table of optimizers.
 * tests/command/train/onebit_test.sh covers this file. */
#include "bench/train/options/length_options.h"
#include "bench/train/options/onebit_options.h"

#include "bench/train/options/optimizer_options.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "sched/planner.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_WARM_UP = 5 }; /* steps; with the variance of fewer gradients, updates destroy the weights */

/* ---- Which optimizer ---- */

bool slc_training_is_compressed(const char *optimizer)
{
    return slc_optimizer_is_compressed(optimizer);
}

bool slc_training_is_exact(const char *strategy)
{
    slc_strategy of_all_units;
    return !strcmp(strategy, "mixed") ||
           (slc_strategy_parse(strategy, &of_all_units) && (int)of_all_units < SLC_EXACT_STRATEGIES);
}

static bool allowed(const slc_training_options *o)
{
    return !strcmp(o->lossy, "onebit") && !slc_training_is_exact(o->strategy);
}

const char *slc_training_optimizer_usual(bool compressed)
{
    size_t i = 0;
    while (slc_optimizer_at(i)->compressed != compressed) i++;
    return slc_optimizer_at(i)->name;
}

const char *slc_training_optimizer(const slc_training_options *o)
{
    if (*o->optimizer) return o->optimizer;
    return slc_training_optimizer_usual(!strcmp(o->strategy, "onebit") || allowed(o));
}

/* ---- Settings ---- */

static const slc_optimizer_group *onebit_settings(void)
{
    size_t g = 0;
    while (strcmp(slc_optimizer_group_at(g)->name, "onebit")) g++;
    return slc_optimizer_group_at(g);
}

json_t *slc_training_onebit_json(const slc_training_options *o)
{
    sluice_config config;
    sluice_config_init(&config);
    if (!slc_training_is_compressed(o->optimizer)) return json_null();
    slc_training_onebit(o, &config.onebit);
    json_t *settings = json_object();
    for (uint32_t i = 0; i < onebit_settings()->count; i++) {
        const slc_optimizer_setting *s = &onebit_settings()->settings[i];
        const void *field = (const char *)&config + s->offset;
        json_object_set_new(settings, s->name,
                            s->type == SLC_OPTIMIZER_WHOLE    ? json_integer((json_int_t) * (const uint64_t *)field)
                            : s->type == SLC_OPTIMIZER_SWITCH ? json_boolean(*(const bool *)field)
                                                              : json_real(*(const double *)field));
    }
    return settings;
}

static void list_keys(char *text, size_t bytes)
{
    const slc_optimizer_group *group = onebit_settings();
    size_t used = 0;
    *text = 0;
    for (uint32_t i = 0; i < group->count && used < bytes; i++)
        if (group->settings[i].way == SLC_OPTIMIZER_KEY)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", group->settings[i].name);
}

static bool set_value(const slc_optimizer_setting *s, const char *text, sluice_config *out)
{
    char *end, *field = (char *)out + s->offset;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || !(value >= s->least && value <= s->most)) return false;
    if (s->type != SLC_OPTIMIZER_REAL && value != floor(value)) return false;
    if (s->type == SLC_OPTIMIZER_WHOLE)
        *(uint64_t *)field = (uint64_t)value;
    else if (s->type == SLC_OPTIMIZER_SWITCH)
        *(bool *)field = value > 0;
    else
        *(double *)field = value;
    return true;
}

static const char *what_is_wanted(const slc_optimizer_setting *s)
{
    return s->type == SLC_OPTIMIZER_WHOLE    ? "a whole number from 1"
           : s->type == SLC_OPTIMIZER_SWITCH ? "0 or 1"
           : s->most > 1                     ? "a number from 0"
                                             : "a number from 0 to 1";
}

static sluice_status set_pair(const char *pair, sluice_config *out)
{
    const slc_optimizer_group *group = onebit_settings();
    char keys[512];
    size_t length = strcspn(pair, "=");
    for (uint32_t i = 0; i < group->count; i++) {
        const slc_optimizer_setting *s = &group->settings[i];
        if (s->way != SLC_OPTIMIZER_KEY || strlen(s->name) != length || strncmp(s->name, pair, length)) continue;
        if (pair[length] && set_value(s, pair + length + 1, out)) return SLUICE_OK;
        return slc_error(SLUICE_ERR_ARGUMENT, "--onebit %s: give %s=VALUE, %s", pair, s->name, what_is_wanted(s));
    }
    list_keys(keys, sizeof keys);
    return slc_error(SLUICE_ERR_ARGUMENT, "--onebit %s: unknown; KEY=VALUE with commas between, KEY being one of %s",
                     pair, keys);
}

static sluice_status set_pairs(const char *list, sluice_onebit *out)
{
    sluice_config config = {.onebit = *out};
    char *copy = strdup(list);
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "--onebit");
    sluice_status status = SLUICE_OK;
    for (char *rest = copy, *pair; !status && (pair = strsep(&rest, ",")) != NULL;)
        if (*pair) status = set_pair(pair, &config);
    *out = config.onebit;
    free(copy);
    return status;
}

uint64_t slc_training_freeze_step(const slc_training_options *o)
{
    if (o->freeze_step || o->freeze_change > 0) return o->freeze_step;
    const slc_recipe_length lengths = slc_length_options_sizes(o, 1).length;
    const uint64_t settles = slc_recipe_length_settles(&lengths), after = settles ? settles + LEAST_WARM_UP : 0;
    uint64_t fifth = o->steps / 5 > LEAST_WARM_UP ? o->steps / 5 : LEAST_WARM_UP;
    return slc_most(slc_most(fifth, o->warmup), after);
}

/* Returns the steps that a variance remembers: 1 / (1 - beta2). */
static uint64_t variance_steps(const slc_training_options *o)
{
    sluice_config config;
    sluice_config_init(&config);
    slc_training_optimizer_config(o, &config);
    const size_t beta2 = slc_optimizer_option(slc_training_optimizer_row(o), "beta2")->offset;
    return (uint64_t)ceil(1 / (1 - *(const double *)((const char *)&config + beta2)) - 1e-6);
}

void slc_training_onebit(const slc_training_options *o, sluice_onebit *out)
{
    if (!slc_training_is_compressed(o->optimizer)) return;
    out->freeze_step = out->var_freeze_step = slc_training_freeze_step(o);
    if (o->freeze_change > 0) out->freeze_change = o->freeze_change;
    out->compat = o->onebit_compat;
    /* The authors' 16 refreshes are meant for a run of a hundred thousand steps; they would spoil a short run. */
    uint64_t refreshes = variance_steps(o);
    if (refreshes > out->var_freeze_step) refreshes = out->var_freeze_step;
    if (!out->compat && refreshes > out->var_update_scaler) out->var_update_scaler = refreshes;
    if (o->onebit) set_pairs(o->onebit, out); /* slc_training_onebit_check has checked them */
}

/* ---- Checking ---- */

static sluice_status check_consent(const slc_training_options *o)
{
    bool asked = !strcmp(o->strategy, "onebit");
    if (slc_training_is_compressed(o->optimizer) || (!asked && !allowed(o))) return SLUICE_OK;
    char names[SLC_OPTIMIZER_NAMES_BYTES];
    const char *usual = slc_training_optimizer_usual(true);
    slc_optimizer_names(SLC_OPTIMIZERS_COMPRESSED, names);
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--%s onebit with --optimizer %s: onebit needs a compressed optimizer: %s (also if you leave "
                     "--optimizer out)%s",
                     asked ? "strategy" : "lossy", o->optimizer, usual, names + strlen(usual));
}

/* Returns an option that would have no effect; NULL: there is none. */
static const char *find_unused(const slc_training_options *o)
{
    if (slc_training_is_compressed(o->optimizer)) return NULL;
    return o->freeze_step         ? "freeze-step"
           : o->freeze_change > 0 ? "freeze-change"
           : o->onebit_compat     ? "onebit-compat"
           : o->onebit            ? "onebit"
                                  : NULL;
}

sluice_status slc_training_onebit_check(const slc_training_options *o)
{
    sluice_onebit unused_values = {0};
    char names[SLC_OPTIMIZER_NAMES_BYTES];
    const char *unused = find_unused(o);
    const bool at_step = !slc_training_optimizer_row(o)->freeze_change;
    sluice_status status = check_consent(o);
    if (status) return status;
    if (unused)
        return slc_error(SLUICE_ERR_ARGUMENT, "--%s: only the compressed optimizers have a freeze; give --optimizer %s",
                         unused, slc_optimizer_names(SLC_OPTIMIZERS_COMPRESSED, names));
    if (o->freeze_step && o->freeze_change > 0)
        return slc_error(SLUICE_ERR_ARGUMENT, "--freeze-step and --freeze-change: give one of them");
    if (slc_training_is_compressed(o->optimizer) && o->warmup && !strcmp(o->lr_over, "tokens") && !o->freeze_step &&
        !(o->freeze_change > 0))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-over tokens: the freeze of %s must come after --warmup, whose steps are not known; give "
                         "--freeze-step%s",
                         o->optimizer, at_step ? "" : " or --freeze-change");
    if (o->freeze_change > 0 && at_step)
        return slc_error(SLUICE_ERR_ARGUMENT, "--freeze-change: %s freezes at a step; give --freeze-step",
                         o->optimizer);
    return o->onebit ? set_pairs(o->onebit, &unused_values) : SLUICE_OK;
}

void slc_training_onebit_only(slc_training_options *o)
{
    if (!slc_training_optimizer_row(o)->freeze_change) o->freeze_change = 0;
    if (slc_training_is_compressed(o->optimizer)) return;
    o->freeze_step = 0;
    o->freeze_change = 0;
    o->onebit_compat = 0;
    o->onebit = NULL;
    o->lossy = "none";
}
