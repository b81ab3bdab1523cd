/* Each layer's draws are spread evenly over [0, 1), one in each of as many stretches, in an order of its own. The
 * stretches begin at a place that is drawn, so that the mean over seeds is the probability itself. */
#include "sched/simulate/draws.h"

#include "lib/base/numbers/random.h"

/* Streams: a layer's order of the stretches, and the place where they begin. */
static const uint64_t orders = UINT64_C(0x64726177) << 32, places = UINT64_C(0x706c6163) << 32;

void slc_draws_make(const slc_job *job, const double *keeps, uint32_t draws, uint64_t seed, bool *left_out)
{
    const uint32_t layers = job->layer_count;
    for (uint32_t l = 0; l < layers; l++) {
        uint32_t words[4], least = 0;
        slc_random_block(seed, places + l, 0, words);
        for (; least < draws && (least + words[0] * 0x1p-32) < keeps[l] * draws; least++) continue;
        /* `least` of the draws keep the layer; the shuffle is that of Fisher and Yates, from the front */
        for (uint32_t d = 0; d < draws; d++) left_out[(size_t)d * layers + l] = d >= least;
        for (uint32_t d = 0; d + 1 < draws; d++) {
            bool *here = &left_out[(size_t)d * layers + l];
            bool *there = here + slc_random_below(seed, orders + l, d, draws - d) * layers;
            const bool kept = *here;
            *here = *there;
            *there = kept;
        }
    }
}
