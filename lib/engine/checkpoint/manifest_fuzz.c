/* Random manifests: refused with a line, or read; what was read is written and read again the same. */
#include "lib/engine/checkpoint/manifest.h"
#include "tests/support/base/splice_fuzz.h"

#include <sluice/status.h>
#include <stdlib.h>
#include <string.h>

static const char *const seeds[] = {
    "{\"version\":1,\"serial\":12,\"step\":120,\"optimizer\":\"adamw\",\"states\":[\"exp_avg\",\"exp_avg_sq\"],"
    "\"parameters\":["
    "{\"name\":\"h.0.w\",\"elements\":1000,\"trainable\":true},{\"name\":\"h.0.b\",\"elements\":7,\"trainable\":false}]"
    ","
    "\"files\":[{\"bytes\":4096,\"crc32c\":77},{\"bytes\":64,\"crc32c\":4294967295}],"
    "\"extra\":{\"bytes\":12,\"crc32c\":1}}",
    "{\"version\":1,\"step\":9,\"optimizer\":\"onebit_lamb\",\"states\":[\"exp_avg\"],\"own\":[\"error_worker\"],"
    "\"progress\":[{\"name\":\"norm\",\"value\":-1.5e-7}],\"numbers\":[\"scaling\",\"last\"],\"parameters\":["
    "{\"name\":\"w\",\"elements\":5,\"trainable\":true,\"numbers\":[1,0.25]},"
    "{\"name\":\"f\",\"elements\":5,\"trainable\":false}],\"files\":[{\"bytes\":64,\"crc32c\":1}],"
    "\"extra\":{\"bytes\":0,\"crc32c\":0}}",
    "{\"version\":1,\"step\":0,\"optimizer\":\"x\",\"states\":[],\"parameters\":[],"
    "\"files\":[{\"bytes\":0,\"crc32c\":0}],"
    "\"extra\":{\"bytes\":0,\"crc32c\":0}}",
};

static void check(const char *text, size_t length)
{
    slc_manifest manifest, back;
    char *once, *twice;
    if (slc_manifest_from_json(text, length, &manifest)) {
        if (!*sluice_last_error()) abort();
        return;
    }
    if (slc_manifest_to_json(&manifest, &once)) abort();
    if (slc_manifest_from_json(once, strlen(once), &back)) abort();
    if (slc_manifest_to_json(&back, &twice) || strcmp(once, twice)) abort();
    free(once);
    free(twice);
    slc_manifest_fini(&back);
    slc_manifest_fini(&manifest);
}

FUZZ_EDITS(seeds, check)
