/* Linked into every test program of a build with the emulated GPU: its first line says so. */
#include "lib/device/device.h"

#include <stdio.h>

static __attribute__((constructor)) void say_what_runs(void)
{
    printf("device %s\n", slc_device_describe("cuda"));
    fflush(stdout); /* forked ranks would print it again */
}
