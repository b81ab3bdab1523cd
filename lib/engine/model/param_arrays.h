/* The arrays of a parameter between steps, when everything is complete. Array 0 is its values (the fp32 masters if
 * there are some), arrays 1 and up are its optimizer states. Elements are numbered in the parameter and come and go as
 * fp32. Private to lib/engine. */
#pragma once

#include <sluice/runtime.h>

/* Both narrow elements [*first, *first + *count) to a first run: owned to the first that this rank owns, kept to the
 * first that it keeps in any form, be it its own part or all. False: there is none. */
bool slc_param_owned(const sluice_param *param, uint64_t *first, uint64_t *count);
bool slc_param_kept(const sluice_param *param, uint32_t which, uint64_t *first, uint64_t *count);

/* The place of a run that slc_param_owned gave in the device's memory, and its type there. */
const void *slc_param_owned_at(const sluice_param *param, uint32_t which, uint64_t first, uint64_t count,
                               sluice_dtype *dtype);
/* Returns true if slc_param_get of an array gives every rank the same elements, its owners'; else each rank gets those
 * that it holds. */
bool slc_param_is_gathered(const sluice_param *param, uint32_t which);
/* Returns the address of an array that this rank holds whole, as fp32 in memory of the host, so that slc_param_get
 * would only copy it; else NULL. */
const float *slc_param_whole(const sluice_param *param, uint32_t which);
/* Returns true if this rank of a pipeline holds all of an array, as the other replicas of its stage should hold it too.
 */
bool slc_param_is_replica(const sluice_param *param, uint32_t which);
/* Reads elements of such an array from this rank's own memory. Local. */
sluice_status slc_param_get_replica(const sluice_param *param, uint32_t which, uint64_t first, uint64_t count,
                                    float *dst);
/* Reads any elements, the same on every rank. Collective: what only one rank holds is gathered block by block through
 * the staging buffer. */
sluice_status slc_param_get(sluice_param *param, uint32_t which, uint64_t first, uint64_t count, float *dst);
/* Adds the squares of everything that this rank owns to a norm's bins. */
sluice_status slc_param_add_owned(const sluice_param *param, uint32_t which, int64_t *bins);
/* Writes elements as far as this rank keeps them. Waits for no other rank. */
sluice_status slc_param_put(sluice_param *param, uint32_t which, uint64_t first, uint64_t count, const float *src);
/* Returns the address to which slc_param_put would only copy elements from `first` on, as fp32 in memory of the host,
 * so that a file can be read there at once; *count is narrowed to the run that lies together. NULL: slc_param_put has
 * more to do. The elements are such as slc_param_kept gives. */
float *slc_param_values_at(const sluice_param *param, uint32_t which, uint64_t first, uint64_t *count);
