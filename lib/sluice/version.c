/* The library says its version, so that a program can compare it with that of its headers. */
#include <sluice/version.h>

const char *sluice_version(void)
{
    return SLUICE_VERSION;
}
