/* Options of compressed optimizers. The settings of --onebit are a table of fields of sluice_onebit. */
#include "bench/train/options/onebit_options.h"

#include "bench/train/options/optimizer_options.h"
#include "lib/base/status.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_WARM_UP = 5 }; /* steps; with the variance of fewer gradients, updates destroy the weights */

/* ---- Which optimizer ---- */

bool slc_training_is_compressed(const char *optimizer)
{
    return !strcmp(optimizer, "onebit_adam") || !strcmp(optimizer, "onebit_lamb") ||
           !strcmp(optimizer, "zero_one_adam");
}

static bool is_one_of(const char *text, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(text, *names)) return true;
    return false;
}

bool slc_training_is_exact(const char *strategy)
{
    static const char *const exact[] = {"dp", "oss", "sdp", "fsdp", "mixed", NULL};
    return is_one_of(strategy, exact);
}

static bool allowed(const slc_training_options *o)
{
    return !strcmp(o->lossy, "onebit") && !slc_training_is_exact(o->strategy);
}

const char *slc_training_optimizer(const slc_training_options *o)
{
    if (*o->optimizer) return o->optimizer;
    return !strcmp(o->strategy, "onebit") || allowed(o) ? "onebit_adam" : "adamw";
}

/* ---- Settings ---- */

typedef enum { WHOLE, SHARE, RATIO, SWITCH } value_kind;

typedef struct {
    const char *key;
    value_kind kind;
    size_t offset;
    bool is_option; /* it has a training option of its own, and is no key of --onebit */
} onebit_row;

#define ROW(field, kind, is_option)                                                                                    \
    {                                                                                                                  \
#field, kind, offsetof(sluice_onebit, field), is_option                                                        \
    }
static const onebit_row rows[] = {
    ROW(freeze_step, WHOLE, true),        ROW(freeze_change, SHARE, true),       ROW(compat, SWITCH, true),
    ROW(compat_mask, SWITCH, false),      ROW(coefficient_beta, SHARE, false),   ROW(trust_min, RATIO, false),
    ROW(trust_max, RATIO, false),         ROW(factor_min, RATIO, false),         ROW(factor_max, RATIO, false),
    ROW(factor_threshold, SHARE, false),  ROW(var_freeze_step, WHOLE, true),     ROW(var_update_scaler, WHOLE, false),
    ROW(local_step_scaler, WHOLE, false), ROW(local_step_clipper, WHOLE, false),
};
enum { ROWS = sizeof rows / sizeof *rows };

json_t *slc_training_onebit_json(const slc_training_options *o)
{
    sluice_config config;
    sluice_config_init(&config);
    if (!slc_training_is_compressed(o->optimizer)) return json_null();
    slc_training_onebit(o, &config.onebit);
    json_t *settings = json_object();
    for (int i = 0; i < ROWS; i++) {
        const void *field = (const char *)&config.onebit + rows[i].offset;
        json_object_set_new(settings, rows[i].key,
                            rows[i].kind == WHOLE    ? json_integer((json_int_t) * (const uint64_t *)field)
                            : rows[i].kind == SWITCH ? json_boolean(*(const bool *)field)
                                                     : json_real(*(const double *)field));
    }
    return settings;
}

static void list_keys(char *text, size_t bytes)
{
    size_t used = 0;
    *text = 0;
    for (int i = 0; i < ROWS && used < bytes; i++)
        if (!rows[i].is_option)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", rows[i].key);
}

static bool set_value(const onebit_row *row, const char *text, sluice_onebit *out)
{
    static const struct {
        double least, most;
    } range[] = {{1, 4294967295.0}, {0, 1}, {0, 1e9}, {0, 1}};
    char *end, *field = (char *)out + row->offset;
    errno = 0;
    double value = strtod(text, &end);
    bool whole = row->kind == WHOLE || row->kind == SWITCH;
    if (end == text || *end || errno || !(value >= range[row->kind].least && value <= range[row->kind].most))
        return false;
    if (whole && value != floor(value)) return false;
    if (row->kind == WHOLE)
        *(uint64_t *)field = (uint64_t)value;
    else if (row->kind == SWITCH)
        *(bool *)field = value > 0;
    else
        *(double *)field = value;
    return true;
}

static sluice_status set_pair(const char *pair, sluice_onebit *out)
{
    static const char *const wanted[] = {"a whole number from 1", "a number from 0 to 1", "a number from 0", "0 or 1"};
    char keys[512];
    size_t length = strcspn(pair, "=");
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].is_option || strlen(rows[i].key) != length || strncmp(rows[i].key, pair, length)) continue;
        if (pair[length] && set_value(&rows[i], pair + length + 1, out)) return SLUICE_OK;
        return slc_error(SLUICE_ERR_ARGUMENT, "--onebit %s: give %s=VALUE, %s", pair, rows[i].key,
                         wanted[rows[i].kind]);
    }
    list_keys(keys, sizeof keys);
    return slc_error(SLUICE_ERR_ARGUMENT, "--onebit %s: unknown; KEY=VALUE with commas between, KEY being one of %s",
                     pair, keys);
}

static sluice_status set_pairs(const char *list, sluice_onebit *out)
{
    char *copy = strdup(list);
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "--onebit");
    sluice_status status = SLUICE_OK;
    for (char *rest = copy, *pair; !status && (pair = strsep(&rest, ",")) != NULL;)
        if (*pair) status = set_pair(pair, out);
    free(copy);
    return status;
}

uint64_t slc_training_freeze_step(const slc_training_options *o)
{
    if (o->freeze_step || o->freeze_change > 0) return o->freeze_step;
    uint64_t fifth = o->steps / 5 > LEAST_WARM_UP ? o->steps / 5 : LEAST_WARM_UP;
    return fifth > o->warmup ? fifth : o->warmup;
}

/* Returns the steps that a variance remembers: 1 / (1 - beta2). */
static uint64_t variance_steps(const slc_training_options *o)
{
    slc_training_options filled = *o;
    slc_training_optimizer_fill(&filled);
    return (uint64_t)ceil(1 / (1 - filled.beta2) - 1e-6);
}

void slc_training_onebit(const slc_training_options *o, sluice_onebit *out)
{
    if (!slc_training_is_compressed(o->optimizer)) return;
    out->freeze_step = out->var_freeze_step = slc_training_freeze_step(o);
    if (o->freeze_change > 0) out->freeze_change = o->freeze_change;
    out->compat = o->onebit_compat;
    /* The authors' 16 refreshes are the first of a hundred thousand steps; a short run is spoilt by them. */
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
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--%s onebit with --optimizer %s: onebit needs a compressed optimizer: onebit_adam (also if you "
                     "leave --optimizer out), onebit_lamb or zero_one_adam",
                     asked ? "strategy" : "lossy", o->optimizer);
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
    sluice_onebit unused_values;
    const char *unused = find_unused(o);
    sluice_status status = check_consent(o);
    if (status) return status;
    if (unused)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "--%s: only the compressed optimizers have a freeze; give --optimizer onebit_adam, onebit_lamb "
            "or zero_one_adam",
            unused);
    if (o->freeze_step && o->freeze_change > 0)
        return slc_error(SLUICE_ERR_ARGUMENT, "--freeze-step and --freeze-change: give one of them");
    if (slc_training_is_compressed(o->optimizer) && o->warmup && !strcmp(o->lr_over, "tokens") && !o->freeze_step &&
        !(o->freeze_change > 0))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-over tokens: the freeze of %s must come after --warmup, whose steps are not known; give "
                         "--freeze-step%s",
                         o->optimizer, strcmp(o->optimizer, "zero_one_adam") ? " or --freeze-change" : "");
    if (o->freeze_change > 0 && !strcmp(o->optimizer, "zero_one_adam"))
        return slc_error(SLUICE_ERR_ARGUMENT, "--freeze-change: zero_one_adam freezes at a step; give --freeze-step");
    return o->onebit ? set_pairs(o->onebit, &unused_values) : SLUICE_OK;
}

void slc_training_onebit_only(slc_training_options *o)
{
    if (!strcmp(o->optimizer, "zero_one_adam")) o->freeze_change = 0;
    if (slc_training_is_compressed(o->optimizer)) return;
    o->freeze_step = 0;
    o->freeze_change = 0;
    o->onebit_compat = 0;
    o->onebit = NULL;
    o->lossy = "none";
}
