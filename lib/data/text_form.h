/* Checks that a file is the text that it seems to be, so that nobody trains on the bytes of a dataset, of tokens, or of
 * another encoding without a warning. */
#pragma once

#include "lib/base/file/file.h"

/* Looks at the first MiB. Errors: FORMAT for text in UTF-16 or UTF-32 without a mark, for a file with NULs or with
 * bytes that are no UTF-8, for tokens of 2 bytes; the message names the line and what to do. IO, MEMORY. Any thread. */
sluice_status slc_text_form_check(const slc_file *file);
