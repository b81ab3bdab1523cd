/* tests/checkpoint/full_disk_test.sh covers this file. */
#include "bench/train/run/saves.h"

#include "lib/base/clock.h"
#include "lib/base/file/path_error.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <sluice/checkpoint.h>
#include <stdio.h>
#include <string.h>

static void warn_of_save(const slc_training_saves *s, const char *then)
{
    if (sluice_world_rank(s->run->world) == 0)
        slc_log(SLC_LOG_WARN, "step %llu is not saved: %s; %s", (unsigned long long)s->step, sluice_last_error(), then);
}

static void note_save(slc_training_saves *s, const sluice_save_report *report)
{
    double *held_s = s->last ? &s->saved->last_s : &s->saved->held_s;
    slc_training_saved *saved = s->saved;
    const uint64_t now_ns = slc_clock_ns(), whole_ns = (uint64_t)(1e9 * (report->held_s + report->whole_s));
    saved->count++;
    if (report->held_s > *held_s) *held_s = report->held_s;
    if (report->whole_s > saved->whole_s) saved->whole_s = report->whole_s;
    saved->latest = true;
    if (s->deadline) slc_deadline_after_save(s->deadline, now_ns > whole_ns ? now_ns - whole_ns : 0, now_ns);
}

static sluice_status end_save(slc_training_saves *s, bool wait)
{
    sluice_save_report report = SLUICE_INIT(sluice_save_report);
    sluice_status status = slc_path_was_good(sluice_checkpoint_end(s->rt, wait, &report));
    s->under_way = !status && report.under_way;
    if (!status && !s->under_way) note_save(s, &report);
    return status;
}

static sluice_status begin_save(slc_training_saves *s, const slc_training_position *position)
{
    s->step = position->steps;
    s->saved->latest = false;
    s->unsaved = (slc_outcome){0};
    sluice_status status = slc_path_was_good(slc_training_save_begin(s->run, s->rt, position));
    s->under_way = !status;
    return status;
}

static sluice_status give_up(slc_training_saves *s, sluice_status status, bool *stop)
{
    const bool stops = !strcmp(s->run->options->on_save_error, "stop");
    *stop |= stops;
    warn_of_save(s, stops ? "the run ends here (--on-save-error stop)" : "training goes on");
    slc_outcome_add(&s->unsaved,
                    slc_error_context(status, "the last step, %llu, is not saved", (unsigned long long)s->step));
    return SLUICE_OK;
}

/* Saves the state that the run has now in place of the one whose save failed, since steps have changed that one. */
static sluice_status try_again(slc_training_saves *s, const slc_training_position *position, bool *stop)
{
    char then[64] = "it is tried once more";
    if (position->steps != s->step)
        snprintf(then, sizeof then, "step %llu is saved instead", (unsigned long long)position->steps);
    warn_of_save(s, then);
    sluice_status status = begin_save(s, position);
    if (!status) status = end_save(s, true);
    return status == SLUICE_ERR_IO ? give_up(s, status, stop) : status;
}

static sluice_status continue_save(slc_training_saves *s, const slc_training_position *position, bool wait, bool *stop)
{
    sluice_status status = s->under_way ? end_save(s, wait) : SLUICE_OK;
    return status == SLUICE_ERR_IO ? try_again(s, position, stop) : status;
}

sluice_status slc_training_saves_go_on(slc_training_saves *s, const slc_training_position *position, bool *stop)
{
    return continue_save(s, position, false, stop);
}

sluice_status slc_training_saves_end(slc_training_saves *s, const slc_training_position *position, bool *stop)
{
    return continue_save(s, position, true, stop);
}

sluice_status slc_training_saves_begin(slc_training_saves *s, const slc_training_position *position, bool last,
                                       bool *stop)
{
    s->last = last; /* nothing comes after what is awaited now, either */
    sluice_status status = slc_training_saves_end(s, position, stop);
    if (status || s->step == position->steps) return status; /* it has been saved instead, or could not be */
    status = begin_save(s, position);
    if (status == SLUICE_ERR_IO) return try_again(s, position, stop);
    return status || !last ? status : slc_training_saves_end(s, position, stop);
}
