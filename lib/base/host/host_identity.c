/* tests/faults/narrow_host_test.c covers this file. */
#include "lib/base/host/host_identity.h"

#include "lib/base/host/boot_id.h"
#include "lib/base/hash/fnv.h"

#include <string.h>
#include <unistd.h>

uint64_t slc_host_identify(void)
{
    char boot[SLC_BOOT_ID_BYTES], name[256] = "";
    slc_boot_id(boot);
    uint64_t hash = slc_fnv(SLC_FNV_START, boot, sizeof boot);
    if (gethostname(name, sizeof name - 1)) *name = 0;
    return slc_fnv(hash, name, strlen(name));
}
