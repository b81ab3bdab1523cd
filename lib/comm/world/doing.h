/* Finds out what this rank is doing, for its heartbeats. Private to lib/comm. */
#pragma once

#include "lib/comm/world/state.h"

/* Notes in world->control.doing what this rank's program is doing. Called before each heartbeat, on the communication
 * thread. */
void slc_world_note_doing(sluice_world *world, uint64_t now_ns);
