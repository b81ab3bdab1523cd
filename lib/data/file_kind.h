/* Files that hold no text are told by their first bytes, so that nobody trains on a picture by mistake. */
#pragma once

#include "lib/base/file/file.h"

/* *kind: "a PNG image" and the like, a constant; NULL: the file may be text. Errors: IO. Any thread. */
sluice_status slc_file_kind(const slc_file *file, const char **kind);
