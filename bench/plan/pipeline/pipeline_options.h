/* The options that describe a pipeline, for the commands that plan one: rows for their tables, and what they say. */
#pragma once

#include "bench/cli/options/option.h"
#include "lib/plan/profile.h"
#include "sched/pipeline/pipeline_plan.h"

typedef struct {
    uint32_t stages; /* 0: no pipeline */
    const char *schedule;
    uint32_t chunks;        /* 0: those of the schedule */
    uint32_t micro_batches; /* 0: the profile's */
    const char *cuts;
    bool weighs; /* auto: `stages` is chosen (weigh.h); only where the command can */
    bool alone;  /* the ranks are not planned without a pipeline for comparison */
} slc_pipeline_options;

/* The rows, for options in the struct `type`, whose field `name` is the slc_pipeline_options. */
#define SLC_PIPELINE_OPTION_ROWS(type, name, group)                                                                    \
    {"pipeline",                                                                                                       \
     "P",                                                                                                              \
     group,                                                                                                            \
     SLC_OPTION_SET,                                                                                                   \
     SLC_OPTION_FIELD(type, name.stages),                                                                              \
     NULL,                                                                                                             \
     0,                                                                                                                \
     "Plan P stages of layers, on paper; off; or auto (sluice plan): what divides the ranks is weighed (default: "     \
     "off)",                                                                                                           \
     .set = slc_pipeline_option},                                                                                      \
        {"pipeline-schedule",                                                                                          \
         "NAME",                                                                                                       \
         group,                                                                                                        \
         SLC_OPTION_WORD,                                                                                              \
         SLC_OPTION_FIELD(type, name.schedule),                                                                        \
         "1f1b",                                                                                                       \
         0,                                                                                                            \
         "Order of a stage's micro-batches: gpipe, 1f1b, interleaved, zero_bubble, pipedream or 2bw",                  \
         .choices = "gpipe,1f1b,interleaved,zero_bubble,pipedream,2bw"},                                               \
        {"pipeline-chunks",                                                                                            \
         "V",                                                                                                          \
         group,                                                                                                        \
         SLC_OPTION_COUNT,                                                                                             \
         SLC_OPTION_FIELD(type, name.chunks),                                                                          \
         NULL,                                                                                                         \
         0,                                                                                                            \
         "Chunks of layers a stage (default: 2 for interleaved, else 1)",                                              \
         1,                                                                                                            \
         SLC_PIPELINE_CHUNKS_MAX},                                                                                     \
        {"pipeline-cuts",                                                                                              \
         "LIST",                                                                                                       \
         group,                                                                                                        \
         SLC_OPTION_TEXT,                                                                                              \
         SLC_OPTION_FIELD(type, name.cuts),                                                                            \
         "auto",                                                                                                       \
         0,                                                                                                            \
         "First layer of each further stage, as h.4,h.8,head, or a file with them"},                                   \
    {                                                                                                                  \
        "micro-batches", "M", group, SLC_OPTION_COUNT, SLC_OPTION_FIELD(type, name.micro_batches), NULL, 0,            \
            "Micro-batches a replica and step, with --pipeline (default: the profile's)", 1, 65536                     \
    }

/* Reads P or off. Errors: ARGUMENT. */
sluice_status slc_pipeline_option(void *options, const slc_option *row, char *text);

/* Refuses options that say nothing without --pipeline. Errors: ARGUMENT. */
sluice_status slc_pipeline_options_check(const slc_pipeline_options *options);

/* Makes a request of the options. The stages' replicas are set in the profile, whose world was all ranks.
 * `first_layer` has room for all pieces; it is filled if the cuts are given. Errors: ARGUMENT (ranks that are no
 * multiple of the stages, cuts that are not layers in order; the error names what works), those of reading a file. */
sluice_status slc_pipeline_options_apply(const slc_pipeline_options *options, slc_profile *profile,
                                         uint32_t *first_layer, slc_pipeline_request *out);
