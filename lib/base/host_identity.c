/* The kernel gives each boot a number of its own. */
#include "lib/base/host_identity.h"

#include "lib/base/hash/fnv.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t slc_host_identify(void)
{
    char text[256] = "";
    uint64_t hash = SLC_FNV_START;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(text, sizeof text, file)) *text = 0;
    if (file) fclose(file);
    hash = slc_fnv(hash, text, strlen(text));
    if (gethostname(text, sizeof text - 1)) *text = 0;
    return slc_fnv(hash, text, strlen(text));
}
