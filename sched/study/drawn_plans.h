/* Plans for steps that draw the layers which they keep, against the plan for steps that keep all: both are judged by
 * drawn steps that neither was chosen for. */
#pragma once

#include "lib/plan/profile.h"
#include "sched/joint/joint.h"

/* Makes the layers of a profile those of a model between an embedding and a head: layer i of the L others is kept with
 * 1 - i (1 - theta) / L, as progressive layer dropping does. Errors: MEMORY. */
sluice_status slc_drawn_plans_set_keeps(slc_profile *profile, double theta);

typedef struct {
    double depth;   /* layers that a step keeps in the mean */
    double whole_s; /* the step of the plan for all layers if it keeps all of them */
    double all_s;   /* the mean step of that plan over drawn steps, */
    double drawn_s; /* that of the plan for draws, over the same steps, */
    double said_s;  /* and what its forecast says */
    char member[48];
} slc_drawn_plans;

/* Makes both plans and simulates them over `draws` drawn steps of the seed. Errors: those of slc_joint_plan, MEMORY. */
sluice_status slc_drawn_plans_compare(const slc_joint_request *request, uint32_t draws, uint64_t seed,
                                      slc_drawn_plans *out);
