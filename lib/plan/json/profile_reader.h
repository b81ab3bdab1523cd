/* The state and the parts of reading a profile from JSON. Private to lib/plan. */
#pragma once

#include "lib/plan/json/json_read.h"
#include "lib/plan/profile.h"

/* Members of the document's top level that do not go into the job or the times unchanged. */
typedef struct {
    const char *model, *source, *accumulate, *wire;
    uint32_t version;
    uint64_t scratch_in_flight;
    json_t *compressed, *link, *layers, *units, *activations, *workspaces;
} slc_profile_top;

typedef struct {
    slc_json_place top;
    slc_profile_top row;
    slc_job job;
    slc_times times;
    bool *can_recompute;
    slc_activation_readers *readers; /* the job's */
    bool drawn;                      /* some layer is not kept by every step */
    bool weights;                    /* some layer says what the gradients of its weights take */
    uint64_t *parameters, *block_bytes;
    slc_profile_tensors *tensors;
    json_t *layer_index, *unit_index; /* numbers by name */
} slc_profile_reader;

/* Gives `name` the next number in `index`. */
sluice_status slc_profile_add_name(const slc_json_place *at, json_t *index, const char *name);

bool slc_profile_layer_of(const slc_profile_reader *r, const char *name, uint32_t *layer); /* false: there is none */
sluice_status slc_profile_find_layer(const slc_profile_reader *r, const slc_json_place *at, const char *name,
                                     uint32_t *layer);

sluice_status slc_profile_read_dtype(const slc_json_place *object, const char *key, const char *name,
                                     sluice_dtype *out);

/* Reads r->row.units into the job, and keeps the lengths that the job itself does not show. Layers must have been
 * read. */
sluice_status slc_profile_read_units(slc_profile_reader *r);
