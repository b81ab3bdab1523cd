/* The path of a file in a folder. Any thread. */
#pragma once

#include <limits.h>
#include <sluice/status.h>

/* Writes FOLDER/NAME into `path`; ARGUMENT, which names the folder, if that is too long. */
sluice_status slc_path_in(const char *folder, const char *name, char path[PATH_MAX]);
