/* A row for each optimizer. A new one is a row here, its struct in sluice/optimizer.h and its field in
 * sluice/config.h; docs/training.md says what the command's options mean.
 * tests/onebit/onebit_config_test.c covers this file. */
#include "lib/optim/optimizers.h"

#include "lib/base/status.h"
#include "lib/optim/adamw.h"
#include "lib/optim/lamb.h"
#include "lib/optim/onebit/onebit_adam.h"
#include "lib/optim/onebit/onebit_lamb.h"
#include "lib/optim/sgd.h"
#include "lib/optim/onebit/zero_one_adam.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Settings ---- */

#define REAL SLC_OPTIMIZER_REAL
#define WHOLE SLC_OPTIMIZER_WHOLE
#define SWITCH SLC_OPTIMIZER_SWITCH
#define OPTION SLC_OPTIMIZER_OPTION
#define KEY SLC_OPTIMIZER_KEY
#define OTHER SLC_OPTIMIZER_OTHER
#define MOST_STEPS 4294967295.0
#define BELOW_1 0.9999999

#define AT(group, field) #field, offsetof(sluice_config, group.field)
#define GROUP(name)                                                                                                    \
    {                                                                                                                  \
#name, sizeof name##_settings / sizeof *name##_settings, name##_settings                                       \
    }

#define WEIGHT_DECAY_DOC "Weight decay of matrices and tables; biases, norms and other vectors have none"
#define BETA1_DOC "Share of the gradients' average that a step keeps"
#define BETA2_DOC "The same of their squares' average"
#define EPSILON_DOC "Added to the square root of that average"

static const slc_optimizer_setting adamw_settings[] = {
    {AT(adamw, weight_decay), REAL, OPTION, 0.01, 0, 1e6, WEIGHT_DECAY_DOC},
    {AT(adamw, beta1), REAL, OPTION, 0.9, 0, BELOW_1, BETA1_DOC},
    {AT(adamw, beta2), REAL, OPTION, 0.999, 0, BELOW_1, BETA2_DOC},
    {AT(adamw, epsilon), REAL, OPTION, 1e-8, 1e-30, 1e6, EPSILON_DOC},
};

static const slc_optimizer_setting lamb_settings[] = {
    {AT(lamb, weight_decay), REAL, OPTION, 0.01, 0, 1e6, WEIGHT_DECAY_DOC},
    {AT(lamb, beta1), REAL, OPTION, 0.9, 0, BELOW_1, BETA1_DOC},
    {AT(lamb, beta2), REAL, OPTION, 0.999, 0, BELOW_1, BETA2_DOC},
    {AT(lamb, epsilon), REAL, OPTION, 1e-6, 1e-30, 1e6, EPSILON_DOC},
    {AT(lamb, norm_min), REAL, OTHER, 0, 0, INFINITY, NULL},
    {AT(lamb, norm_max), REAL, OTHER, INFINITY, 0, INFINITY, NULL},
};

static const slc_optimizer_setting sgd_settings[] = {
    {AT(sgd, momentum), REAL, OPTION, 0.9, 0, BELOW_1, "Momentum of sgd; 0: none, and no optimizer state"},
    {AT(sgd, dampening), REAL, OPTION, 0, 0, 1, "Share of each gradient that sgd's momentum leaves out"},
    {AT(sgd, weight_decay), REAL, OPTION, 0, 0, 1e6, WEIGHT_DECAY_DOC},
    {AT(sgd, nesterov), SWITCH, OPTION, 0, 0, 1, "Nesterov's momentum in sgd"},
};

static const slc_optimizer_setting onebit_settings[] = {
    {AT(onebit, freeze_step), WHOLE, OTHER, 0, 0, MOST_STEPS, NULL},
    {AT(onebit, freeze_change), REAL, OTHER, 0.04, 0, 1, NULL},
    {AT(onebit, compat), SWITCH, OTHER, 0, 0, 1, NULL},
    {AT(onebit, compat_mask), SWITCH, KEY, 0, 0, 1, NULL},
    {AT(onebit, coefficient_beta), REAL, KEY, 0.9, 0, 1, NULL},
    {AT(onebit, trust_min), REAL, KEY, 0.01, 0, 1e9, NULL},
    {AT(onebit, trust_max), REAL, KEY, 10, 0, 1e9, NULL},
    {AT(onebit, factor_min), REAL, KEY, 0.5, 0, 1e9, NULL},
    {AT(onebit, factor_max), REAL, KEY, 4, 0, 1e9, NULL},
    {AT(onebit, factor_threshold), REAL, KEY, 0.1, 0, 1, NULL},
    {AT(onebit, var_freeze_step), WHOLE, OTHER, 100000, 1, MOST_STEPS, NULL},
    {AT(onebit, var_update_scaler), WHOLE, KEY, 16, 1, MOST_STEPS, NULL},
    {AT(onebit, local_step_scaler), WHOLE, KEY, 32678, 1, MOST_STEPS, NULL},
    {AT(onebit, local_step_clipper), WHOLE, KEY, 16, 1, MOST_STEPS, NULL},
};

enum { ADAMW, LAMB, SGD, ONEBIT, GROUPS };
static const slc_optimizer_group groups[] = {
    [ADAMW] = GROUP(adamw), [LAMB] = GROUP(lamb), [SGD] = GROUP(sgd), [ONEBIT] = GROUP(onebit)};

/* ---- Optimizers ---- */

/* create_NAME calls slc_NAME_create with the settings sluice_config.NAME; its context is one allocation, which
 * slc_optimizer_destroy frees. */
#define PLAIN(name)                                                                                                    \
    static sluice_status create_##name(const sluice_config *config, sluice_stream *stream, sluice_optimizer *out,      \
                                       slc_compressed *compressed)                                                     \
    {                                                                                                                  \
        (void)compressed;                                                                                              \
        return slc_##name##_create(&config->name, stream, out);                                                        \
    }

#define COMPRESSED(name)                                                                                               \
    static sluice_status create_##name(const sluice_config *config, sluice_stream *stream, sluice_optimizer *out,      \
                                       slc_compressed *compressed)                                                     \
    {                                                                                                                  \
        const slc_compressed_settings settings = {config->adamw, config->lamb, config->onebit};                        \
        sluice_status status = slc_##name##_create(&settings, stream, compressed);                                     \
        if (!status) *out = compressed->optimizer;                                                                     \
        return status;                                                                                                 \
    }

PLAIN(adamw)
PLAIN(lamb)
PLAIN(sgd)
COMPRESSED(onebit_adam)
COMPRESSED(onebit_lamb)
COMPRESSED(zero_one_adam)

static const slc_optimizer_row rows[] = {
    {.name = "adamw", .on_gpu = true, .groups = {&groups[ADAMW]}, .create = create_adamw},
    {.name = "lamb", .doc = "for large batches", .on_gpu = true, .groups = {&groups[LAMB]}, .create = create_lamb},
    {.name = "sgd", .doc = "with momentum", .on_gpu = true, .groups = {&groups[SGD]}, .create = create_sgd},
    {.name = "onebit_adam",
     .compressed = true,
     .on_gpu = true,
     .freeze_change = true,
     .groups = {&groups[ADAMW], &groups[ONEBIT]},
     .create = create_onebit_adam},
    {.name = "onebit_lamb",
     .compressed = true,
     .on_gpu = true,
     .freeze_change = true,
     .groups = {&groups[LAMB], &groups[ONEBIT]},
     .create = create_onebit_lamb},
    {.name = "zero_one_adam",
     .compressed = true,
     .on_gpu = true,
     .groups = {&groups[ADAMW], &groups[ONEBIT]},
     .create = create_zero_one_adam},
};
enum { ROWS = sizeof rows / sizeof *rows };

const slc_optimizer_row *slc_optimizer_at(size_t i)
{
    return i < ROWS ? &rows[i] : NULL;
}

const slc_optimizer_group *slc_optimizer_group_at(size_t i)
{
    return i < GROUPS ? &groups[i] : NULL;
}

const slc_optimizer_row *slc_optimizer_find(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(name, rows[i].name)) return &rows[i];
    return NULL;
}

bool slc_optimizer_is_compressed(const char *name)
{
    const slc_optimizer_row *row = slc_optimizer_find(name);
    return row && row->compressed;
}

const slc_optimizer_setting *slc_optimizer_option(const slc_optimizer_row *row, const char *name)
{
    const slc_optimizer_group *group = row->groups[0];
    for (uint32_t i = 0; i < group->count; i++)
        if (group->settings[i].way == SLC_OPTIMIZER_OPTION && !strcmp(group->settings[i].name, name))
            return &group->settings[i];
    return NULL;
}

void slc_optimizer_defaults(sluice_config *config)
{
    config->optimizer_name = rows[0].name;
    for (size_t g = 0; g < GROUPS; g++)
        for (uint32_t i = 0; i < groups[g].count; i++) {
            const slc_optimizer_setting *s = &groups[g].settings[i];
            void *field = (char *)config + s->offset;
            if (s->type == SLC_OPTIMIZER_REAL)
                *(double *)field = s->fallback;
            else if (s->type == SLC_OPTIMIZER_WHOLE)
                *(uint64_t *)field = (uint64_t)s->fallback;
            else
                *(bool *)field = s->fallback > 0;
        }
}

static bool is_chosen(const slc_optimizer_row *row, slc_optimizer_choice which)
{
    return which == SLC_OPTIMIZERS_ALL || (which == SLC_OPTIMIZERS_COMPRESSED ? row->compressed : row->on_gpu);
}

const char *slc_optimizer_names(slc_optimizer_choice which, char out[SLC_OPTIMIZER_NAMES_BYTES])
{
    size_t chosen = 0, named = 0, used = 0;
    for (size_t i = 0; i < ROWS; i++) chosen += is_chosen(&rows[i], which);
    *out = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (!is_chosen(&rows[i], which) || used >= SLC_OPTIMIZER_NAMES_BYTES) continue;
        const char *between = !named ? "" : named + 1 == chosen ? " or " : ", ";
        used += (size_t)snprintf(out + used, SLC_OPTIMIZER_NAMES_BYTES - used, "%s%s", between, rows[i].name);
        named++;
    }
    return out;
}

sluice_status slc_optimizer_create(const sluice_config *config, sluice_stream *stream, sluice_optimizer *out,
                                   slc_compressed *compressed)
{
    const slc_optimizer_row *row = slc_optimizer_find(config->optimizer_name);
    char names[SLC_OPTIMIZER_NAMES_BYTES];
    if (row) return row->create(config, stream, out, compressed);
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "there is no optimizer \"%s\"; give %s, or one of your own (sluice_config.optimizer)",
                     config->optimizer_name, slc_optimizer_names(SLC_OPTIMIZERS_ALL, names));
}

void slc_optimizer_destroy(sluice_optimizer *optimizer, slc_compressed *compressed)
{
    if (compressed->destroy) {
        compressed->destroy(compressed->context);
        return;
    }
    free(optimizer->context);
    optimizer->context = NULL;
}
