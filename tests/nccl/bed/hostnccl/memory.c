/* Memory, its registration, and the operators that a program makes. Registration is only handles here: nothing becomes
 * faster by it. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <stdlib.h>
#include <string.h>

/* NCCL takes whole pages from the driver, so that a window may begin where its memory does; cudaMalloc promises less.
 */
typedef struct pages {
    struct pages *next;
    void *memory, *allocated;
} pages;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pages *all;

static void *align_memory(void *allocated)
{
    const uintptr_t unit = NCCL_WIN_REQUIRED_ALIGNMENT;
    return (void *)(((uintptr_t)allocated + unit - 1) / unit * unit);
}

ncclResult_t ncclMemAlloc(void **memory, size_t bytes)
{
    if (!memory || bytes == 0)
        return hostnccl_error(ncclInvalidArgument, "ncclMemAlloc : ptr argument is NULL, or 0 bytes");
    pages *entry = malloc(sizeof *entry);
    if (!entry) return hostnccl_error(ncclSystemError, "no memory for an allocation");
    cudaError_t error = cudaMalloc(&entry->allocated, bytes + NCCL_WIN_REQUIRED_ALIGNMENT);
    if (error) {
        free(entry);
        return hostnccl_cuda_failed("cudaMalloc", error);
    }
    *memory = entry->memory = align_memory(entry->allocated);
    pthread_mutex_lock(&lock);
    entry->next = all;
    all = entry;
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclMemAlloc);

ncclResult_t ncclMemFree(void *memory)
{
    pthread_mutex_lock(&lock);
    pages **at = &all;
    while (*at && (*at)->memory != memory) at = &(*at)->next;
    pages *entry = *at;
    if (entry) *at = entry->next;
    pthread_mutex_unlock(&lock);
    if (entry) memory = entry->allocated;
    free(entry);
    cudaError_t error = memory ? cudaFree(memory) : cudaSuccess;
    return error ? hostnccl_cuda_failed("cudaFree", error) : ncclSuccess;
}
HOSTNCCL_EXPORT(ncclMemFree);

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle)
{
    ncclResult_t result = hostnccl_comm_check(comm, "ncclCommRegister");
    if (result) return result;
    if (!buffer || !handle || bytes == 0)
        return hostnccl_error(ncclInvalidArgument, "ncclCommRegister : a NULL argument, or 0 bytes");
    hostnccl_registered *entry = malloc(sizeof *entry);
    if (!entry) return hostnccl_error(ncclSystemError, "no memory for a registration");
    pthread_mutex_lock(&comm->lock);
    entry->next = comm->registered;
    comm->registered = entry;
    pthread_mutex_unlock(&comm->lock);
    *handle = entry;
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclCommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    ncclResult_t result = hostnccl_comm_check(comm, "ncclCommDeregister");
    if (result || !handle) return result;
    pthread_mutex_lock(&comm->lock);
    hostnccl_registered **at = &comm->registered;
    while (*at && *at != handle) at = &(*at)->next;
    hostnccl_registered *entry = *at;
    if (entry) *at = entry->next;
    pthread_mutex_unlock(&comm->lock);
    if (!entry) return hostnccl_error(ncclInvalidArgument, "ncclCommDeregister : the handle is not known");
    free(entry);
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclCommDeregister);

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes, ncclWindow_t *window, int flags)
{
    if (flags & ~NCCL_WIN_COLL_SYMMETRIC)
        return hostnccl_error(ncclInvalidArgument, "ncclCommWindowRegister : flags %d", flags);
    if ((uintptr_t)buffer % NCCL_WIN_REQUIRED_ALIGNMENT)
        return hostnccl_error(ncclInvalidArgument, "ncclCommWindowRegister : the buffer begins at no multiple of %d",
                              NCCL_WIN_REQUIRED_ALIGNMENT);
    return ncclCommRegister(comm, buffer, bytes, (void **)window);
}
HOSTNCCL_EXPORT(ncclCommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    return window ? ncclCommDeregister(comm, window) : ncclSuccess;
}
HOSTNCCL_EXPORT(ncclCommWindowDeregister);

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    ncclResult_t result = hostnccl_comm_usable(comm, "ncclRedOpCreatePreMulSum");
    if (result) return result;
    if (!op || !scalar || type < 0 || type >= ncclNumTypes ||
        (residence != ncclScalarDevice && residence != ncclScalarHostImmediate))
        return hostnccl_error(ncclInvalidArgument,
                              "ncclRedOpCreatePreMulSum : a NULL argument, or type %d, residence %d", (int)type,
                              (int)residence);
    int index = 0;
    while (index < comm->redop_count && comm->redops[index].used) index++;
    if (index == comm->redop_count) {
        hostnccl_redop *more = realloc(comm->redops, ((size_t)index + 1) * sizeof *more);
        if (!more) return hostnccl_error(ncclSystemError, "no memory for an operator");
        comm->redops = more;
        comm->redop_count++;
    }
    hostnccl_redop *redop = &comm->redops[index];
    *redop = (hostnccl_redop){.used = true, .type = type};
    if (residence == ncclScalarDevice)
        redop->device_scalar = scalar;
    else
        memcpy(&redop->scalar, scalar, hostnccl_type_bytes(type));
    *op = (ncclRedOp_t)(ncclNumOps + index);
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclRedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    ncclResult_t result = hostnccl_comm_check(comm, "ncclRedOpDestroy");
    if (result) return result;
    int index = (int)op - ncclNumOps;
    if (op < 0 || (index >= 0 && (index >= comm->redop_count || !comm->redops[index].used)))
        return hostnccl_error(ncclInvalidArgument, "ncclRedOpDestroy : operator unknown to this communicator");
    if (index < 0) return hostnccl_error(ncclInvalidArgument, "ncclRedOpDestroy : operator is a NCCL builtin");
    comm->redops[index].used = false;
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclRedOpDestroy);
