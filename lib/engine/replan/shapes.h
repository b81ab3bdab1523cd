/* Steps of several shapes: each runs under a plan of its own, for what its activations and workspaces take. Private to
 * lib/engine. */
#pragma once

#include <sluice/runtime.h>

/* ARGUMENT for a step's shape that nothing was registered for. */
sluice_status slc_shape_check(const sluice_runtime *rt, uint64_t shape);

/* Moves over to the plan of a shape, between steps; makes it if there is none. Collective if it is not the shape that
 * runs. Under a compressed optimizer and in a pipeline nothing happens: the plan of shape 0 holds all. Errors: those of
 * the planner and of moving; a failure is the runtime's. */
sluice_status slc_shape_turn_to(sluice_runtime *rt, uint32_t shape);

/* Destroys the plans that do not run: they are of other units, or were made for another budget or strategy. */
void slc_shapes_forget(sluice_runtime *rt);
