/* The memory of a plan on two lanes: where buffers are, and which of their bytes are claimed. */
#pragma once

#include "tests/support/sched/lanes_state.h"

/* Notes the first fault. */
void lanes_fail(two_lanes *t, uint32_t item, const char *what);

/* Finds the plan's buffers, which the other functions need. */
void lanes_find_buffers(two_lanes *t);

/* Numbers of buffers; SLC_NONE: the plan has none. */
uint32_t lanes_buffer(const two_lanes *t, slc_buffer_kind kind, uint32_t unit, uint32_t index);
uint32_t lanes_gathered(const two_lanes *t, const slc_item *op);

/* dp with each, if the sum's type is not the gradient's: it is gathered in place. */
bool lanes_whole_sum(const two_lanes *t, uint32_t u);

bool lanes_is_claimed(const two_lanes *t, uint32_t buffer, uint64_t block);

/* The claims of an item that starts, and those that end with it. */
void lanes_claim_all(two_lanes *t, lanes_place place);
void lanes_release(two_lanes *t, lanes_place place);
