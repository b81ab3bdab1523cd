/* The table of the engine's settings. tests/calls/engine_contract_test.c covers this file. */
#include "lib/engine/settings.h"

#include "lib/base/status.h"

#include <string.h>

static const slc_setting rows[] = {
    {"SLUICE_PLAN_FUSE", "auto", SLC_SETTING_TEXT,
     "small units of neighbouring layers become one: auto (where it pays), off, or up to a size as 64KiB"},
    {"SLUICE_PLAN_UPDATES", "auto", SLC_SETTING_TEXT,
     "where the optimizer runs: communication (its thread), compute (the compute threads, between layers), both (half "
     "of the elements on either), or auto (schedules ilp, portfolio: where it makes the step shorter; else "
     "communication)"},
    {"SLUICE_PLAN_DRIFT", "10", SLC_SETTING_COUNT,
     "percent by which steps may leave the plan's prediction before the run measures and plans again, which it does at "
     "most every 100 steps; rank 0's counts"},
    {"SLUICE_ENGINE_CHECK", "off", SLC_SETTING_SWITCH,
     "looks for mistakes of the program that calls the hook API: unused memory is NaN, addresses change as often as "
     "they "
     "may, what ranks write and which options they give is compared; slower, and takes memory beside the budget"},
    {"SLUICE_CHECKPOINT_KEEP", "2", SLC_SETTING_COUNT,
     "checkpoints that stay in a folder; the oldest go when a new one is whole; 0: none goes"},
};

const slc_settings slc_engine_settings = {"engine", rows, sizeof rows / sizeof *rows};

sluice_status slc_engine_updates(sluice_updates choice, slc_updates *out)
{
    static const slc_updates of_choice[] = {[SLUICE_UPDATES_AUTO] = SLC_UPDATES_AUTO,
                                            [SLUICE_UPDATES_COMMUNICATION] = SLC_UPDATES_COMMUNICATION,
                                            [SLUICE_UPDATES_COMPUTE] = SLC_UPDATES_COMPUTE,
                                            [SLUICE_UPDATES_BOTH] = SLC_UPDATES_BOTH};
    static const char *const names[] = {[SLC_UPDATES_AUTO] = "auto",
                                        [SLC_UPDATES_COMMUNICATION] = "communication",
                                        [SLC_UPDATES_COMPUTE] = "compute",
                                        [SLC_UPDATES_BOTH] = "both"};
    *out = of_choice[choice];
    if (choice != SLUICE_UPDATES_BY_SETTING) return SLUICE_OK;
    const char *updates = slc_setting_text(&slc_engine_settings, "SLUICE_PLAN_UPDATES");
    for (int u = 0; u < (int)(sizeof names / sizeof *names); u++) {
        *out = (slc_updates)u;
        if (!strcmp(updates, names[u])) return SLUICE_OK;
    }
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "updates (SLUICE_PLAN_UPDATES) is \"%s\"; give auto, communication, compute or both", updates);
}
