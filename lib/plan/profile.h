/* A profile: a job, how long its parts take, and where that comes from. Everything that planning reads, so that plans
 * can be made and studied away from the machines. As a file it is JSON (docs/formats.md). */
#ifndef SLC_PLAN_PROFILE_H
#define SLC_PLAN_PROFILE_H

#include "lib/plan/times.h"

#include <stddef.h>

enum { SLC_PROFILE_VERSION = 1, SLC_PLAN_VERSION = 1 };

/* The tensors of a unit, which a compressed exchange keeps apart. */
typedef struct {
    uint64_t *elements;
    uint32_t count;
} slc_profile_tensors;

typedef struct {
    char *model;           /* free text: "gpt2 small", "GPT-3 175B" */
    char *source;          /* free text: "measured on 2 ranks, ucx", "made: 64 x A100, 200 Gbit/s" */
    slc_job job;           /* owned, names included */
    uint64_t *parameters;  /* [units] elements before the padding to a multiple of 16 * world, for other worlds; of a
                              ROWS unit always those of its table, most_rows * row_elements */
    uint64_t *block_bytes; /* [units] base block as asked for; job.units[].block_elements is what becomes of it. ROWS:
                              0, all of it is one block */
    slc_profile_tensors *tensors; /* [units] job.units[].exchange is what becomes of them */
    bool compressed;              /* of the compressed phase; job.compressed: and there are ranks to exchange with */
    /* Bytes of blocks (full buffer) that messages may have on their way to a rank at a time: job.scratch_bytes is what
     * the other ranks have of it, this / world for each of them. 0: all peers are reached directly. */
    uint64_t scratch_in_flight;
    slc_times times;
} slc_profile;

enum { SLC_PROFILE_WORLD_MAX = 1 << 20 };

/* A copy of a job and its times. `parameters` NULL: the padded lengths; those of ROWS units are not read. Each unit is
 * one tensor of that length, until slc_profile_set_tensors says better, and its exchange's sizes are made from that. It
 * is of no optimizer: nothing in it makes asking for onebit an error (slc_job.exact). Errors: MEMORY; ARGUMENT (padding
 * `parameters` does not give the job's lengths, or its scratch is no multiple of the number of peers). */
sluice_status slc_profile_create(const slc_job *job, const uint64_t *parameters, const slc_times *times,
                                 const char *model, const char *source, slc_profile **out);
void slc_profile_destroy(slc_profile *profile); /* NULL is allowed */

/* Of which tensors a unit is made, in order. Units that are never onebit (frozen, SPLIT, ROWS) exchange nothing all the
 * same. Errors: MEMORY; ARGUMENT (they are longer than the unit). */
sluice_status slc_profile_set_tensors(slc_profile *profile, uint32_t unit, const uint64_t *elements, uint32_t count);

/* As in its compressed phase, or not, whatever its job was. Errors: ARGUMENT (gradients are reduced each micro-batch).
 */
sluice_status slc_profile_set_compressed(slc_profile *profile, bool compressed);

/* The same for another world: lengths padded anew, sizes of exchanges, scratch for its peers; times per slot stay.
 * Errors: ARGUMENT (no such world, or padded for it the sizes of exchanges are beyond 2^60 bytes). */
sluice_status slc_profile_set_world(slc_profile *profile, uint32_t world);

/* What becomes of a unit's lengths in a world, as the engine makes them: elements are rounded up to a multiple of
 * 16 * world; a block is block_bytes / 4 elements rounded down to one, at least one. unit->role must be there; of ROWS
 * the lengths follow from its rows alone, which must be there too: one block. */
void slc_profile_unit_lengths(uint64_t parameters, uint64_t block_bytes, uint32_t world, slc_unit *unit);

/* JSON. Reading errors: FORMAT with the path inside the JSON ("$.layers[3].forward_s: ..."), what is wrong and what was
 * expected; also for another version, for values that are no finite number >= 0, for slots, layers or sizes that do not
 * fit together. Unknown keys are errors. `text` need not end with 0. Writing gives malloc'ed text that reads back to
 * exactly the same profile. */
sluice_status slc_profile_from_json(const char *text, size_t length, slc_profile **out);
sluice_status slc_profile_to_json(const slc_profile *profile, char **out);
sluice_status slc_profile_read(const char *path, slc_profile **out);
sluice_status slc_profile_write(const slc_profile *profile, const char *path); /* whole or not at all */

/* A plan as JSON, self-contained: version, a fingerprint of the job it was made for (world, micro-batches, layers with
 * names, units with sizes), strategies by unit name, items, claims, waits, offsets, and, for readers only, the forecast
 * (NULL: none). Reading checks form and that it is for this job (another world, a layer missing or of another size:
 * FORMAT with the path and both values), then slc_plan_validate. */
typedef struct {
    double step_s, exposed_s, compute_s, communication_s;
    double bound_s;  /* no answer of the slot model (its positions and ties) is below; 0: not known */
    const char *why; /* of the planner: which member of the portfolio; NULL: none */
} slc_plan_forecast;
sluice_status slc_plan_to_json(const slc_job *job, const slc_plan *plan, const slc_plan_forecast *forecast, char **out);
sluice_status slc_plan_from_json(const slc_job *job, const char *text, size_t length, slc_plan **out);
sluice_status slc_plan_read(const slc_job *job, const char *path, slc_plan **out);
sluice_status slc_plan_write(const slc_job *job, const slc_plan *plan, const slc_plan_forecast *forecast,
                             const char *path);

#endif
