/* Pipelines that run: from a request to the cuts, and from these to what each stage runs. The umbrella hands these
 * functions to the engine; they do what the members of slc_planner say. */
#pragma once

#include "lib/plan/request.h"

sluice_status slc_pipeline_cut(const slc_job *job, const slc_stages_request *request, slc_stages_cut *out);
sluice_status slc_pipeline_stage(const slc_job *job, const slc_stages_request *request, const slc_stages_cut *cut,
                                 uint32_t stage, slc_stage_answer *out);
void slc_pipeline_stage_free(slc_stage_answer *answer);
