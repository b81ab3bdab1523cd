/* The runtime widens bf16 gradients before it calls this, as it does for every optimizer that knows fp32 only. */
#include "lib/model/gradient_keeper.h"

#include <string.h>

static sluice_status keep_gradient(const sluice_update *update, void *context)
{
    (void)context;
    memcpy(update->state[0], update->gradient, update->count * sizeof(float));
    return SLUICE_OK;
}

const sluice_optimizer slc_gradient_keeper = {.struct_size = sizeof(sluice_optimizer),
                                              .name = "keeper",
                                              .state_count = 1,
                                              .state_name = {"gradient"},
                                              .update = keep_gradient};
