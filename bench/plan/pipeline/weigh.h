/* `--pipeline auto`: the ranks without a pipeline beside pipelines of each number of stages that divides them, all with
 * the same batch. */
#pragma once

#include "bench/plan/pipeline/pipelined.h"
#include "lib/base/error_line.h"

enum { SLC_WEIGHED_MAX = 128 };

/* A way to use the ranks. */
typedef struct {
    uint32_t stages;        /* 1: without a pipeline */
    uint32_t micro_batches; /* of a rank, or of a replica */
    const char *schedule;   /* NULL: without a pipeline */
    double step_s;          /* INFINITY: none fits, or the layers are too few; `why` says so */
    double idle_share;      /* of a pipeline: of its step, the mean of the stages */
    double exposed_s;       /* without a pipeline: compute waits for transfers */
    uint64_t bytes;         /* of a rank */
    char why[SLC_ERROR_BYTES];
} slc_weighed;

typedef struct {
    slc_weighed ways[SLC_WEIGHED_MAX]; /* the first is without a pipeline */
    uint32_t count, chosen;            /* chosen: the fastest */
} slc_weighing;

/* Plans all ways on paper. A rank without a pipeline has the options' micro-batches, or the profile's; a replica of P
 * stages has P times as many. Schedules are 1f1b and interleaved, or the one that is asked for by name. The profile is
 * as it was afterwards. Errors: those of planning but BUDGET, which is `why`; BUDGET if nothing fits; MEMORY. */
sluice_status slc_pipelines_weigh(const slc_pipeline_options *options, slc_profile *profile, const char *strategy,
                                  const char *recompute, const char *budget, slc_weighing *out);

/* Prints a row for each way, and why the chosen one is faster than the others. */
void slc_weighing_print(FILE *out, const slc_weighing *weighing);
/* The ways as JSON (docs/formats.md); NULL: no memory. */
json_t *slc_weighing_json(const slc_weighing *weighing);
