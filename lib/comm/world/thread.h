/* The communication thread of a world. Private to lib/comm. */
#pragma once

#include "lib/comm/world/state.h"

sluice_status slc_thread_start(sluice_world *world);

/* Says goodbye with the calling thread's last error, which other ranks hear if they still need this one, and joins the
 * communication thread. */
void slc_thread_stop(sluice_world *world);
