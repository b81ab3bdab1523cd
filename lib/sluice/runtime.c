/* Joins engine and sched, which never see each other: a runtime gets the planner. */
#include "lib/engine/engine.h"
#include "lib/kernels/isa.h"
#include "lib/sluice/settings.h"
#include "sched/planner.h"

sluice_status sluice_runtime_create(sluice_world *world, const sluice_config *config, sluice_runtime **out)
{
    slc_settings_warn_unknown(slc_all_settings, slc_all_settings_count);
    return slc_engine_create(world, config, (slc_planner){slc_plan_for_budget, slc_fuse_units}, out);
}

const char *sluice_instruction_set(void)
{
    return slc_isa_name(slc_isa_level());
}
