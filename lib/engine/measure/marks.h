/* Times on a device that runs ahead of the host. A mark is an event in a lane's stream, with what happened there. The
 * host reads marks once they are done, makes times of them, and hands these on: to the measurements of slots, updates
 * and waits, and to the recording. Elsewhere the host's clock tells all that at once. Private to lib/engine. */
#pragma once

#include "lib/engine/measure/recording.h"

#include <sluice/runtime.h>

typedef struct slc_marks slc_marks;

/* Makes the rings, and the first point of time, on a device that runs ahead; elsewhere *out becomes NULL. Errors:
 * MEMORY, those of the device. */
sluice_status slc_marks_create(sluice_runtime *rt, slc_marks **out);
void slc_marks_destroy(slc_marks *marks); /* NULL is allowed */

/* Puts a mark into the lane's stream. Called on the lane's thread. `elements` counts what an update works on. Marks
 * that find no room are left out, as are those whose event cannot be recorded: the device has failed then, which the
 * next kernel tells. */
void slc_mark(sluice_runtime *rt, slc_moment_lane lane, slc_moment record, uint64_t elements);

/* A step begins: takes a point of time, from which later marks are counted. */
void slc_marks_begin_step(sluice_runtime *rt);
/* Reads the marks that are done; make_room does so if few places are left. On the caller's thread. */
void slc_marks_read(sluice_runtime *rt);
void slc_marks_make_room(sluice_runtime *rt);
