/* The version: that of the headers as macros, for the compiler, and that of the library which the program has loaded.
 * As long as the first number is 0 interfaces may change with the second one. */
#ifndef SLUICE_VERSION_H
#define SLUICE_VERSION_H

#include <sluice/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_VERSION_MAJOR 0 /* the first number; the build reads all three from here */
#define SLUICE_VERSION_MINOR 1 /* the second one */
#define SLUICE_VERSION_PATCH 0 /* the third one */

/* One number, for the preprocessor to compare: that of 1.2.3 is 1002003. */
#define SLUICE_VERSION_NUMBER (SLUICE_VERSION_MAJOR * 1000000 + SLUICE_VERSION_MINOR * 1000 + SLUICE_VERSION_PATCH)

/* The version of the headers as text, "1.2.3". */
#define SLUICE_VERSION SLUICE_VERSION_TEXT(SLUICE_VERSION_MAJOR, SLUICE_VERSION_MINOR, SLUICE_VERSION_PATCH)
/* The inside of SLUICE_VERSION. */
#define SLUICE_VERSION_TEXT(major, minor, patch) SLUICE_VERSION_JOIN(major, minor, patch)
/* The inside of SLUICE_VERSION_TEXT. */
#define SLUICE_VERSION_JOIN(major, minor, patch) #major "." #minor "." #patch

/* SLUICE_VERSION of the headers that the library was built with: a constant. Any thread. */
SLUICE_API const char *sluice_version(void);

#ifdef __cplusplus
}
#endif
#endif
