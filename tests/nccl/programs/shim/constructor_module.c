/* A library that uses NCCL in its constructor, that is while the loader's lock is held. It says that it is there on the
 * pipe that CONSTRUCTOR_PIPE names, and gives other threads time to make their own first call. */
#include "plugins/nccl/nccl_abi.h"

#include <stdlib.h>
#include <unistd.h>

int module_calls(int all_reduces);

__attribute__((constructor)) static void use_nccl(void)
{
    const char *text = getenv("CONSTRUCTOR_PIPE");
    if (!text || write(atoi(text), "", 1) != 1) _exit(4);
    usleep(300000);
    if (module_calls(3)) _exit(5);
}
