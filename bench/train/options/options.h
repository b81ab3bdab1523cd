/* The options that the subcommands which train share. They are a slc_command_line, for the commands' own lines to
 * share, whose options are a slc_training_options. A command that takes lists for strategy, schedule or budget reads
 * their text itself and sets them for each run. Strings stay their owner's (argv, the table). One thread. */
#pragma once

#include "bench/cli/options/command_line.h"
#include "bench/train/options/training_options.h"

#include <jansson.h>
#include <sluice/model.h>
#include <sluice/runtime.h>
#include <sluice/world.h>

/* The difference between an option (or several, with commas) in one command and in the table; a field that is NULL is
 * as there. An option with a `doc` of its own is in the command's short help. */
typedef struct {
    const char *name;
    const char *fallback; /* its default, as it would be typed */
    const char *argument, *doc;
    const char *refused; /* why this command does not take it; its help leaves the option out */
    bool list;   /* of a number: it takes several with commas, of which the first is set; slc_training_option_typed */
    bool seldom; /* only --help-all lists it, though it has words of its own */
} slc_training_difference;

/* `differences` end with {0}; NULL: there are none. They hold for the process, in slc_training_options_init too. */
const slc_command_line *slc_training_command_line(const slc_training_difference *differences);

/* Sets the defaults; the parser does it too before it reads the first option. */
void slc_training_options_init(slc_training_options *options);

/* The rate of a run that begins with weights and gives none; transformers' Trainer has the same. */
#define SLC_TRAINING_FINE_TUNING_RATE 5e-5

/* Sets the option as if `text` had been typed; both strings stay the caller's, and `text` must live as long as the
 * options. Errors: ARGUMENT. */
sluice_status slc_training_option_set(slc_training_options *options, const char *name, const char *text);
/* Returns true if the option was typed or set, false if it has its default. */
bool slc_training_option_given(const slc_training_options *options, const char *name);
/* The text that was typed or set; NULL: none was, and the option has its default. */
const char *slc_training_option_typed(const slc_training_options *options, const char *name);

/* The uses of an option besides the command line: columns of the table. */
typedef enum {
    SLC_SAVED = 1,            /* a checkpoint keeps it; a run that is resumed with another value is warned */
    SLC_SAVED_COMPRESSED = 2, /* as SAVED, if the optimizer is a compressed one */
    SLC_EQUAL = 4,            /* a run that is resumed with another value is refused */
    SLC_REPORTED = 8,         /* one of the "settings" of a JSON report */
    SLC_OWN = 16,             /* ranks may differ: hosts keep files at different places, the least budget counts */
    SLC_MEASURED = 32,        /* what is measured depends on it */
    SLC_ENUMERATOR = 64,      /* the value's place among the choices is an enumerator of sluice_config */
} slc_option_use;

/* Returns the rows of the table, in its order; one without a name comes last. A row's number is its place in
 * slc_training_options.typed. The rows stay as long as the process. */
const slc_option *slc_training_rows(void);

/* Adds the options that have one of `uses` to the object `settings`, in the order of the table. Where the options leave
 * the optimizer's numbers or the schedule's horizon open, the values that are used are filled in. Keys are the options'
 * names, in a report with underscores. Returns 0, or -1: no memory, no object, or a text that is no UTF-8. In a report,
 * and in any list of data files, such a text is written with question marks. */
int slc_training_options_json(const slc_training_options *options, unsigned uses, json_t *settings);
/* Sets what no option has set yet from a recipe, for a command in which --recipe is a list. Errors: those of
 * slc_training_recipe_read. */
sluice_status slc_training_recipe_take(const char *path, slc_training_options *options);

/* Returns the options that were typed or read by --config and --recipe, without these two and --overwrite, as an object
 * that --config reads. NULL without memory. */
json_t *slc_training_options_given_json(const slc_training_options *options);
bool slc_training_option_must_equal(const char *name); /* EQUAL; false for a name that is no option */

/* The tokenizer that raw text is read with: --tokenizer, or the folder of --weights if it has a tokenizer.json;
 * NULL: bytes are tokens. */
const char *slc_training_tokenizer(const slc_training_options *options);

/* Returns whether the model's losses are of tokens of text, so that their exponential is a perplexity. The name of the
 * model has passed the check. */
bool slc_training_speaks(const slc_training_options *options);

/* Refuses a name that is not among an option's choices. Errors: ARGUMENT, UNSUPPORTED. */
sluice_status slc_training_names_check(const slc_training_options *options);
/* Checks all that can be known without a runtime: unknown names, texts that are no sizes, a context that is too long.
 * With weights, model and size become those of the weights; a head and an optimizer that are left open get their names,
 * and threads their number (bench/cli/default_threads.h).
 * Errors: ARGUMENT, UNSUPPORTED, and those of reading weights. */
sluice_status slc_training_options_check(slc_training_options *options);

/* Collective, before the options decide anything: compares the options of all ranks, because ranks with different ones
 * would wait for each other, or train with two learning rates. Errors: MISMATCH on every rank, naming the option. */
sluice_status slc_training_options_compare(const slc_training_options *options, sluice_world *world);

enum { SLC_TRAINING_STAGES_MOST = 1024 };
/* Returns how many stages the options ask for; 0: there is no pipeline; UINT64_MAX, which the check refuses: the text
 * is no number of stages. */
uint64_t slc_training_stages(const slc_training_options *options);
/* Returns the number of replicas of the model in a world of `ranks` ranks. Each replica takes data of its own. Every
 * rank is a replica; in a pipeline there is a replica for each rank of a stage. */
uint64_t slc_training_replicas(const slc_training_options *options, uint64_t ranks);

/* The name of the family that --model and --norm name. */
const char *slc_training_family(const slc_training_options *options);

/* slc_training_model describes the model, and slc_training_config the runtime, that options which have passed the check
 * ask for. *length: tokens a sequence, 0 for images. Fields that the data decides (classes) are not set yet. */
sluice_status slc_training_model(const slc_training_options *options, sluice_model_config *model, uint32_t *length);
sluice_status slc_training_config(const slc_training_options *options, sluice_config *config);
/* Describes the launcher's world, with the options' throttle and time limit. Errors: MISMATCH (another number of ranks
 * than -n says), those of sluice_world_config_init. */
sluice_status slc_training_world(const slc_training_options *options, sluice_world_config *config);
