/* Any file of strategies must be read whole or refused with a line; what is read gives every unit a strategy. */
#include "sched/planner_parts.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    slc_use uses[] = {{0, true}};
    slc_unit units[] = {{.name = "h.0", .elements = 64, .block_elements = 64, .uses = uses, .use_count = 1},
                        {.name = "embed.wte", .elements = 64, .block_elements = 64, .uses = uses, .use_count = 1}};
    slc_job job = {.world = 2, .layer_count = 1, .units = units, .unit_count = 2};
    slc_strategy out[2];
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    sluice_status status = slc_strategies_from_json(&job, "fuzz", text, out);
    if (status ? !*sluice_last_error() : (out[0] >= SLC_STRATEGIES || out[1] >= SLC_STRATEGIES)) abort();
    free(text);
    return 0;
}
