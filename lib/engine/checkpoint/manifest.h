/* The manifest of a checkpoint: its contents as JSON (docs/formats.md). Its last member is a checksum of all the text
 * before it, so that no changed byte is accepted. Private to lib/engine. */
#pragma once

#include <sluice/optimizer.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A manifest in which a parameter has fewer updates than the job has steps is of version 4: older builds would take the
 * two for equal, and do not read version 4. Other manifests are of version 3. Versions 1 and 2 are read too: neither
 * counted saves, and 1 had no checksum. */
enum {
    SLC_MANIFEST_VERSION = 4,
    SLC_MANIFEST_VERSION_ALIKE = 3,
    SLC_MANIFEST_VERSION_UNCOUNTED = 2,
    SLC_MANIFEST_VERSION_UNSEALED = 1
};

enum { SLC_MANIFEST_OWN_MAX = 4, SLC_MANIFEST_NUMBERS_MAX = 12 };

typedef struct {
    char *name;
    uint64_t elements;
    bool trainable;                           /* it has optimizer states */
    uint64_t missed;                          /* steps that left it out; at most slc_manifest.step */
    double numbers[SLC_MANIFEST_NUMBERS_MAX]; /* number_count of them, if it is trainable */
} slc_manifest_param;

/* A number that the optimizer keeps for the job. */
typedef struct {
    char *name;
    double value;
} slc_manifest_number;

/* A file. The checksum is over the header and table of a rank's file, and over all of the extra file. */
typedef struct {
    uint64_t bytes;
    uint32_t crc32c;
} slc_manifest_file;

typedef struct {
    bool unsealed;   /* when read: it was written without a checksum */
    uint64_t serial; /* the number of the save in its folder, from 1: of two checkpoints the later one has more; 0:
                      * saved by a version that did not count */
    uint64_t step;
    char *optimizer;
    char *states[SLUICE_OPTIMIZER_STATES_MAX];
    uint32_t state_count;
    char *own[SLC_MANIFEST_OWN_MAX]; /* arrays that each rank has for itself; empty but for compressed optimizers */
    uint32_t own_count;
    slc_manifest_number progress[SLC_MANIFEST_NUMBERS_MAX];
    uint32_t progress_count;
    char *number_names[SLC_MANIFEST_NUMBERS_MAX]; /* of each trainable parameter's numbers */
    uint32_t number_count;
    slc_manifest_param *params; /* in the order that files number them */
    uint32_t param_count;
    slc_manifest_file *files; /* of each rank that wrote */
    uint32_t file_count;
    slc_manifest_file extra;
} slc_manifest;

/* The text is malloc'ed. Errors: FORMAT (a name that is not UTF-8), MEMORY. */
sluice_status slc_manifest_to_json(const slc_manifest *manifest, char **text);
/* Everything in *out is allocated; slc_manifest_fini frees it. Errors: FORMAT (with the place, or that the checksum
 * differs), MEMORY; *out is then empty. */
sluice_status slc_manifest_from_json(const char *text, size_t length, slc_manifest *out);
void slc_manifest_fini(slc_manifest *manifest);

/* Reads the file at `path`, and makes *checksum that of its text; errors too of opening and reading it (PATH, IO). */
sluice_status slc_manifest_read(const char *path, slc_manifest *out, uint32_t *checksum);
