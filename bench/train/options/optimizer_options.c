/* Walks the table of optimizers: a setting of a new optimizer is an option by being in its row.
 * tests/command/recipe/recipe_test.sh covers this file. */
#include "bench/train/options/optimizer_options.h"

#include "lib/base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- The options ---- */

static const slc_optimizer_row *find_or_default(const char *optimizer)
{
    const slc_optimizer_row *row = slc_optimizer_find(optimizer);
    return row ? row : slc_optimizer_at(0);
}

/* The first row that has an option of this name. */
static const slc_optimizer_row *first_with(const char *name)
{
    for (size_t o = 0; slc_optimizer_at(o); o++)
        if (slc_optimizer_option(slc_optimizer_at(o), name)) return slc_optimizer_at(o);
    return NULL;
}

const slc_optimizer_setting *slc_training_optimizer_setting(size_t i)
{
    for (size_t o = 0; slc_optimizer_at(o); o++) {
        const slc_optimizer_row *row = slc_optimizer_at(o);
        for (uint32_t s = 0; s < row->groups[0]->count; s++) {
            const slc_optimizer_setting *setting = &row->groups[0]->settings[s];
            if (setting->way == SLC_OPTIMIZER_OPTION && first_with(setting->name) == row && i-- == 0) return setting;
        }
    }
    return NULL;
}

/* Writes a number as 1e-8, which printf would write as 1e-08. */
static void write_number(double value, char text[32])
{
    snprintf(text, 32, "%g", value);
    char *zero = strstr(text, "e-0");
    if (zero) memmove(zero + 2, zero + 3, strlen(zero + 3) + 1);
}

void slc_training_optimizer_default(size_t i, char *text, size_t bytes)
{
    const slc_optimizer_setting *first = slc_training_optimizer_setting(i), *one;
    char number[32], other[32] = "";
    write_number(first->fallback, number);
    size_t used = (size_t)snprintf(text, bytes, "%s", number);
    for (size_t o = 0; slc_optimizer_at(o) && used < bytes; o++) {
        one = slc_optimizer_option(slc_optimizer_at(o), first->name);
        if (!one || one->fallback == first->fallback) continue; /* NOLINT: both are constants */
        write_number(one->fallback, number);
        const bool same = !strcmp(number, other);
        if (*other && !same) used += (size_t)snprintf(text + used, bytes - used, " %s", other);
        if (used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", same ? " and " : ", for ",
                                     slc_optimizer_at(o)->name);
        memcpy(other, number, sizeof other);
    }
    if (*other && used < bytes) snprintf(text + used, bytes - used, " %s", other);
}

/* ---- Their values ---- */

const slc_optimizer_row *slc_training_optimizer_row(const slc_training_options *o)
{
    return find_or_default(o->optimizer);
}

bool slc_training_optimizer_is_given(const slc_training_options *o, size_t i)
{
    const slc_training_setting *value = &o->optimizer_settings[i];
    return slc_training_optimizer_setting(i)->type == SLC_OPTIMIZER_SWITCH ? value->on != 0 : !isnan(value->real);
}

static void leave_open(slc_training_options *o, size_t i)
{
    if (slc_training_optimizer_setting(i)->type == SLC_OPTIMIZER_SWITCH)
        o->optimizer_settings[i].on = 0;
    else
        o->optimizer_settings[i].real = NAN;
}

void slc_training_optimizer_config(const slc_training_options *o, sluice_config *config)
{
    const slc_optimizer_setting *setting, *own;
    for (size_t i = 0; (setting = slc_training_optimizer_setting(i)) != NULL; i++) {
        own = slc_optimizer_option(slc_training_optimizer_row(o), setting->name);
        if (!own || !slc_training_optimizer_is_given(o, i)) continue;
        if (own->type == SLC_OPTIMIZER_SWITCH)
            *(bool *)((char *)config + own->offset) = true;
        else
            *(double *)((char *)config + own->offset) = o->optimizer_settings[i].real;
    }
}

void slc_training_optimizer_fill(slc_training_options *o)
{
    sluice_config config;
    const slc_optimizer_setting *setting, *own;
    sluice_config_init(&config);
    slc_training_optimizer_config(o, &config);
    for (size_t i = 0; (setting = slc_training_optimizer_setting(i)) != NULL; i++) {
        own = slc_optimizer_option(slc_training_optimizer_row(o), setting->name);
        if (!own) continue;
        if (own->type == SLC_OPTIMIZER_SWITCH)
            o->optimizer_settings[i].on = *(bool *)((char *)&config + own->offset);
        else
            o->optimizer_settings[i].real = *(double *)((char *)&config + own->offset);
    }
}

sluice_status slc_training_optimizer_check(const slc_training_options *o)
{
    const slc_optimizer_row *row = slc_training_optimizer_row(o);
    const slc_optimizer_setting *setting;
    for (size_t i = 0; (setting = slc_training_optimizer_setting(i)) != NULL; i++)
        if (slc_training_optimizer_is_given(o, i) && !slc_optimizer_option(row, setting->name))
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "--%s: the optimizer %s has no %s; leave it out, or give --optimizer %s", setting->name,
                             row->name, setting->name, first_with(setting->name)->name);
    return SLUICE_OK;
}

void slc_training_optimizer_drop(slc_training_options *o, const char *optimizer, bool had)
{
    const slc_optimizer_setting *setting;
    for (size_t i = 0; (setting = slc_training_optimizer_setting(i)) != NULL; i++)
        if ((slc_optimizer_option(find_or_default(optimizer), setting->name) != NULL) == had) leave_open(o, i);
}
