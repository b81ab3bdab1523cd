/* Passes are shuffled by permutations that need no memory, so only a group's lengths are ever held. */
#include "bench/train/data/examples/example_order.h"

#include "lib/base/integer.h"
#include "lib/base/numbers/permutation.h"

#include <stdlib.h>
#include <string.h>

/* Passes and groups have streams of their own, far apart from each other. */
static const uint64_t STREAM_PASS = UINT64_C(0x7061737300000000), STREAM_PART = UINT64_C(0x7374657000000000),
                      STREAM_ROUND = UINT64_C(0x726f756e00000000);
enum { PARTS = 10 }; /* of the lengths, in a round of steps */

uint64_t slc_example_order_steps(const slc_example_order *o)
{
    return slc_most(1, o->examples / o->step);
}

static uint64_t pass_of_sequences(const slc_example_order *o)
{
    return o->examples < o->step ? o->examples : slc_example_order_steps(o) * o->step;
}

double slc_example_order_passes(const slc_example_order *o, uint64_t sequences)
{
    return (double)sequences / (double)pass_of_sequences(o);
}

slc_example_group slc_example_order_group(const slc_example_order *o, uint64_t sequence)
{
    const uint64_t steps = slc_example_order_steps(o), step = sequence / o->step;
    const uint64_t pass = step / steps, inside = step % steps, groups = (steps + o->group - 1) / o->group;
    const uint64_t group = inside / o->group, begin = group * o->group;
    return (slc_example_group){.number = pass * groups + group,
                               .first = (pass * steps + begin) * o->step,
                               .count = slc_least(o->group, steps - begin) * o->step};
}

uint64_t slc_example_order_drawn(const slc_example_order *o, const slc_example_group *group, uint64_t drawn)
{
    const uint64_t sequence = group->first + drawn, pass = pass_of_sequences(o);
    return slc_permutation_place(o->seed, STREAM_PASS + sequence / pass, o->examples, sequence % pass);
}

static int shorter(const void *a, const void *b)
{
    const slc_group_member *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return x->drawn < y->drawn ? -1 : x->drawn > y->drawn;
}

/* Returns the number, among the rows of like length, of the row that step `step` of a group takes. Steps come in
 * rounds; a round takes one row from every tenth of the lengths. `stream` tells groups and lengths apart. */
static uint64_t row_of_step(const slc_example_order *o, uint64_t stream, uint64_t steps, uint64_t step)
{
    const uint64_t rounds = (steps + PARTS - 1) / PARTS, parts = (steps + rounds - 1) / rounds;
    const uint64_t last = steps - (parts - 1) * rounds; /* of the last part, which late rounds lack if it is shorter */
    const bool late = step >= last * parts;
    const uint64_t whole = parts - late, since = late ? step - last * parts : step;
    const uint64_t round = since / whole + (late ? last : 0);
    const uint64_t part = slc_permutation_place(o->seed, STREAM_ROUND + stream * rounds + round, whole, since % whole);
    const uint64_t there = part + 1 < parts ? rounds : last;
    return part * rounds + slc_permutation_place(o->seed, STREAM_PART + stream * PARTS + part, there, round);
}

void slc_example_order_sort(const slc_example_order *o, const slc_example_group *group, slc_group_member *members,
                            slc_group_member *room)
{
    const uint64_t steps = group->count / o->step, rows = o->step / o->row;
    slc_group_member *to = members;
    qsort(members, group->count, sizeof *members, shorter);
    memcpy(room, members, group->count * sizeof *members);
    for (uint64_t step = 0; step < steps; step++)
        for (uint64_t part = 0; part < rows; part++, to += o->row) {
            const uint64_t row = part * steps + row_of_step(o, group->number * rows + part, steps, step);
            memcpy(to, room + row * o->row, o->row * sizeof *to);
        }
}
