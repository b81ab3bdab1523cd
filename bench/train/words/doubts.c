#include "bench/train/words/doubts.h"

#include "lib/base/log.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CROWDED = 2, SETTLED_STEPS = 10 };
static const double HIGH_RATE = 0.1, HIGH_RATE_OF_SGD = 10, JUMP_FACTOR = 2, JUMP = 1;

static uint64_t count_cores(void)
{
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0) return (uint64_t)CPU_COUNT(&set);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint64_t)online : 1;
}

void slc_training_doubt_ranks(const slc_training_options *o)
{
    const uint64_t cores = count_cores(), threads = o->ranks * (o->threads ? o->threads : 1);
    if (threads <= CROWDED * cores) return;
    slc_log(SLC_LOG_WARN,
            "%" PRIu64 " rank%s of %" PRIu64 " thread%s share %" PRIu64
            " core%s and take turns: a step takes some %" PRIu64 " times as long as with a core for each; -n %" PRIu64
            " --threads 1 uses all",
            o->ranks, o->ranks == 1 ? "" : "s", o->threads ? o->threads : 1, o->threads > 1 ? "s" : "", cores,
            cores == 1 ? "" : "s", threads / cores, cores);
}

/* Adam and its kin move a weight by about the rate in each step, whatever the gradient's size is; SGD moves it by the
 * rate times the gradient. */
void slc_training_doubt_rate(const slc_training_options *o)
{
    const bool sgd = !strcmp(o->optimizer, "sgd");
    const double high = sgd ? HIGH_RATE_OF_SGD : HIGH_RATE;
    if (o->learning_rate < high) return;
    slc_log(SLC_LOG_WARN, "--lr %.10g: with %s a rate of %.10g or more hardly ever trains; usual are %s",
            o->learning_rate, o->optimizer, high, sgd ? "0.001 to 1" : "0.00001 to 0.01");
}

bool slc_training_loss_jumps(slc_training_loss_watch *watch, const slc_training_step *step)
{
    const double before = watch->smoothed;
    const bool settled = watch->finite >= SETTLED_STEPS;
    watch->finite += isfinite(step->loss);
    watch->smoothed = step->smoothed_loss;
    if (watch->warned || !settled || step->skipped) return false;
    watch->warned = isnan(step->loss) || step->loss > fmax(JUMP_FACTOR * before, before + JUMP);
    return watch->warned;
}
