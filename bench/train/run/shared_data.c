/* tests/command/data/train_data_test.sh covers this file. */
#include "bench/train/run/shared_data.h"

#include "bench/launch/stop_signals.h"
#include "bench/train/cores.h"
#include "bench/train/data/tokenising.h"
#include "bench/train/options/length_options.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <string.h>

typedef struct {
    const slc_training_watch *watch;
    bool shows;
    slc_training_tokenising tokenising, indexing;
} progress;

static bool asked_to_stop(const progress *p)
{
    return p->watch && p->watch->stops && slc_stop_signals_seen(p->watch->stops) > 0;
}

/* Shows how far a text is made into tokens, which takes a while if it is long. Ctrl-C ends this at once, since nothing
 * has been trained yet. */
static sluice_status show_tokenising(uint64_t done, uint64_t bytes, void *context)
{
    progress *p = context;
    if (asked_to_stop(p)) return slc_error(SLUICE_ERR_INTERRUPTED, "stopped while the text was made into tokens");
    if (p->shows) slc_training_tokenising_show(&p->tokenising, done, bytes);
    return SLUICE_OK;
}

/* Shows how far the records of a file are found, which takes a while too if the file is large. */
static sluice_status show_indexing(uint64_t done, uint64_t bytes, void *context)
{
    progress *p = context;
    if (asked_to_stop(p)) return slc_error(SLUICE_ERR_INTERRUPTED, "stopped while records were looked for");
    if (p->shows) slc_training_indexing_show(&p->indexing, done, bytes);
    return SLUICE_OK;
}

/* Counts the cores that compute leaves idle. A rank that computes on a GPU has one thread that works. */
static sluice_status count_idle_cores(sluice_world *world, const slc_training_options *options, uint64_t *out)
{
    slc_cores_use cores;
    const uint64_t threads = strcmp(options->device, "cpu") ? 1 : options->threads;
    sluice_status status = slc_cores_look(world, threads, &cores);
    if (!status) *out = slc_cores_idle_each(&cores);
    return status;
}

/* Checks that these data can be taken in the lengths that the options ask for. */
static sluice_status check_lengths(const slc_training_options *o, const slc_training_data *data)
{
    const uint32_t least = slc_training_data_least_length(data), asked = slc_length_options_sizes(o, 1).length.least;
    if (!slc_length_options_vary(o)) return SLUICE_OK;
    if (!least)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "--curriculum %s: the records of --data bring lengths of their own, one a sequence; give "
                         "--sequences windows, or leave --curriculum out",
                         o->curriculum);
    if (asked >= least) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--curriculum %s: two of the %u tokens are [CLS] and [SEP], so nothing is left to learn; give %u "
                     "at least",
                     o->curriculum, asked, least);
}

sluice_status slc_run_data_open(sluice_world *world, const slc_training_options *options, const slc_run_place *place,
                                const slc_training_watch *watch, sluice_model_config *model, slc_training_data **out)
{
    progress p = {.watch = watch, .shows = place->rank == 0};
    slc_training_data_watch shown = {show_tokenising, &p, show_indexing, place->replicas, 0};
    sluice_status status = count_idle_cores(world, options, &shown.idle_cores);
    if (!status) status = slc_training_data_open(options, model, place->length, &shown, out);
    for (uint32_t i = 0; !status && place->rank == 0 && slc_training_data_note(*out, i); i++)
        slc_log(SLC_LOG_WARN, "%s", slc_training_data_note(*out, i));
    return status ? status : check_lengths(options, *out);
}

/* Reads all of the data only if a checkpoint saves its hash, or is compared with it. */
static sluice_status look_at_data(const slc_training_data *data, slc_training_identity *out)
{
    const slc_training_options *o = out->options;
    sluice_status status = o->save ? slc_training_data_beside(data, &out->beside) : SLUICE_OK;
    if (status || !(o->save || o->resume)) return status;
    return slc_training_data_content(data, &out->content);
}

sluice_status slc_run_data_identify(sluice_world *world, const slc_training_options *options,
                                    const slc_training_data *data, slc_training_identity *out)
{
    const slc_training_data_facts *facts = slc_training_data_get_facts(data);
    *out = (slc_training_identity){.world = world,
                                   .options = options,
                                   .data = facts->fingerprint,
                                   .tokenizer = facts->tokenizer,
                                   .reading = facts->reading};
    sluice_status status = look_at_data(data, out);
    if (!status) status = sluice_world_same(world, "--data", out->data);
    if (!status) status = sluice_world_same(world, "tokenizer for --data", out->tokenizer);
    if (!status)
        status =
            sluice_world_same(world, "way to read --data (preprocessor_config.json, labels, template)", out->reading);
    return status ? status : sluice_world_same(world, "--data", out->content);
}
