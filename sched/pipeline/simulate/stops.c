/* pipeline_simulate_test.c covers this file. */
#include "sched/pipeline/simulate/stops.h"

#include <math.h>
#include <stdlib.h>

size_t slc_pipeline_most_stops(const slc_pipeline_program *program, const slc_pipeline_times *times)
{
    return 2 * (size_t)times->gather_count + 2 * (size_t)slc_pipeline_pieces(&program->shape);
}

static int by_place(const void *a, const void *b)
{
    const slc_task_stop *x = a, *y = b;
    if (x->at_s != y->at_s) return x->at_s < y->at_s ? -1 : 1;
    if (x->needs != y->needs) return x->needs ? -1 : 1; /* a slot begins before it asks for what the next one needs */
    return (x->gather > y->gather) - (x->gather < y->gather);
}

void slc_pipeline_list_stops(const slc_pipeline_program *program, const slc_pipeline_times *times, slc_task_stop *stops,
                             uint32_t *first)
{
    const uint32_t lists = 2 * slc_pipeline_pieces(&program->shape);
    uint32_t count = 0;
    for (uint32_t list = 0; list < lists; list++) {
        const uint32_t piece = list / 2;
        const bool backward = list % 2, splits = program->schedule->splits;
        const double takes_s =
            !backward ? times->forward_s[piece] : times->input_s[piece] + (splits ? 0 : times->weight_s[piece]);
        const double *last_s = backward ? times->backward_last_s : times->forward_last_s;
        first[list] = count;
        for (uint32_t g = 0; g < times->gather_count; g++) {
            const slc_stage_gather *gather = &times->gathers[g];
            if (gather->piece != piece || gather->backward != backward) continue;
            if (gather->ahead_s >= 0) stops[count++] = (slc_task_stop){gather->ahead_s, g, false};
            stops[count++] = (slc_task_stop){gather->at_s, g, true};
        }
        if (times->gather_count)
            stops[count++] = (slc_task_stop){fmax(0, takes_s - (last_s ? last_s[piece] : 0)), SLC_NEXT_GATHERS, false};
        qsort(stops + first[list], count - first[list], sizeof *stops, by_place);
    }
    first[lists] = count;
}
