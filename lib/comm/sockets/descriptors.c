#include "lib/comm/sockets/descriptors.h"

#include "lib/base/status.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

/* A rank needs a socket, a doorbell and a segment for each other rank of this host, on rank 0 a connection to every
 * rank, and two connections of the transport for each rank of another host. The rest is for the program, the transport,
 * and descriptors that are handed over. */
enum { EACH_RANK = 4, BESIDES = 64 };

bool slc_descriptors_lacking(int error)
{
    return error == EMFILE || error == ENFILE;
}

sluice_status slc_descriptors_error(const char *what, int size)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    return slc_error(
        SLUICE_ERR_SYSTEM,
        "%s: too few file descriptors: this process may have %llu, a rank of %d needs up to %d and its own "
        "files; raise the limit where ranks are started (ulimit -n %d)",
        what, (unsigned long long)limit.rlim_cur, size, EACH_RANK * size + BESIDES, EACH_RANK * size + 2 * BESIDES);
}

sluice_status slc_descriptors_or_system(int error, const char *what, int size)
{
    if (slc_descriptors_lacking(error)) return slc_descriptors_error(what, size);
    return slc_error(SLUICE_ERR_SYSTEM, "%s: %s", what, strerror(error));
}
