/* The beginning of a world, whose ranks may be real or imagined. Private to lib/comm. */
#pragma once

#include "lib/comm/world/state.h"

/* Makes what every world begins with, in memory that is all 0. */
void slc_world_init(sluice_world *world);

/* The word for how a world's ranks reach each other. */
const char *slc_world_path_name(int size, bool any_messages, bool any_neighbours);
