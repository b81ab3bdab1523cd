/* Every bundled optimizer has the same four numbers: those of AdamW, or those of LAMB. */
#include "bench/train/options/optimizer_options.h"

#include <math.h>
#include <string.h>

enum { NUMBERS = 4 };

static void fields_of(const slc_training_options *o, sluice_config *config, double *fields[NUMBERS])
{
    sluice_adamw *a = &config->adamw;
    sluice_lamb *l = &config->lamb;
    const bool lamb = !strcmp(o->optimizer, "lamb") || !strcmp(o->optimizer, "onebit_lamb");
    double *const of_adamw[] = {&a->beta1, &a->beta2, &a->epsilon, &a->weight_decay};
    double *const of_lamb[] = {&l->beta1, &l->beta2, &l->epsilon, &l->weight_decay};
    memcpy(fields, lamb ? of_lamb : of_adamw, sizeof of_lamb);
}

void slc_training_optimizer_config(const slc_training_options *o, sluice_config *config)
{
    const double given[NUMBERS] = {o->beta1, o->beta2, o->epsilon, o->weight_decay};
    double *fields[NUMBERS];
    fields_of(o, config, fields);
    for (int i = 0; i < NUMBERS; i++)
        if (!isnan(given[i])) *fields[i] = given[i];
}

void slc_training_optimizer_fill(slc_training_options *o)
{
    sluice_config config;
    double *fields[NUMBERS];
    sluice_config_init(&config);
    slc_training_optimizer_config(o, &config);
    fields_of(o, &config, fields);
    o->beta1 = *fields[0], o->beta2 = *fields[1], o->epsilon = *fields[2], o->weight_decay = *fields[3];
}
