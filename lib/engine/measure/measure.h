/* Measuring what a profile needs: slots and updates while steps run, the link between them. Private to lib/engine. */
#ifndef SLC_ENGINE_MEASURE_H
#define SLC_ENGINE_MEASURE_H

#include "lib/engine/runtime.h"
#include "lib/plan/times.h"

enum { SLC_MEASURE_SAMPLES = 32 };

/* What an exchange computes for an element: both passes, and averaging at the server. */
typedef enum { SLC_MEASURE_COMPRESS, SLC_MEASURE_APPLY, SLC_MEASURE_AVERAGE, SLC_MEASURE_PASSES } slc_measure_pass;

/* The last samples of something, in seconds. */
typedef struct {
    double seconds[SLC_MEASURE_SAMPLES];
    uint32_t count; /* ever taken */
} slc_samples;

typedef struct slc_measure {
    slc_samples *slots;     /* [2L] what a slot took once it had waited, without its recomputation */
    slc_samples *recompute; /* [L] */
    uint64_t slot_began_ns;
    double recomputed_s;      /* in the slot that runs */
    double computed_update_s; /* updates on the compute lane */
    uint64_t computed_update_elements;

    /* Of the communication thread; read when everything is complete. */
    double update_s, inspection_s; /* updates; the inspection of reduced gradients, which is part of what they cost */
    uint64_t update_elements;
    double compression_s[SLC_MEASURE_PASSES]; /* of exchanges */
    uint64_t compression_elements[SLC_MEASURE_PASSES];
    uint64_t train_began_ns, train_ended_ns;

    /* Made-up parameters that a single rank updates while its compute is timed. */
    float *pieces;
    uint64_t piece_bytes, piece_count, piece;
    slc_stream *piece_stream;

    bool link_known;
    slc_link link;
    double passes_s[SLC_MEASURE_PASSES]; /* an element, of a tensor made up for it; with the link, 0: not measured */
} slc_measure;

/* For a job that is made. Errors: MEMORY. */
sluice_status slc_measure_create(const slc_job *job, slc_measure **out);
void slc_measure_destroy(slc_measure *measure); /* NULL is allowed */
/* Forgets what was measured; when everything is complete. */
void slc_measure_reset(slc_measure *measure, const slc_job *job);

/* Called by the step: where a slot has waited and claimed, where its compute has ended; around a recomputation. */
void slc_measure_slot_begin(slc_measure *measure);
void slc_measure_slot_end(slc_measure *measure, uint32_t slot);
void slc_measure_recompute(slc_measure *measure, uint32_t layer, uint64_t began_ns);
/* On the communication thread: an update of `elements`, or a look at reduced gradients, since `began_ns`. */
void slc_measure_update(slc_measure *measure, uint64_t began_ns, uint64_t elements);
void slc_measure_inspection(slc_measure *measure, uint64_t began_ns);
/* An update on the compute lane. */
void slc_measure_computed_update(slc_measure *measure, uint64_t began_ns, uint64_t elements);

/* The same of a pass of an exchange; 0 elements: nothing. */
void slc_measure_compression(slc_measure *measure, slc_measure_pass pass, uint64_t began_ns, uint64_t elements);

/* What was measured since the last reset, medians of this rank, of ranks the slowest; what was not, as estimated. The
 * link is the estimate's. Collective, between steps, everything complete. The caller frees with slc_times_fini. */
sluice_status slc_engine_measure_times(sluice_runtime *rt, slc_times *out);

/* The link, as operations of this job find it: lines of RS and AG over sizes, what compute and communication do to each
 * other, the run that is long enough. Collective, between steps with nothing pending; the same result on every rank.
 * Works in the largest stretch of the plan's arena that nothing resident covers; a stretch too short for two sizes, or
 * a world of one, gives the estimate's lines. Of one rank kappa and sigma are those of updates on the communication
 * thread. Below 1 s on a fast link, about as long at 100 Mbit/s. */
sluice_status slc_engine_measure_link(sluice_runtime *rt, slc_link *out);

/* The passes of an exchange between `ranks` on a tensor as large as fits in `memory`, host memory aligned to 64, of
 * which nothing is left; too little leaves s_per_element as it is. A few milliseconds. */
sluice_status slc_measure_passes(slc_stream *stream, uint32_t ranks, void *memory, uint64_t bytes,
                                 double s_per_element[SLC_MEASURE_PASSES]);

/* Both; the link once in a runtime's life. */
sluice_status slc_engine_measure(sluice_runtime *rt, slc_times *out);

/* Each value becomes the largest of all ranks'. Collective. */
sluice_status slc_measure_slowest(sluice_runtime *rt, double *values, size_t count);

#endif
