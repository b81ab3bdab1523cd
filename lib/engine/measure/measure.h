/* Measuring what a profile needs: slots and updates while steps run, the link between them. Private to lib/engine. */
#pragma once

#include "lib/comm/comm.h"
#include "lib/device/device.h"
#include "lib/plan/measured/step_parts.h"
#include "lib/plan/times.h"

#include <sluice/runtime.h>

enum { SLC_MEASURE_SAMPLES = 32, SLC_TRAIN_MAX = 1024 };

/* The computations of an exchange: both passes over a tensor, and averaging at the server. */
typedef enum { SLC_MEASURE_COMPRESS, SLC_MEASURE_APPLY, SLC_MEASURE_AVERAGE, SLC_MEASURE_PASSES } slc_measure_pass;

/* The last samples of a time. */
typedef struct {
    double seconds[SLC_MEASURE_SAMPLES];
    uint32_t count; /* ever taken */
} slc_samples;

/* The time that some work on elements has taken. */
typedef struct {
    double seconds;
    uint64_t elements;
} slc_measured;

typedef struct slc_measure {
    slc_samples *slots;     /* [2L] of a slot once it had waited, without its recomputation */
    slc_samples *recompute; /* [L] */
    uint64_t slot_began_ns;
    double recomputed_s;          /* in the slot that runs */
    slc_measured computed_update; /* updates on the compute lane */

    /* The step that runs, counted from the end of the one before. */
    uint64_t step_from_ns;            /* 0: not known */
    bool step_unlike;                 /* it is not as others, and is not kept */
    double step_compute_s, settled_s; /* slots so far; waiting for the step before the last */
    double updated_before_s;
    slc_comm_use used_before;
    slc_kept_steps kept;
    double late_s;  /* other ranks came so much later to operations than this one, */
    uint64_t met;   /* so many of them */
    double extents; /* sum of those of the steps that began, */
    uint64_t begun; /* so many */

    /* Written by the communication thread, read when everything is complete. */
    slc_measured update, compression[SLC_MEASURE_PASSES];
    slc_measured inspection; /* of reduced gradients, a part of an update's cost; elements are not counted */
    uint64_t train_ns[SLC_TRAIN_MAX + 1]; /* when a train's begin and each of its operations were complete */
    uint32_t train_noted;
    /* Events at these moments in the stream of the train's work, on a device that runs ahead, [SLC_TRAIN_MAX + 1]; else
     * NULL. */
    slc_event *train_events;
    sluice_stream *train_stream;

    /* Made-up parameters that a single rank updates while its compute is timed. */
    float *pieces;
    uint64_t piece_bytes, piece_count, piece;
    sluice_stream *piece_stream;

    bool link_known;
    slc_link link;
    double passes_s[SLC_MEASURE_PASSES]; /* per element, on a made-up tensor; measured with the link; 0: not measured */
} slc_measure;

/* Called when the job is made. Errors: MEMORY. */
sluice_status slc_measure_create(const slc_job *job, slc_measure **out);
void slc_measure_destroy(slc_measure *measure); /* NULL is allowed */
/* Forgets what was measured. Everything is complete. */
void slc_measure_reset(slc_measure *measure, const slc_job *job);

/* The step calls slot_begin when a slot has waited and claimed, slot_end when its compute has ended, and recompute
 * after a recomputation. */
void slc_measure_slot_begin(slc_measure *measure);
void slc_measure_slot_end(slc_measure *measure, uint32_t slot);
void slc_measure_recompute(slc_measure *measure, uint32_t layer, uint64_t began_ns);
/* Add a time that a mark has told: of a slot, of a recomputation, of work on so many elements. */
void slc_measure_add_slot(slc_measure *measure, uint32_t slot, double seconds);
void slc_measure_add_recompute(slc_measure *measure, uint32_t layer, double seconds);
void slc_measure_took(slc_measured *measured, uint64_t took_ns, uint64_t elements);
/* Adds work that began at `began_ns` and ends now. Called on the thread that does it. */
void slc_measure_add(slc_measured *measured, uint64_t began_ns, uint64_t elements);

/* begin starts the time of a step, because the step before has ended with all that follows it. end keeps the step's
 * time if the step was a usual one: it ran the late items of a step before, or is measured for a new plan; it was not
 * skipped; and slc_measure_unlike was not called. */
void slc_measure_step_begin(sluice_runtime *rt);
void slc_measure_step_end(sluice_runtime *rt);
void slc_measure_unlike(slc_measure *measure);
/* Notes how long the sequences of a step are that begins (sluice_step_options.extent). */
void slc_measure_extent(slc_measure *measure, double extent);
/* Returns the mean extent of the steps since the last reset; 0: there were none. */
double slc_measured_extent(const slc_measure *measure);

/* Finds a usual step, among those kept since the last reset, of the rank that computes longest; all 0: there are none.
 * *late_s is how much later, in the mean, the other ranks come to an operation, as seen by the rank that waits least
 * for them. Collective. */
sluice_status slc_measure_usual_step(sluice_runtime *rt, sluice_step_parts *step, double *late_s);

/* The times that were measured since the last reset. Slots have medians, lengthened (slc_measured_lengthening), of the
 * rank that computes longest; other times are those of the slowest rank each. Times that were not measured, and the
 * link, are estimated. Collective, between steps, everything complete. The caller frees with slc_times_fini. */
sluice_status slc_engine_measure_times(sluice_runtime *rt, slc_times *out);
/* Gives times the probabilities with which the last step has kept its layers. Errors: MEMORY. */
sluice_status slc_measure_set_keeps(const sluice_runtime *rt, slc_times *times);

/* Seconds of a slot on this rank, the median since the last reset; 0: it was not measured. */
double slc_measured_slot_s(const slc_measure *measure, uint32_t slot);
/* Returns true if some slot has not run since the last reset. */
bool slc_measure_lacks_slots(const slc_measure *measure, const slc_job *job);

/* Seconds of a step's compute on this rank, as measured since the last reset; 0: nothing was. */
double slc_measured_compute_s(const slc_measure *measure, const slc_job *job);
/* Returns how many times longer slots take together in a usual step on this rank than their medians, at least 1. On a
 * core that is shared with another program, other slots are slow in each step, and most medians tell nothing of it. */
double slc_measured_lengthening(const slc_measure *measure, const slc_job *job);

/* Finds the largest stretch of the plan's arena that no static claim covers; *bytes 0: there is none. Errors: MEMORY.
 */
sluice_status slc_measure_find_stretch(sluice_runtime *rt, uint64_t *offset, uint64_t *bytes);

/* Measures messages between the stages of a pipeline, over one cut after the other, on the slowest of them.
 * bytes_per_s is 0 where a stretch is too short. Collective, between steps with nothing pending; the same on every
 * rank. */
sluice_status slc_measure_channels(sluice_runtime *rt, slc_link_line *out);

/* Measures the link with operations of this job: lines of RS and AG over sizes, how compute and communication slow each
 * other down, and the run that is long enough. Collective, between steps with nothing pending; the same result on every
 * rank. It works in the largest stretch of the plan's arena that nothing resident covers; a stretch too short for two
 * sizes, or a world of one, gives the estimate's lines. With one rank kappa and sigma are those of updates on the
 * communication thread. It takes about 1 s, at 100 Mbit/s up to 1.5 s. If the steps that are left have less than 10 s
 * of compute, this time is shortened in the same proportion, to a tenth at the least. */
sluice_status slc_engine_measure_link(sluice_runtime *rt, slc_link *out);

/* Measures the link between several GPUs before commit has laid anything out, and gives the smallest base block, from
 * `least`, by doublings, to `most` bytes of fp32, that the link needs for parameters of this type: 95 % of its
 * bandwidth. It takes memory for it that it gives back; if some rank has less than four times that, *bytes is
 * `least`. Collective, with nothing attached; the same result on every rank. It takes some tenths of a second. */
sluice_status slc_measure_block(sluice_runtime *rt, sluice_dtype dtype, uint64_t least, uint64_t most, uint64_t *bytes);

/* Times the passes of an exchange between `ranks` on a tensor in `memory`, of the stream's device and aligned to 64,
 * which is overwritten. Too little memory leaves s_per_element as it is. Takes a few milliseconds. On a GPU nothing
 * else is under way: kernels may be launched for the first time. */
sluice_status slc_measure_passes(sluice_stream *stream, uint32_t ranks, void *memory, uint64_t bytes,
                                 double s_per_element[SLC_MEASURE_PASSES]);

/* Measures times and link; the link only once in a runtime's life. */
sluice_status slc_engine_measure(sluice_runtime *rt, slc_times *out);

/* Gives the seconds of an element's update on the communication thread, on the slowest rank; 0: none ran there.
 * Collective. */
sluice_status slc_measure_updates(sluice_runtime *rt, double *s_per_element);

/* Each value becomes the largest of all ranks'. Collective. */
sluice_status slc_measure_slowest(sluice_runtime *rt, double *values, size_t count);
