/* Describes the machine and the build with which results were made. */
#pragma once

#include <jansson.h>
#include <sluice/world.h>

/* Describes the machine and the build. NULL without memory. */
json_t *slc_machine_json(void);
/* Describes the machine, the build and how the ranks of a world reach each other: the object "environment" of results
 * (docs/formats.md). NULL without memory. */
json_t *slc_environment_json(const sluice_world *world);
