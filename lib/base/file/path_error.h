/* The status of a failure that has to do with a path. A command exits with one code if the user named a path that
 * cannot be used, and with another if a disk fails or a file vanishes while the command works. Any thread. */
#pragma once

#include <sluice/status.h>

/* Returns the status for the errno of a system call that was given a path: PATH if the path is the mistake (it is
 * not there, is a folder, may not be read, has too long a name), IO if the disk is. */
sluice_status slc_path_status(int why);

/* Fails with that status and the line "WHAT PATH: REASON": slc_path_error("cannot write", path, errno). */
sluice_status slc_path_error(const char *what, const char *path, int why);

/* Turns PATH into IO and keeps the line of this thread's last error, for a path that was good when the work began: a
 * file that has vanished since is no mistake of the user's. Returns other statuses unchanged. */
sluice_status slc_path_was_good(sluice_status status);
