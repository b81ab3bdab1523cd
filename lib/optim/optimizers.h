/* The table of the optimizers of the library, and that of their settings. Whatever names optimizers or settings walks
 * them: the defaults of a configuration, the comparison of ranks, messages, what a GPU takes, the options of the
 * command. Functions are pure, unless said otherwise. */
#pragma once

#include "lib/optim/compressed.h"

#include <sluice/runtime.h>

/* The field is a double, a uint64_t or a bool. */
typedef enum { SLC_OPTIMIZER_REAL, SLC_OPTIMIZER_WHOLE, SLC_OPTIMIZER_SWITCH } slc_optimizer_type;

/* The ways in which `sluice train` takes a setting. */
typedef enum {
    SLC_OPTIMIZER_OPTION, /* by an option of its name, with dashes for underscores; optimizers that have settings of one
                             name share the option */
    SLC_OPTIMIZER_KEY,    /* as KEY=VALUE of --onebit */
    SLC_OPTIMIZER_OTHER   /* by an option of another name, or not at all */
} slc_optimizer_way;

/* A setting is a field of a struct in sluice_config. */
typedef struct {
    const char *name; /* of the field */
    size_t offset;    /* in sluice_config */
    slc_optimizer_type type;
    slc_optimizer_way way;
    double fallback;    /* the default; of a switch 0 or 1 */
    double least, most; /* what an option or a key takes; `create` of the row has the last word */
    const char *doc;    /* for the help of its option; NULL without one */
} slc_optimizer_setting;

/* The settings of one struct in sluice_config. */
typedef struct {
    const char *name; /* of the struct's field: "adamw" */
    uint32_t count;
    const slc_optimizer_setting *settings;
} slc_optimizer_group;

enum { SLC_OPTIMIZER_GROUPS = 2 };

typedef struct {
    const char *name;
    const char *doc;    /* what it is for, in a few words for help; NULL: nothing to add */
    bool compressed;    /* it fills slc_compressed */
    bool freeze_change; /* of a compressed one: onebit.freeze_change says when its warm-up ends, if freeze_step is 0 */
    bool on_gpu;        /* it has kernels for a GPU */
    const slc_optimizer_group *groups[SLC_OPTIMIZER_GROUPS]; /* that it reads; the first has the options of its own.
                                                                NULL after the last */
    sluice_status (*create)(const sluice_config *config, sluice_stream *stream, sluice_optimizer *out,
                            slc_compressed *compressed);
} slc_optimizer_row;

/* Rows and groups in their order; NULL after the last. Row 0 is the default. */
const slc_optimizer_row *slc_optimizer_at(size_t i);
const slc_optimizer_group *slc_optimizer_group_at(size_t i);
/* NULL: there is none of this name. */
const slc_optimizer_row *slc_optimizer_find(const char *name);
bool slc_optimizer_is_compressed(const char *name);
/* Returns the setting of this name that the optimizer has an option for; NULL: it has none. */
const slc_optimizer_setting *slc_optimizer_option(const slc_optimizer_row *row, const char *name);

/* Sets all settings of all optimizers to their defaults, and the optimizer's name to that of row 0. */
void slc_optimizer_defaults(sluice_config *config);

enum { SLC_OPTIMIZER_NAMES_BYTES = 256 };
typedef enum { SLC_OPTIMIZERS_ALL, SLC_OPTIMIZERS_COMPRESSED, SLC_OPTIMIZERS_ON_GPU } slc_optimizer_choice;
/* Writes the names in their order, with commas and "or" before the last, and returns `out`. */
const char *slc_optimizer_names(slc_optimizer_choice which, char out[SLC_OPTIMIZER_NAMES_BYTES]);

/* Fills `out` with the optimizer that config->optimizer_name names, and for a compressed one its functions into
 * `compressed`, which others leave alone. Everything runs on `stream`, which must outlive it. The caller ends it with
 * slc_optimizer_destroy. Errors: ARGUMENT (the name, or a setting out of its range), MEMORY. */
sluice_status slc_optimizer_create(const sluice_config *config, sluice_stream *stream, sluice_optimizer *out,
                                   slc_compressed *compressed);
void slc_optimizer_destroy(sluice_optimizer *optimizer, slc_compressed *compressed); /* both zero: does nothing */
