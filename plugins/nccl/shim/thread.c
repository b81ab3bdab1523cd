/* shim_test.c covers this file. */
#include "plugins/nccl/shim/thread.h"

slc_shim_thread *slc_shim_this_thread(void)
{
    static _Thread_local slc_shim_thread this_thread;
    return &this_thread;
}
