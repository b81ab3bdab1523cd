/* Layers are kept in an array that doubles. published_test.c covers this file. */
#include "sched/study/layer_table.h"

#include <stdlib.h>

enum { ROOM_FIRST = 64 };

slc_table_layer *slc_layer_table_add(slc_layer_table *table, const slc_table_layer *layer)
{
    static _Thread_local slc_table_layer lost;
    if (table->count == table->room) {
        uint32_t room = table->room ? 2 * table->room : ROOM_FIRST;
        slc_table_layer *larger = realloc(table->layers, room * sizeof *larger);
        if (!larger) {
            table->failed = true;
            return &lost;
        }
        table->layers = larger;
        table->room = room;
    }
    table->layers[table->count] = *layer;
    return &table->layers[table->count++];
}

void slc_layer_table_fini(slc_layer_table *table)
{
    free(table->layers);
    *table = (slc_layer_table){0};
}
