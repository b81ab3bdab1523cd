/* The order in which a run goes through its examples: in passes, each in an order of its own, and in a pass by groups
 * of steps. The examples of a group are sorted by length and cut into rows, which are one micro-batch of all ranks, so
 * that these are of like length and little is padded. A step has a row of every part of the lengths, as many as it has
 * micro-batches. Steps come in rounds of ten that together have every tenth of the lengths, so that with one
 * micro-batch a step an optimizer's averages over some ten steps are of all lengths.
 *
 * A pass has whole steps only: what is left over, fewer examples than a step's, is another part in each pass. If there
 * are fewer examples than a step takes, passes follow each other inside it, unsorted. Everything is a function of
 * (seed, examples, step, row, group) and of the lengths, so every rank finds the same. Private to
 * bench/train/data/examples. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t seed;
    uint64_t examples; /* of the set; at least 1 */
    uint64_t step;     /* examples a step, of all ranks and micro-batches */
    uint64_t row;      /* of these, the examples of one micro-batch of all ranks */
    uint64_t group;    /* steps whose examples are sorted together; 1: they are drawn */
} slc_example_order;

/* One example's place in a group. */
typedef struct {
    uint64_t example;
    uint32_t length, targets;
    uint32_t drawn; /* its place before sorting */
    bool replaced;  /* the example that was drawn is left out, and another stands in its place */
} slc_group_member;

typedef struct {
    uint64_t number;       /* in the whole run */
    uint64_t first, count; /* sequences */
} slc_example_group;

/* Steps of a pass; at least 1. */
uint64_t slc_example_order_steps(const slc_example_order *order);
/* Returns how often a run that has taken so many sequences has seen its examples. */
double slc_example_order_passes(const slc_example_order *order, uint64_t sequences);

/* The group that a sequence lies in. */
slc_example_group slc_example_order_group(const slc_example_order *order, uint64_t sequence);
/* The example at place `drawn` of the group, before sorting. */
uint64_t slc_example_order_drawn(const slc_example_order *order, const slc_example_group *group, uint64_t drawn);
/* Puts the group's members, which come in drawn order with their lengths, in the order of the sequences: sorted by
 * length, and dealt to the steps. `room`: as many members, for the work. */
void slc_example_order_sort(const slc_example_order *order, const slc_example_group *group, slc_group_member *members,
                            slc_group_member *room);
