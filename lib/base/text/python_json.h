/* JSON as Python's json module writes it: with integers of any length, and with NaN and Infinity, which JSON has not.
 * An integer beyond 64 bits is read as a real number (of one digit and its power of ten, at most 1e308): no key of ours
 * can use so large a number, and the keys of others are passed over. Any thread. */
#pragma once

#include <jansson.h>
#include <sluice/status.h>
#include <stddef.h>

/* Reads a text of `length` bytes, which need not end with a 0; `path` is for messages, `flags` are jansson's. The
 * caller decrefs *out, which is set on success only. Errors: FORMAT with line and column for a text that is not JSON,
 * with line and key for a number that is not finite; MEMORY. */
sluice_status slc_python_json_read(const char *path, const char *text, size_t length, size_t flags, json_t **out);
