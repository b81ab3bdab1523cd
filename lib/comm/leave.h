/* Leaving a world with an error, so that a job reports each error once. One thread of each rank. */
#pragma once

#include <sluice/world.h>
#include <stdbool.h>

/* Returns true if rank 0 knows the error with which this thread's last sluice_world_create failed on this rank; rank 0
 * then fails with that error too. So it is if this rank had reached rank 0 and no other rank is missing. */
bool slc_world_create_known_to_first(void);

/* Leaves with the calling thread's last error and destroys the world, which no runtime may use any more. Returns true
 * if this rank is to report that error, so that a job reports each error once: a rank does not report it if another
 * rank reports the same trouble as its own ("rank 2 failed: ..."), nor if a lower rank leaves with the same line. Every
 * rank that finds another one dead, gone, stalled or absent reports it. `code`, 1 to 255, is told to the others;
 * *told_code becomes the code of the rank that reports the error as its own, 0 if it is not known. Waits for that rank
 * and for rank 0, up to 3 s for each. */
bool slc_world_leave(sluice_world *world, int code, int *told_code);
