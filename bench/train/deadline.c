/* The times of the next step and the next save are predicted from the longest of the latest ones, with room for one
 * that takes longer. */
#include "bench/train/deadline.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/base/text/parse_quantity.h"

#include <stdlib.h>

static const double SLOW_DISK_BYTES_PER_S = 50e6;
static const double STEP_ROOM = 1.5, SAVE_ROOM = 2,
                    LEAVE_S = 2;  /* leaving: results, the barrier, the end of processes */
static const double MOST_S = 1e9; /* thirty years are never */

/* ---- When it is ---- */

static void take_earlier(slc_training_deadline *d, uint64_t from_ns, double seconds, const char *what,
                         const char *value)
{
    const uint64_t end_ns = seconds <= 0 ? from_ns : from_ns + (uint64_t)((seconds < MOST_S ? seconds : MOST_S) * 1e9);
    if (end_ns >= d->end_ns) return;
    d->end_ns = end_ns;
    snprintf(d->why, sizeof d->why, "%s%s", what, value);
}

/* Takes the end of Slurm's job from its variable. Slurm's variables are not our settings, so one that cannot be read is
 * no reason to end a run. */
static void take_job_end(const char *text, uint64_t begun_ns, time_t wall, slc_training_deadline *d)
{
    char *end;
    const long long at = strtoll(text, &end, 10);
    if (*end || at <= 0)
        d->unreadable = text;
    else
        take_earlier(d, begun_ns, (double)(at - (long long)wall), "the job's end, SLURM_JOB_END_TIME=", text);
}

sluice_status slc_deadline_find(const slc_training_options *o, uint64_t begun_ns, time_t wall,
                                slc_training_deadline *out)
{
    const char *job_end = getenv("SLURM_JOB_END_TIME");
    double seconds;
    *out = (slc_training_deadline){.end_ns = UINT64_MAX};
    if (o->stop_after) {
        sluice_status status = slc_error_context(slc_parse_seconds(o->stop_after, &seconds), "--stop-after");
        if (status) return status;
        take_earlier(out, begun_ns, seconds, "--stop-after ", o->stop_after);
    }
    if (o->save && job_end && *job_end) take_job_end(job_end, begun_ns, wall, out);
    return SLUICE_OK;
}

/* ---- While the run goes on ---- */

void slc_deadline_begin(slc_training_deadline *d, uint64_t now_ns, uint64_t bytes)
{
    d->since_ns = now_ns;
    d->save_s = (double)bytes / SLOW_DISK_BYTES_PER_S;
}

bool slc_deadline_after_step(slc_training_deadline *d, uint64_t now_ns)
{
    double step_s = 0;
    d->steps_s[d->steps++ % SLC_DEADLINE_STEPS] = slc_seconds(now_ns - d->since_ns);
    d->since_ns = now_ns;
    if (d->end_ns == UINT64_MAX) return false;
    for (int i = 0; i < SLC_DEADLINE_STEPS; i++)
        if (d->steps_s[i] > step_s) step_s = d->steps_s[i];
    const double needed_s = STEP_ROOM * step_s + SAVE_ROOM * d->save_s + LEAVE_S;
    return now_ns >= d->end_ns || slc_seconds(d->end_ns - now_ns) <= needed_s;
}

void slc_deadline_after_save(slc_training_deadline *d, uint64_t from_ns, uint64_t now_ns)
{
    const double save_s = slc_seconds(now_ns - from_ns);
    if (!d->saves++ || save_s > d->save_s) d->save_s = save_s;
    d->since_ns = now_ns;
}
