/* Public structs begin with `size_t struct_size`, the caller's sizeof (sluice/init.h): an older program gives a shorter
 * struct than this build has, a newer program a longer one. These functions turn the caller's struct into one of this
 * build, and back. Any thread.
 *
 * A new field comes at the end, at a multiple of 8 bytes (never in the padding of the field before, which old programs
 * leave undefined), and its 0 means what was done before the field existed. A struct inside a struct cannot grow. */
#pragma once

#include <sluice/status.h>
#include <stddef.h>

/* Checks that `given`, a caller's struct, can be a struct of `type`, of which this build knows `known` bytes. `maker`
 * is the function that begins such a struct, named in errors; NULL: SLUICE_INIT begins it. Errors: ARGUMENT (its size
 * is 0, odd or absurd), UNSUPPORTED (fields beyond `known` are set). */
sluice_status slc_sized_check(const char *type, const char *maker, const void *given, size_t known);

/* Checks `given` as slc_sized_check does, and copies what it has over *out, a struct of `known` bytes that holds the
 * defaults; the size of *out is then `known`. If `given` is NULL, *out stays as it is. Errors: as above; *out is then
 * as it was. */
sluice_status slc_sized_read(const char *type, const char *maker, const void *given, size_t known, void *out);

/* Fills a caller's struct of `size` bytes, whatever it holds: with its size, with what `made` has, and with 0 in fields
 * that this build does not know. Errors: ARGUMENT (`out` is NULL, or no struct has this size); nothing has been written
 * then. */
sluice_status slc_sized_begin(const char *type, const void *made, size_t known, void *out, size_t size);

/* Copies `made`, of `known` bytes, into a caller's struct that has been checked, as far as the struct has room. The
 * struct's own size stays. */
void slc_sized_write(const void *made, size_t known, void *out);
