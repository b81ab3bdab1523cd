/* A library that says it is the NCCL of the version in the environment variable OTHER_VERSION, and does nothing. Built
 * with PARTIAL it lacks a function. */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    const char *text = getenv("OTHER_VERSION");
    *version = text ? atoi(text) : 0;
    return 0;
}

#define DOES_NOTHING(name)                                                                                             \
    EXPORT int name(void);                                                                                             \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return 0;                                                                                                      \
    }

DOES_NOTHING(ncclGetErrorString)
DOES_NOTHING(ncclGetLastError)
DOES_NOTHING(ncclGetUniqueId)
DOES_NOTHING(ncclCommInitRankConfig)
DOES_NOTHING(ncclCommFinalize)
DOES_NOTHING(ncclCommDestroy)
DOES_NOTHING(ncclCommAbort)
#ifndef PARTIAL
DOES_NOTHING(ncclCommGetAsyncError)
#endif
DOES_NOTHING(ncclGroupStart)
DOES_NOTHING(ncclGroupEnd)
DOES_NOTHING(ncclReduceScatter)
DOES_NOTHING(ncclAllGather)
DOES_NOTHING(ncclAllReduce)
DOES_NOTHING(ncclBroadcast)
DOES_NOTHING(ncclSend)
DOES_NOTHING(ncclRecv)
