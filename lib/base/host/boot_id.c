/* lib/base/file/file_test.c covers this file. */
#include "lib/base/host/boot_id.h"

#include <stdio.h>
#include <string.h>

bool slc_boot_id(char out[SLC_BOOT_ID_BYTES])
{
    memset(out, 0, SLC_BOOT_ID_BYTES);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file) return false;
    size_t got = fread(out, 1, SLC_BOOT_ID_BYTES - 1, file);
    fclose(file);
    out[got] = 0;
    out[strcspn(out, "\n")] = 0;
    return *out;
}
