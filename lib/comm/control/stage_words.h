/* The stage of a rank in lines about ranks that fail. control_test.c covers this file. */
#pragma once

#include "lib/comm/control/state.h"

#include <stdio.h>

typedef struct {
    char text[40];
} slc_stage_words;

/* Returns " (stage 2 of 4)" to stand behind a rank's number; "" where there is no pipeline. Replicas of a stage are
 * neighbours. */
static inline slc_stage_words slc_stage_of(const slc_control *control, int rank)
{
    slc_stage_words words = {""};
    const uint32_t stages = atomic_load_explicit(&control->stages, memory_order_relaxed);
    if (stages)
        snprintf(words.text, sizeof words.text, " (stage %u of %u)",
                 (uint32_t)rank / ((uint32_t)control->size / stages), stages);
    return words;
}
