/* The items of a plan on two lanes read and write blocks; tags tell whether they are the right ones. */
#pragma once

#include "tests/support/sched/lanes_state.h"

typedef struct {
    two_lanes *t;
    uint32_t item;
    uint64_t step;
    bool end; /* false: the item's start */
} touch;

/* An item starts or ends. A fault goes to x->t->error. */
void touch_item(touch *x);
