/* Medians over the steps of one plan, of the whole run and of each phase. A median over more steps than MOST is that of
 * the latest MOST. */
#include "bench/train/summary.h"

#include "lib/base/numbers/median.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A re-plan comes after PROVISIONAL_STEPS of its phase, if the schedule wants times (lib/engine/replan/replan.c). */
enum { WARM_UP_STEPS = 2, LEAST_STEPS = 3, PROVISIONAL_STEPS = 3, LEAST_ROOM = 64, MOST = 65536 };

/* ---- The steps under the last plan ---- */

static sluice_status make_room(slc_training_steady *s)
{
    const uint64_t room = s->room ? 2 * s->room : LEAST_ROOM;
    double *step_s = realloc(s->step_s, room * sizeof *step_s);
    if (step_s) s->step_s = step_s;
    double *exposed_s = realloc(s->exposed_s, room * sizeof *exposed_s);
    if (exposed_s) s->exposed_s = exposed_s;
    if (!step_s || !exposed_s) return slc_error(SLUICE_ERR_MEMORY, "the times of %llu steps", (unsigned long long)room);
    s->room = room;
    return SLUICE_OK;
}

static void change_plan(slc_training_steady *s, const slc_training_step *step)
{
    s->plan = step->plan;
    s->provisional = step->provisional;
    s->share = step->share;
    s->under = s->kept = 0;
    s->steady_bytes = 0;
}

static sluice_status add_step(slc_training_steady *s, const slc_training_step *step)
{
    if (!s->steps++) s->first = step->step;
    const bool alike = s->plan == step->plan && s->provisional == step->provisional && s->share == step->share;
    if (!s->under || !alike) change_plan(s, step);
    s->bytes += (double)step->bytes_sent;
    if (++s->under <= WARM_UP_STEPS) return SLUICE_OK;
    if (s->kept == s->room && s->room < MOST) {
        sluice_status status = make_room(s);
        if (status) return status;
    }
    s->step_s[s->kept % s->room] = step->step_s;
    s->exposed_s[s->kept % s->room] = step->exposed_s;
    s->steady_bytes += (double)step->bytes_sent;
    s->kept++;
    return SLUICE_OK;
}

/* Counts the kept steps that the figures are made of. 0: they are too few, or they all ran under the provisional plan
 * that measures, and the plan that was to follow it ran no step. */
static uint64_t count_steady(const slc_training_steady *s)
{
    if (s->provisional || s->kept < LEAST_STEPS) return 0;
    return s->kept < s->room ? s->kept : s->room;
}

static void free_steady(slc_training_steady *s)
{
    free(s->step_s);
    free(s->exposed_s);
}

/* ---- The course ---- */

/* Drops every second point; the first stays. */
static void thin_out(slc_training_course *course)
{
    for (uint64_t i = 0; 2 * i < course->count; i++) course->points[i] = course->points[2 * i];
    course->count = (course->count + 1) / 2;
    course->every *= 2;
}

static sluice_status add_point(slc_training_course *course, const slc_training_step *step)
{
    if (!course->every) course->every = 1;
    course->elapsed_s += step->step_s;
    if (course->seen++ % course->every) return SLUICE_OK;
    if (course->count == SLC_TRAINING_POINTS) {
        thin_out(course);
        if ((course->seen - 1) % course->every) return SLUICE_OK;
    }
    if (course->count == course->room) {
        const uint64_t room = course->room ? 2 * course->room : LEAST_ROOM;
        slc_training_point *points = realloc(course->points, room * sizeof *points);
        if (!points) return slc_error(SLUICE_ERR_MEMORY, "the course of %llu steps", (unsigned long long)room);
        course->points = points;
        course->room = room;
    }
    course->points[course->count++] =
        (slc_training_point){step->loss, step->learning_rate, course->elapsed_s, (double)step->tokens, step->skipped};
    return SLUICE_OK;
}

/* Takes the mean of the last tenth, because one step's loss says more about its batch than about the run. Skipped steps
 * do not count: their losses need not be finite. NaN: all of them were skipped. */
static double final_loss(const slc_training_course *course)
{
    uint64_t count = 0, most = (course->count + 9) / 10;
    double sum = 0;
    for (uint64_t i = course->count; i-- > 0 && count < most;) {
        if (course->points[i].skipped) continue;
        sum += course->points[i].loss;
        count++;
    }
    return sum / (double)count;
}

/* ---- The run ---- */

sluice_status slc_training_note(slc_training_result *result, const slc_training_step *step)
{
    const bool compressed = step->compressed || result->after_freeze.steps;
    result->step_count++;
    if (isfinite(step->loss) && !isfinite(result->first_loss)) result->first_loss = step->loss;
    if (isfinite(step->loss)) result->last_loss = step->loss;
    result->last_predicted_s = step->predicted_step_s;
    sluice_status status = add_step(&result->all, step);
    if (!status) status = add_step(compressed ? &result->after_freeze : &result->before_freeze, step);
    return status ? status : add_point(&result->course, step);
}

/* Returns how many steps the run would have needed for LEAST_STEPS steady ones. */
static uint64_t count_wanted(const slc_training_result *result)
{
    const slc_training_steady *all = &result->all;
    uint64_t first = all->provisional ? all->steps : all->steps - all->under;
    if (first == all->steps && first < PROVISIONAL_STEPS) first = PROVISIONAL_STEPS;
    return result->steps_before + first + WARM_UP_STEPS + LEAST_STEPS;
}

/* *least_s becomes the smallest number, unless least_s is NULL. `values` has room for `count` numbers. */
static double median_of(const double *kept, uint64_t count, double *values, double *least_s)
{
    if (count) memcpy(values, kept, count * sizeof *values);
    const double median = slc_median(values, count);
    if (least_s) *least_s = count ? values[0] : NAN; /* slc_median has sorted them */
    return median;
}

static double mean_of(const double *kept, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += kept[i];
    return sum / (double)count;
}

static void summarise_phase(const slc_training_steady *s, double *values, slc_training_phase *out)
{
    const uint64_t steady = count_steady(s);
    *out = (slc_training_phase){.step_s = NAN, .exposed_s = NAN, .bytes_sent = NAN};
    if (!s->steps) return;
    out->first = s->first;
    out->steps = s->steps;
    out->step_s = median_of(s->step_s, steady, values, NULL);
    out->exposed_s = median_of(s->exposed_s, steady, values, NULL);
    out->bytes_sent = steady ? s->steady_bytes / (double)s->kept : s->bytes / (double)s->steps;
}

sluice_status slc_training_summarise(slc_training_result *result)
{
    const slc_training_steady *all = &result->all;
    const uint64_t steady = count_steady(all);
    uint64_t room = all->room;
    if (result->before_freeze.room > room) room = result->before_freeze.room;
    if (result->after_freeze.room > room) room = result->after_freeze.room;
    double *values = malloc((room + 1) * sizeof *values);
    if (!values) return slc_error(SLUICE_ERR_MEMORY, "step times");
    summarise_phase(&result->before_freeze, values, &result->warm_up);
    summarise_phase(&result->after_freeze, values, &result->compressed);
    result->exposed_s = median_of(all->exposed_s, steady, values, NULL);
    result->step_s = median_of(all->step_s, steady, values, &result->step_min_s);
    result->step_mean_s = steady ? mean_of(all->step_s, steady) : NAN;
    result->steps_wanted = count_wanted(result);
    result->predicted_step_s = result->last_predicted_s;
    result->train_s = result->course.elapsed_s;
    result->final_loss = final_loss(&result->course);
    result->tokens_per_s = all->share * (double)result->tokens_per_step / result->step_s;
    result->images_per_s =
        result->images_per_step ? all->share * (double)result->images_per_step / result->step_s : NAN;
    free(values);
    return SLUICE_OK;
}

void slc_training_result_init(slc_training_result *result)
{
    *result = (slc_training_result){
        .evaluation_loss = NAN, .accuracy = NAN, .first_loss = NAN, .last_loss = NAN, .last_predicted_s = NAN};
}

void slc_training_result_free(slc_training_result *result)
{
    free_steady(&result->all);
    free_steady(&result->before_freeze);
    free_steady(&result->after_freeze);
    free(result->course.points);
    free(result->new_parameters);
    slc_training_pipeline_destroy(result->pipeline);
    *result = (slc_training_result){0};
}
