/* Is a file the text that it seems to be? Nobody should train on the bytes of a dataset, of tokens, or of another
 * encoding without a word. */
#pragma once

#include "lib/base/file/file.h"

/* Looks at the first MiB. Errors: FORMAT for text in UTF-16 or UTF-32 without a mark, for a file with NULs or with
 * bytes that are no UTF-8, for tokens of 2 bytes; the message names the line and what to do. IO, MEMORY. Any thread. */
sluice_status slc_text_form_check(const slc_file *file);
