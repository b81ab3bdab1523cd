/* The shape of a curve is found from its swings: a swing goes up or down by more than the tolerance.
 * published_test.c covers this file. */
#include "sched/study/tradeoff.h"

typedef struct {
    double low, high; /* since the last turn */
    int direction;    /* of the current swing; 0: none yet */
    int first;
    uint32_t swings;
} walk;

static void turn(walk *w, int direction, double at)
{
    if (!w->direction) w->first = direction;
    w->direction = direction;
    w->low = w->high = at;
    w->swings++;
}

static void step(walk *w, double value, double level)
{
    if (value < w->low) w->low = value;
    if (value > w->high) w->high = value;
    if (w->direction <= 0 && value > w->low + level)
        turn(w, 1, value);
    else if (w->direction >= 0 && value < w->high - level)
        turn(w, -1, value);
}

slc_curve_shape slc_curve_shape_of(const double *step_s, uint32_t count, double tolerance, uint32_t *valleys)
{
    uint32_t nowhere;
    if (!valleys) valleys = &nowhere;
    *valleys = count > 0;
    if (count < 3) return SLC_SHAPE_UNKNOWN;
    double least = step_s[0];
    for (uint32_t i = 1; i < count; i++)
        if (step_s[i] < least) least = step_s[i];
    walk w = {.low = step_s[0], .high = step_s[0]};
    for (uint32_t i = 1; i < count; i++) step(&w, step_s[i], tolerance * least);
    if (!w.swings) return SLC_SHAPE_FLAT;
    *valleys = w.first < 0 ? (w.swings + 1) / 2 : w.swings / 2 + 1;
    if (w.swings == 1) return w.first < 0 ? SLC_SHAPE_FALLING : SLC_SHAPE_RISING;
    return *valleys > 1 ? SLC_SHAPE_DOUBLE_VALLEY : SLC_SHAPE_U;
}

const char *slc_curve_shape_name(slc_curve_shape shape)
{
    static const char *const names[] = {
        "unknown, too few shares fit", "flat", "monotone, falling", "monotone, rising", "U", "double-valleyed"};
    return names[shape];
}
