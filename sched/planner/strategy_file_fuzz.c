/* Any file of strategies must be read as a whole or refused with a line; a file that is read gives every unit a
 * strategy. The same text as a list is read or refused too, and a unit gets what it may have or nothing. */
#include "sched/planner.h"
#include "sched/planner/parts.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { UNITS = 4, ROWS = 2 };
    static const char *layers[] = {"h.0", "a", "b"};
    slc_use uses[] = {{0, true}, {1, true}, {2, true}};
    slc_unit units[] = {
        {.name = "h.0", .elements = 64, .block_elements = 64, .uses = uses, .use_count = 1},
        {.name = "embed.wte",
         .elements = 64,
         .block_elements = 64,
         .uses = uses + 2,
         .use_count = 1,
         .role = SLC_UNIT_SPLIT,
         .partner = 2},
        {.name = "rows of embed.wte",
         .elements = 32,
         .block_elements = 32,
         .uses = uses,
         .use_count = 1,
         .role = SLC_UNIT_ROWS,
         .partner = 1,
         .row_elements = 4,
         .row_count = 16,
         .most_rows = 2},
        {.name = "a..b", .elements = 64, .block_elements = 64, .uses = uses + 1, .use_count = 2, .fused = true}};
    slc_job job = {.world = 2, .layer_count = 3, .layers = layers, .units = units, .unit_count = UNITS};
    slc_strategy out[UNITS];
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    sluice_status status = slc_strategies_from_json(&job, "fuzz", text, out);
    if (status && !*sluice_last_error()) abort();
    for (int u = 0; u < UNITS && !status; u++)
        if (out[u] >= SLC_STRATEGIES || (u == ROWS && out[u] != SLC_FSDP)) abort();
    status = slc_strategies_from_list(&job, text, out);
    if (status && !*sluice_last_error()) abort();
    for (int u = 0; u < UNITS && !status; u++)
        if (out[u] > SLC_STRATEGIES || (u == ROWS && out[u] != SLC_FSDP)) abort();
    free(text);
    return 0;
}
