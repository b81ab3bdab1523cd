/* A profile: a job, how long its parts take, and where these figures come from. It is everything that planning reads,
 * so plans can be made and studied away from the machines. As a file it is JSON (docs/formats.md). */
#pragma once

#include "lib/plan/distance.h"
#include "lib/plan/times.h"

#include <stddef.h>

/* The versions of the files. A file states the lowest version that has everything in it. */
enum { SLC_PROFILE_VERSION = 1, SLC_PROFILE_VERSION_STAGES = 2, SLC_PROFILE_VERSION_DRAWN = 3 };
enum { SLC_PLAN_VERSION = 1, SLC_PLAN_VERSION_STAGES = 2 };

/* The lengths of a unit's tensors; a compressed exchange keeps tensors apart. */
typedef struct {
    uint64_t *elements;
    uint32_t count;
} slc_profile_tensors;

typedef struct {
    char *model;           /* free text: "gpt2 small", "GPT-3 175B" */
    char *source;          /* free text: "measured on 2 ranks, ucx", "made: 64 x A100, 200 Gbit/s" */
    slc_job job;           /* owned, names included */
    uint64_t *parameters;  /* [units] elements before padding to a multiple of 16 * world, for planning other worlds;
                              ROWS: always those of the table, most_rows * row_elements */
    uint64_t *block_bytes; /* [units] bytes of the base block that was asked for; job.units[].block_elements follows
                              from it. ROWS: 0, the whole table is one block */
    slc_profile_tensors *tensors; /* [units] job.units[].exchange follows from them */
    bool compressed; /* the profile is of the compressed phase; job.compressed also needs more than one rank */
    /* Bytes of blocks (full buffer) that messages may have on their way to a rank at a time. job.scratch_bytes holds
     * the other ranks' part of it: this / world for each of them. 0: all peers are reached directly. */
    uint64_t scratch_in_flight;
    slc_times times;
} slc_profile;

enum { SLC_PROFILE_WORLD_MAX = 1 << 20 };

/* Copies a job and its times into a profile that the caller destroys. `parameters` [units]; NULL: the padded lengths;
 * those of ROWS units are not read. Each unit is one tensor of that length, from which the sizes of its exchange are
 * made, until slc_profile_set_tensors changes it. A profile belongs to no optimizer, so asking it for onebit is no
 * error (slc_job.exact). Errors: MEMORY; ARGUMENT (padding `parameters` does not give the job's lengths, or its scratch
 * is no multiple of the number of peers). */
sluice_status slc_profile_create(const slc_job *job, const uint64_t *parameters, const slc_times *times,
                                 const char *model, const char *source, slc_profile **out);
void slc_profile_destroy(slc_profile *profile); /* NULL is allowed */

/* Sets the lengths of the tensors that make up a unit, in order; `elements` is copied. Units that are never onebit
 * (frozen, SPLIT, ROWS) exchange nothing all the same. Errors: MEMORY; ARGUMENT (the tensors are longer than the unit,
 * or padded for the exchange they are beyond 2^60 bytes). */
sluice_status slc_profile_set_tensors(slc_profile *profile, uint32_t unit, const uint64_t *elements, uint32_t count);

/* Puts the profile into its compressed phase or takes it out, whatever its job was. Errors: ARGUMENT (gradients are
 * reduced in each micro-batch). */
sluice_status slc_profile_set_compressed(slc_profile *profile, bool compressed);

/* Changes the profile to another world: lengths are padded anew, sizes of exchanges and scratch for the peers follow;
 * times per slot stay. Errors: ARGUMENT (no such world, or exchanges padded for it are beyond 2^60 bytes). */
sluice_status slc_profile_set_world(slc_profile *profile, uint32_t world);

/* Sets a unit's lengths in a world as the engine does: elements are rounded up to a multiple of 16 * world; a block is
 * block_bytes / 4 elements, rounded down to such a multiple, at least one. unit->role must be set; for ROWS so must its
 * rows, from which alone its lengths follow: one block. */
void slc_profile_unit_lengths(uint64_t parameters, uint64_t block_bytes, uint32_t world, slc_unit *unit);

/* Read and write a profile as JSON. Errors in reading are FORMAT, with the path inside the JSON
 * ("$.layers[3].forward_s: ..."), what is wrong and what was expected; also for another version, for values that are
 * not finite and >= 0, for slots, layers or sizes that do not fit together. Unknown keys are errors. `text` need not
 * end with 0. Writing gives malloc'ed text that reads back to exactly the same profile. */
sluice_status slc_profile_from_json(const char *text, size_t length, slc_profile **out);
sluice_status slc_profile_to_json(const slc_profile *profile, char **out);
sluice_status slc_profile_read(const char *path, slc_profile **out);
sluice_status slc_profile_write(const slc_profile *profile,
                                const char *path); /* writes the whole file or leaves it untouched */

/* A plan as JSON, self-contained: version, what the plan knows of its job (world, micro-batches, layers with names,
 * units with sizes), strategies by unit name, items, claims, waits, offsets, and, only for people to read, the forecast
 * (NULL: none). Reading checks the form and that the plan is for this job (another world, a layer that is missing or of
 * another size: FORMAT with the path and both values), then calls slc_plan_validate. */
typedef struct {
    double step_s, exposed_s, compute_s, communication_s, outside_s;
    double bound_s;         /* lower bound of the step of any valid plan within the budget; 0: not known */
    const char *why;        /* which member of the joint search made the plan; NULL: not known */
    double searched_s;      /* how long the planner searched for the plan; 0: not known */
    double effort_s;        /* nominal seconds of work (effort/work.h) that it spent; 0: not known */
    slc_planning_end ended; /* why it ended */
    slc_plan_distance distance;
} slc_plan_forecast;
sluice_status slc_plan_to_json(const slc_job *job, const slc_plan *plan, const slc_plan_forecast *forecast, char **out);
sluice_status slc_plan_from_json(const slc_job *job, const char *text, size_t length, slc_plan **out);
sluice_status slc_plan_read(const slc_job *job, const char *path, slc_plan **out);
/* The bytes, as those of fp32, of the base block of the job that the plan in a file was made for; 0 if the file
 * cannot be read or does not say it. */
uint64_t slc_plan_block_bytes(const char *path);
sluice_status slc_plan_write(const slc_job *job, const slc_plan *plan, const slc_plan_forecast *forecast,
                             const char *path);
