/* Chooses by names the part of a checkpoint that is loaded (sluice_checkpoint_load_list). Private to
 * lib/engine/checkpoint. Any thread. */
#pragma once

#include <sluice/checkpoint.h>

enum { SLC_LOAD_NAME_ROOM = 1024 };

/* The name that the parameter `saved` of the checkpoint has in the model; false: it is skipped. `list` NULL: its own.
 */
bool slc_load_list_name(const sluice_checkpoint_list *list, const char *saved, char name[SLC_LOAD_NAME_ROOM]);
/* Returns true if the model may have this parameter though the checkpoint lacks it. */
bool slc_load_list_keeps(const sluice_checkpoint_list *list, const char *own);

/* Checks that every name of the list has something that it stands for. Errors: ARGUMENT (names it; a pattern in the
 * middle of a name, or on one side of a renaming only). */
sluice_status slc_load_list_check(const sluice_checkpoint_list *list, const char *const *saved, size_t saved_count,
                                  const char *const *own, size_t own_count);
/* Calls list->told for what is not loaded under its own name. */
void slc_load_list_tell(const sluice_checkpoint_list *list, const char *const *saved, size_t saved_count,
                        const char *const *own, size_t own_count);
/* A hash of all names. */
uint64_t slc_load_list_hash(const sluice_checkpoint_list *list);
