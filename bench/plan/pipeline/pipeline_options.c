/* Makes a request of options. tests/command/plan/pipeline_command_test.sh covers this file. */
#include "bench/plan/pipeline/pipeline_options.h"

#include "bench/cli/options/cuts_file.h"
#include "lib/base/status.h"
#include "lib/base/text/divisors.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_STAGES = 1024 };

sluice_status slc_pipeline_option(void *options, const slc_option *row, char *text)
{
    slc_pipeline_options *o = (slc_pipeline_options *)(void *)((char *)options + row->field);
    char *end;
    o->stages = 0;
    o->weighs = !strcmp(text, "auto");
    if (!strcmp(text, "off") || o->weighs) return SLUICE_OK;
    const unsigned long stages = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || stages < 2 || stages > MOST_STAGES)
        return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline %s: give off, from 2 to %d stages, or auto (sluice plan)",
                         text, MOST_STAGES);
    o->stages = (uint32_t)stages;
    return SLUICE_OK;
}

sluice_status slc_pipeline_options_check(const slc_pipeline_options *o)
{
    const char *alone = o->chunks ? "pipeline-chunks" : o->micro_batches ? "micro-batches" : NULL;
    if (strcmp(o->schedule, "1f1b")) alone = "pipeline-schedule";
    if (strcmp(o->cuts, "auto")) alone = "pipeline-cuts";
    if (o->stages || o->weighs || !alone) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--%s goes with --pipeline P", alone);
}

static sluice_status share_ranks(const slc_pipeline_options *o, slc_profile *profile)
{
    const uint32_t ranks = profile->job.world;
    char divisors[200];
    slc_divisors_text(ranks, divisors, sizeof divisors);
    if (ranks % o->stages == 0) return slc_profile_set_world(profile, ranks / o->stages);
    if (!*divisors)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--pipeline %u: 1 rank is no multiple of %u stages; give more ranks, as "
                         "--world %u",
                         o->stages, o->stages, o->stages);
    return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline %u: %u ranks are no multiple of %u stages; with %u ranks %s work",
                     o->stages, ranks, o->stages, ranks, divisors);
}

static bool is_layer(const slc_job *job, const char *text)
{
    const size_t length = strcspn(text, ",");
    for (uint32_t l = 0; l < job->layer_count; l++)
        if (strlen(job->layers[l]) == length && !memcmp(job->layers[l], text, length)) return true;
    return false;
}

/* The text is a list of layers, unless its first word is none and a file has that name. */
static sluice_status read_cuts(const slc_job *job, const char *text, uint32_t pieces, uint32_t *first_layer)
{
    char *list = NULL;
    const bool in_file = !is_layer(job, text) && access(text, F_OK) == 0;
    sluice_status status = in_file ? slc_cuts_file_read(text, &list) : SLUICE_OK;
    if (!status) status = slc_pipeline_cuts_read(job, in_file ? list : text, pieces, first_layer);
    free(list);
    return slc_error_context(status, in_file ? "--pipeline-cuts %s" : "--pipeline-cuts", text);
}

sluice_status slc_pipeline_options_apply(const slc_pipeline_options *o, slc_profile *profile, uint32_t *first_layer,
                                         slc_pipeline_request *out)
{
    *out = (slc_pipeline_request){
        .profile = profile, .schedule = slc_pipeline_schedule_find(o->schedule), .strategy = SLC_STRATEGIES};
    if (o->micro_batches) profile->job.micro_batches = o->micro_batches;
    out->shape = (slc_pipeline_shape){o->stages,
                                      o->chunks                ? o->chunks
                                      : out->schedule->chunked ? 2
                                                               : 1,
                                      profile->job.micro_batches};
    sluice_status status = share_ranks(o, profile);
    if (!status) status = slc_pipeline_check(out->schedule, &out->shape);
    if (status || !strcmp(o->cuts, "auto")) return status;
    out->first_layer = first_layer;
    return read_cuts(&profile->job, o->cuts, slc_pipeline_pieces(&out->shape), first_layer);
}
