/* Public structs begin with `size_t struct_size`, the caller's sizeof (sluice/init.h): older programs give shorter
 * ones, newer programs longer ones. Here they become structs of this build, and back. Any thread.
 *
 * A field that is added comes at the end, at a multiple of 8 bytes (never in the padding of the field before, which old
 * programs leave undefined), and its 0 means what was done before there was one. A struct inside a struct cannot grow.
 */
#pragma once

#include <sluice/status.h>
#include <stddef.h>

/* Checks that `given`, a struct of a caller, can be one of `type`, of which this build knows `known` bytes. `maker`:
 * the function that begins one; NULL: SLUICE_INIT. Errors: ARGUMENT (its size is 0, odd or absurd), UNSUPPORTED (fields
 * beyond `known` are set). */
sluice_status slc_sized_check(const char *type, const char *maker, const void *given, size_t known);

/* Checks, and copies what `given` has over *out, a struct of `known` bytes that holds the defaults; its size is `known`
 * then. `given` NULL: the defaults stay. Errors: as above, and *out is as it was. */
sluice_status slc_sized_read(const char *type, const char *maker, const void *given, size_t known, void *out);

/* Makes a caller's struct of `size` bytes, which holds anything: its size, what `made` has, 0 in what this build does
 * not know. Errors: ARGUMENT (`out` is NULL, or the size is none), and nothing has been written. */
sluice_status slc_sized_begin(const char *type, const void *made, size_t known, void *out, size_t size);

/* Copies `made`, of `known` bytes, into a caller's struct that has been checked: as much as it has room for, but for
 * its size. */
void slc_sized_write(const void *made, size_t known, void *out);
