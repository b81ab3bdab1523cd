/* The functions of NCCL that the transport calls, found at run time, so that a program without a GPU needs no NCCL.
 * Private to plugins/transport/nccl. */
#pragma once

#include "plugins/nccl/nccl_abi.h"

#include <sluice/plugin/transport_v2.h>

/* All are there since NCCL 2.14. */
#define NCCL_FUNCTIONS_USED(X)                                                                                         \
    X(GetVersion)                                                                                                      \
    X(GetErrorString)                                                                                                  \
    X(GetLastError)                                                                                                    \
    X(GetUniqueId)                                                                                                     \
    X(CommInitRankConfig)                                                                                              \
    X(CommFinalize)                                                                                                    \
    X(CommDestroy)                                                                                                     \
    X(CommAbort)                                                                                                       \
    X(CommGetAsyncError)                                                                                               \
    X(GroupStart)                                                                                                      \
    X(GroupEnd)                                                                                                        \
    X(ReduceScatter)                                                                                                   \
    X(AllGather)                                                                                                       \
    X(AllReduce)                                                                                                       \
    X(Broadcast)                                                                                                       \
    X(Send)                                                                                                            \
    X(Recv)

#define NCCL_FUNCTION_MEMBER(name) __typeof__(nccl##name) *name;
typedef struct {
    NCCL_FUNCTIONS_USED(NCCL_FUNCTION_MEMBER)
    int version; /* as ncclGetVersion says it */
} nccl_library;
#undef NCCL_FUNCTION_MEMBER

enum { NCCL_VERSION_TEXT = 24 };

/* Writes "2.28.9" for 22809. */
void nccl_version_text(int version, char text[NCCL_VERSION_TEXT]);

/* Loads libnccl: the file that the setting nccl.library names, else the one that the loader finds. It stays loaded, as
 * its threads may outlive a communicator. Errors, told to the host: UNSUPPORTED (there is none, it is no NCCL, or it is
 * older than 2.18.3). */
sluice_status nccl_library_load(const sluice_transport_host_v1 *host, nccl_library *out);
