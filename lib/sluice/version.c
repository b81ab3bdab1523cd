/* The library says its version, so that a program can compare it with that of its headers.
 * tests/calls/every_call_test.c covers this file. */
#include <sluice/version.h>

const char *sluice_version(void)
{
    return SLUICE_VERSION;
}
