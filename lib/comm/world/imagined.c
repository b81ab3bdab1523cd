/* The world of a plan that is made before there are ranks: everything that sizes depend on, and no peer. */
#include "lib/comm/imagined_world.h"

#include "lib/base/status.h"
#include "lib/comm/lane/lane.h"
#include "lib/comm/world/world.h"

#include <stdlib.h>

static sluice_status open_lane(sluice_world *world)
{
    slc_neighbour_card card;
    sluice_status status = slc_neighbours_open(&world->neighbours, &world->config, &card);
    if (!status)
        status = slc_lane_init(&world->comm, 0, world->config.size, &world->failure, &world->neighbours,
                               &world->transport, &world->control.history);
    world->comm.any_messages = world->any_messages;
    return status;
}

sluice_status slc_world_imagine(int size, int ranks_a_host, sluice_world **out)
{
    if (size < 1 || size > SLUICE_RANKS_MOST || ranks_a_host < 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "%d ranks, %d a host: give 1 to %d ranks, and at least one a host", size,
                         ranks_a_host, SLUICE_RANKS_MOST);
    sluice_world *world = calloc(1, sizeof *world);
    if (!world) return slc_error(SLUICE_ERR_MEMORY, "world");
    slc_world_init(world);
    world->imagined = true;
    world->any_messages = ranks_a_host < size;
    world->config = (sluice_world_config){.struct_size = sizeof world->config, .size = size, .timeout_s = 0};
    world->path = slc_world_path_name(size, world->any_messages, ranks_a_host > 1);
    sluice_status status = open_lane(world);
    if (status) {
        sluice_world_destroy(world);
        return status;
    }
    *out = world;
    return SLUICE_OK;
}
