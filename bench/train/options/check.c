/* Options beside each other, and beside the model that they describe. bench/train/train_run_test.c covers this file. */
#include "bench/train/options/options.h"

#include "bench/cli/default_threads.h"
#include "bench/cli/options/cuts_file.h"
#include "bench/cli/throttle_option.h"
#include "bench/train/options/batch_options.h"
#include "bench/train/options/depth_options.h"
#include "bench/train/options/length_options.h"
#include "bench/train/options/lr_schedule.h"
#include "bench/train/options/onebit_options.h"
#include "bench/train/options/optimizer_options.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"
#include "lib/weights/family.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Refuses --model and --size beside weights that have others. The options may be checked twice; at the second time the
 * size is the path of the weights. */
static sluice_status check_weights(const slc_training_options *o, const char *family)
{
    if (!o->weights) return SLUICE_OK;
    if (slc_training_option_given(o, "model") && strcmp(slc_training_family(o), family))
        return slc_error(SLUICE_ERR_ARGUMENT, "--model %s: %s holds a model of the family %s", o->model, o->weights,
                         family);
    if (slc_training_option_given(o, "size") && strcmp(o->size, o->weights))
        return slc_error(SLUICE_ERR_ARGUMENT, "--size %s: the size is that of --weights %s; leave --size out", o->size,
                         o->weights);
    return SLUICE_OK;
}

static sluice_status check_samples(const slc_training_options *o, const sluice_model_config *model)
{
    if (!o->sample_every != !o->prompt)
        return slc_error(SLUICE_ERR_ARGUMENT, "--%s: give --%s too", o->prompt ? "prompt" : "sample-every",
                         o->prompt ? "sample-every N" : "prompt TEXT");
    if (o->sample_every && (!slc_family_of(model->family)->causal || model->head != SLUICE_HEAD_TOKENS))
        return slc_error(SLUICE_ERR_ARGUMENT, "--sample-every: only a gpt2 goes on with a text; leave it out");
    return SLUICE_OK;
}

static sluice_status check_images(const slc_training_options *o, const sluice_model_config *model)
{
    if (o->visual_tokens && (!slc_family_of(model->family)->sees || model->head != SLUICE_HEAD_TOKENS))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--visual-tokens: only a beit with --head tokens guesses visual tokens; leave it out");
    if (!o->image_draft || slc_family_of(model->family)->sees) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--image-draft: %s sees no images; leave it out",
                     sluice_model_family_name((uint32_t)model->family));
}

/* Refuses the options whose place a kept plan takes. */
static sluice_status check_plan(const slc_training_options *o)
{
    static const char *const said[] = {"strategy",          "schedule",        "recompute",    "lossy",
                                       "pipeline-schedule", "pipeline-chunks", "pipeline-cuts"};
    for (size_t i = 0; o->plan && i < sizeof said / sizeof *said; i++)
        if (slc_training_option_given(o, said[i]))
            return slc_error(SLUICE_ERR_ARGUMENT, "--plan %s: the plan says what --%s would; leave --%s out", o->plan,
                             said[i], said[i]);
    if (o->plan && access(o->plan, R_OK))
        return slc_error(slc_path_status(errno), "--plan %s: %s; --plan-out writes one", o->plan, strerror(errno));
    if (o->plan && slc_training_is_compressed(o->optimizer))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "--plan %s: --optimizer %s has a plan for each of its phases, and a file holds one", o->plan,
                         o->optimizer);
    if (o->plan && o->profile_out)
        return slc_error(SLUICE_ERR_ARGUMENT, "--profile-out %s: a run of --plan measures nothing; leave one out",
                         o->profile_out);
    return SLUICE_OK;
}

/* True if the text begins with the name of a layer of the bundled models. */
static bool is_layer(const char *name)
{
    const size_t length = strcspn(name, ",");
    if (length == 4 && !strncmp(name, "head", length)) return true;
    return length > 2 && !strncmp(name, "h.", 2) && strspn(name + 2, "0123456789") == length - 2;
}

/* Takes cuts from a file, if what is given is neither a list of layers nor a word for the planner. */
static sluice_status read_cuts(slc_training_options *o)
{
    const char *path = o->pipeline_cuts;
    char *list = NULL;
    if (!strcmp(path, "auto") || is_layer(path)) return SLUICE_OK;
    if (access(path, F_OK))
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "--pipeline-cuts %s: give the first layer of each piece but the first, as h.4,h.8,head, a file "
            "with such names, or auto",
            path);
    sluice_status status = slc_error_context(slc_cuts_file_read(path, &list), "--pipeline-cuts");
    if (!status) o->pipeline_cuts = slc_option_keep(list);
    free(list);
    return status || o->pipeline_cuts ? status : slc_error(SLUICE_ERR_MEMORY, "cuts");
}

/* Options that a pipeline does not know yet are refused before the model is made. */
static sluice_status check_pipeline(slc_training_options *o)
{
    static const char *const own[] = {"pipeline-chunks", "pipeline-cuts"};
    static const char *const later[] = {"plan-out", "profile-out", "lossy", "micro-batches-from", "pld"};
    const uint64_t stages = slc_training_stages(o);
    if (!strcmp(o->pipeline, "auto"))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--pipeline auto: training takes a number of stages; sluice plan --pipeline "
                         "auto says which is fastest on paper");
    if (stages == UINT64_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline %s: give off, or from 2 to %d stages", o->pipeline,
                         SLC_TRAINING_STAGES_MOST);
    for (size_t i = 0; !stages && i < sizeof own / sizeof *own; i++)
        if (slc_training_option_given(o, own[i]))
            return slc_error(SLUICE_ERR_ARGUMENT, "--%s goes with --pipeline P", own[i]);
    if (!stages && strcmp(o->pipeline_schedule, "1f1b"))
        return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline-schedule goes with --pipeline P");
    if (!stages) return SLUICE_OK;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (slc_training_option_given(o, later[i]))
            return slc_error(SLUICE_ERR_UNSUPPORTED, "--pipeline %s: not with --%s yet; leave one of them out",
                             o->pipeline, later[i]);
    return read_cuts(o);
}

/* A compressed optimizer moves all parameters by one rate. */
static sluice_status check_layer_decay(const slc_training_options *o)
{
    if (o->layer_decay == 1 || !slc_training_is_compressed(o->optimizer)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "--layer-decay %g with --optimizer %s: it has one rate for all layers; give another --optimizer",
                     o->layer_decay, o->optimizer);
}

/* Checks the options beside --epochs. The number of steps is known only once the data are open, so options whose
 * default follows from it must be given. */
static sluice_status check_epochs(const slc_training_options *o)
{
    if (!(o->epochs > 0)) return SLUICE_OK;
    if (slc_training_option_given(o, "steps"))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--epochs %g and --steps %llu: both say how long to train; give one of them", o->epochs,
                         (unsigned long long)o->steps);
    if (slc_training_is_compressed(o->optimizer) && !o->freeze_step && !(o->freeze_change > 0))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--epochs with --optimizer %s: give --freeze-step or --freeze-change, since their defaults "
                         "follow from --steps",
                         o->optimizer);
    return SLUICE_OK;
}

sluice_status slc_training_options_check(slc_training_options *o)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    sluice_config config;
    slc_lr_schedule rates;
    uint32_t length;
    o->optimizer = slc_training_optimizer(o);
    if (o->weights && !slc_training_option_given(o, "lr")) o->learning_rate = SLC_TRAINING_FINE_TUNING_RATE;
    sluice_status status = slc_training_names_check(o);
    if (!status) status = slc_fill_threads(&o->threads);
    if (!status) status = slc_throttle_check(o->throttle);
    if (!status) status = slc_training_onebit_check(o);
    if (!status) status = slc_training_optimizer_check(o);
    if (!status) status = check_pipeline(o);
    if (!status) status = check_plan(o);
    if (!status) status = check_layer_decay(o);
    if (!status) status = slc_batch_options_check(o);
    if (!status) status = slc_lr_schedule_make(o, 0, &rates);
    if (!status && o->save_every && !o->save)
        status = slc_error(SLUICE_ERR_ARGUMENT, "--save-every: give a folder with --save or --go-on");
    if (!status && o->observe && !o->log)
        status =
            slc_error(SLUICE_ERR_ARGUMENT, "--observe: give a folder with --log, where the table and the picture go");
    if (!status && o->eval_data_count && !o->data_count)
        status = slc_error(SLUICE_ERR_ARGUMENT, "--eval-data: give --data too");
    if (!status) status = check_epochs(o);
    if (!status) status = slc_training_model(o, &model, &length);
    if (!status) status = slc_length_options_check(o, length);
    if (!status) status = slc_depth_options_check(o, &model);
    if (!status) status = check_samples(o, &model);
    if (!status) status = check_images(o, &model);
    if (!status) status = check_weights(o, sluice_model_family_name((uint32_t)model.family));
    if (status) return status;
    o->model = sluice_model_family_name((uint32_t)model.family);
    o->head = model.head == SLUICE_HEAD_CLASSES ? "classes" : "tokens";
    if (o->weights) o->size = o->weights;
    if (slc_training_stages(o) && slc_training_speaks(o) && !slc_training_option_given(o, "tied")) o->tied = "split";
    return slc_training_config(o, &config);
}
