/* tests/checkpoint/resume_test.sh covers this file. */
#include "bench/train/checkpoint/checkpoint.h"

#include "bench/cli/path_hints.h"
#include "bench/train/checkpoint/earlier_checkpoint.h"
#include "bench/train/checkpoint/global_batch.h"
#include "bench/train/options/onebit_options.h"
#include "bench/train/options/recipe_file.h"
#include "bench/train/checkpoint/shape.h"
#include "lib/base/file/path_error.h"
#include "lib/base/log.h"
#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/base/text/list_item.h"
#include "lib/base/text/shell_word.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <sluice/checkpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXTRA_VERSION = 1 };

/* ---- What decides a run's numbers ---- */

static json_t *paths_of(const slc_training_options *o)
{
    json_t *paths = json_array();
    for (uint64_t i = 0; i < o->data_count; i++) json_array_append_new(paths, json_string(o->data[i]));
    return paths;
}

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return hash ? json_string(text) : json_null();
}

/* Returns the number of ranks that take data of their own. Stages of a pipeline do not count: how a model is cut
 * changes no bit. */
static uint64_t ranks_of(const slc_training_identity *run)
{
    return slc_training_replicas(run->options, (uint64_t)sluice_world_size(run->world));
}

/* Makes the settings that a checkpoint keeps of a run. The paths of the data are kept only to be named to the user;
 * nothing depends on them. */
static json_t *settings_of(const slc_training_identity *run)
{
    slc_training_options o = *run->options;
    bool compressed = slc_training_is_compressed(o.optimizer);
    o.ranks = ranks_of(run);
    o.freeze_step = slc_training_freeze_step(&o);
    json_t *settings =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "data", (json_int_t)run->data, "content", (json_int_t)run->content,
                  "paths", paths_of(&o), "tokenizer", hash_json(run->tokenizer), "reading", hash_json(run->reading),
                  "shape", slc_training_shape_json(run->model));
    if (!slc_training_options_json(&o, SLC_SAVED | (compressed ? SLC_SAVED_COMPRESSED : 0), settings)) return settings;
    json_decref(settings);
    return NULL;
}

/* True if the setting has its default. A checkpoint that says nothing of an option was saved before there was one, so
 * it was trained with the default. */
static bool is_default(const slc_training_identity *run, const char *name, const json_t *now)
{
    slc_training_options defaults;
    json_t *settings = json_object();
    slc_training_options_init(&defaults);
    defaults.optimizer = run->options->optimizer;
    slc_training_options_json(&defaults, SLC_SAVED | SLC_SAVED_COMPRESSED, settings);
    bool equal = json_equal(json_object_get(settings, name), now);
    json_decref(settings);
    return equal;
}

/* True if a difference of this setting cannot change weights. They depend on which units are onebit; strategies without
 * onebit all give the same. */
static bool changes_nothing(const slc_training_identity *run, const char *name, const json_t *before, const json_t *now)
{
    if (!before && is_default(run, name, now)) return true;
    if (!strcmp(name, "pipeline")) return true;
    return !strcmp(name, "strategy") && slc_training_is_exact(json_string_value(now)) &&
           (!before || (json_is_string(before) && slc_training_is_exact(json_string_value(before))));
}

/* True if the hash of the content need not be compared: an old checkpoint has none, and if the beginnings of the data
 * differ, that is reported already. */
static bool says_nothing_of_content(const char *name, const json_t *saved, const json_t *mine)
{
    return !strcmp(name, "content") && (!json_object_get(saved, name) ||
                                        !json_equal(json_object_get(saved, "data"), json_object_get(mine, "data")));
}

static bool is_compared_apart(const char *name, const json_t *saved)
{
    if (!strcmp(name, "size")) return json_object_get(saved, "shape") != NULL;
    return !strcmp(name, "shape") || !strcmp(name, "tokenizer") || !strcmp(name, "reading") || !strcmp(name, "paths");
}

static void format_value(const json_t *value, char out[64])
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : NULL;
    snprintf(out, 64, "%s", text ? text : "not known");
    free(text);
}

/* ---- Checks that it is the same model, on the same tokens ---- */

/* The saved size, if it is the name of one; NULL: the model came from weights. */
static const char *named_size(sluice_model_family family, const json_t *saved)
{
    const char *size = json_string_value(json_object_get(saved, "size")), *name;
    for (uint32_t i = 0; size && (name = sluice_model_size_name(family, i)); i++)
        if (!strcmp(name, size)) return name;
    return NULL;
}

/* A checkpoint of an earlier version has no shape, and is compared by the name of its size. */
static sluice_status compare_shape(const slc_training_identity *run, const json_t *saved)
{
    const json_t *shape = json_object_get(saved, "shape");
    const char *folder = run->options->resume, *size;
    sluice_model_config before = SLUICE_INIT(sluice_model_config);
    char what[128];
    if (!shape) return SLUICE_OK;
    if (!slc_training_shape_read(shape, &before))
        return slc_error(SLUICE_ERR_FORMAT, "--resume %s: its \"shape\" describes no model", folder);
    if (slc_training_shape_equal(&before, run->model, what)) return SLUICE_OK;
    size = named_size(before.family, saved);
    if (size && !run->options->weights && strcmp(size, run->options->size))
        return slc_error(SLUICE_ERR_MISMATCH, "--resume %s: it was saved with --size \"%s\", this run has \"%s\"",
                         folder, size, run->options->size);
    return slc_error(SLUICE_ERR_MISMATCH,
                     "--resume %s: it was saved by another model, whose shape has %s; give the "
                     "same --model and --size, or --weights of the same shape, or none of them",
                     folder, what);
}

static sluice_status compare_tokenizer(const slc_training_identity *run, const json_t *saved)
{
    const char *before = json_string_value(json_object_get(saved, "tokenizer"));
    const char *folder = run->options->resume;
    json_t *now = hash_json(run->tokenizer);
    bool same = before ? json_is_string(now) && !strcmp(before, json_string_value(now)) : !json_is_string(now);
    bool has = json_is_string(now);
    json_decref(now);
    if (same) return SLUICE_OK;
    if (!before && !json_object_get(saved, "shape")) return SLUICE_OK; /* of a version that kept nothing of it */
    if (!has)
        return slc_error(SLUICE_ERR_MISMATCH,
                         "--resume %s: it was trained on the tokens of a tokenizer, and this run reads bytes or token "
                         "files; give --tokenizer PATH, the same one",
                         folder);
    return slc_error(SLUICE_ERR_MISMATCH, "--resume %s: it was trained on %s; %s", folder,
                     before ? "the tokens of another tokenizer" : "text without a tokenizer",
                     before ? "give --tokenizer PATH, the same one" : "leave --tokenizer out");
}

/* Refuses to go on if images are read in another way than in the saved run: their classes have other numbers, or they
 * become other pixels. A run that began with --weights has both from the files there. */
static sluice_status compare_reading(const slc_training_identity *run, const json_t *saved)
{
    const json_t *before = json_object_get(saved, "reading");
    json_t *now = hash_json(run->reading);
    const bool same = !before || json_equal(before, now);
    json_decref(now);
    if (same) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MISMATCH,
                     "--resume %s: it was trained on images with other classes, or that became other pixels; give "
                     "folders of the same names, --image-draft as before, and where it began with --weights DIR the "
                     "same, whose preprocessor_config.json and config.json (id2label) say both",
                     run->options->resume);
}

static uint64_t saved_count(const json_t *saved, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(saved, name));
}

/* Rank 0 warns about a setting that differs from the saved run's; if it is the number of ranks, the line says what
 * becomes of the global batch. */
static void warn_of_change(const slc_training_identity *run, const char *name, const char *was, const char *is,
                           const json_t *saved)
{
    const slc_global_batch now = {ranks_of(run), run->options->batch, run->options->micro_batches};
    slc_global_batch before = {saved_count(saved, "ranks"), saved_count(saved, "batch"),
                               saved_count(saved, "micro-batches")};
    char batch[256] = "";
    if (!strcmp(name, "ranks") && before.ranks && before.batch && before.micro_batches) {
        strcpy(batch, ": ");
        slc_global_batch_words(&before, &now, batch + 2, sizeof batch - 2);
    }
    slc_log(SLC_LOG_WARN, "--resume %s: %s was %s and is %s; the run does not go on as it would have%s",
            run->options->resume, name, was, is, batch);
}

/* True if other ranks and other micro-batches make steps of as many sequences as before: that is the same recipe. */
static bool keeps_steps(const slc_training_identity *run, const char *name, const json_t *before, const json_t *now,
                        const json_t *saved)
{
    if (strcmp(name, "micro-batches") && strcmp(name, "micro-batches-from")) return false;
    return (uint64_t)json_integer_value(before) * saved_count(saved, "batch") * saved_count(saved, "ranks") ==
           (uint64_t)json_integer_value(now) * run->options->batch * ranks_of(run);
}

static sluice_status refuse_recipe(const slc_training_identity *run, const char *name, const char *was, const char *is,
                                   const json_t *before)
{
    const char *folder = run->options->resume, *text = json_string_value(before);
    if (!before)
        return slc_error(SLUICE_ERR_MISMATCH,
                         "--resume %s: it was saved with another recipe, which has no %s %s; leave --%s out, or give "
                         "--new-recipe to go on with this one",
                         folder, name, is, name);
    return slc_error(SLUICE_ERR_MISMATCH,
                     "--resume %s: it was saved with another recipe: %s was %s and is %s; give --%s %s, or "
                     "--new-recipe to go on with this one",
                     folder, name, was, is, name, text ? text : was);
}

/* Refuses what must be equal, or another recipe, or warns about the rest. */
static sluice_status compare(const slc_training_identity *run, const json_t *saved, const json_t *mine, bool refuse)
{
    const char *name, *folder = run->options->resume;
    json_t *value;
    json_object_foreach ((json_t *)mine, name, value) {
        const json_t *before = json_object_get(saved, name);
        char was[64], is[64];
        if (slc_training_option_must_equal(name) != refuse || json_equal(before, value)) continue;
        if (is_compared_apart(name, saved)) continue;
        if (changes_nothing(run, name, before, value) || says_nothing_of_content(name, saved, mine)) continue;
        format_value(before, was);
        format_value(value, is);
        if (refuse)
            return slc_error(SLUICE_ERR_MISMATCH, "--resume %s: it was saved with --%s %s, this run has %s", folder,
                             name, was, is);
        if (slc_training_is_track(name) && !run->options->new_recipe && !keeps_steps(run, name, before, value, saved))
            return refuse_recipe(run, name, was, is, before);
        if (sluice_world_rank(run->world) != 0) continue;
        if (!strcmp(name, "data") || !strcmp(name, "content"))
            slc_log(SLC_LOG_WARN,
                    "--resume %s: the training data is other than before; the run does not go on as it would have",
                    folder);
        else
            warn_of_change(run, name, was, is, saved);
    }
    return SLUICE_OK;
}

/* ---- Next to the weights ---- */

static sluice_status parse_extra(const slc_training_options *o, const void *extra, size_t bytes, json_t **out)
{
    json_error_t error;
    json_t *document = json_loadb(extra, bytes, 0, &error), *version = json_object_get(document, "version");
    if (!document || json_integer_value(version) != EXTRA_VERSION ||
        json_integer_value(json_object_get(document, "steps")) < 0 ||
        json_integer_value(json_object_get(document, "sequences")) < 0 ||
        json_integer_value(json_object_get(document, "tokens")) < 0) {
        json_decref(document);
        return slc_error(SLUICE_ERR_FORMAT, "--resume %s: it was not saved by this version's sluice train", o->resume);
    }
    *out = document;
    return SLUICE_OK;
}

/* Reads the position in the data from a checkpoint. Every rank has the same bytes, and so the same result. */
static sluice_status read_position(const slc_training_identity *run, const void *extra, size_t bytes,
                                   slc_training_position *out)
{
    json_t *document = NULL, *mine = settings_of(run);
    sluice_status status = mine ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "settings of the run");
    if (!status) status = parse_extra(run->options, extra, bytes, &document);
    const json_t *saved = json_object_get(document, "settings");
    if (!status) status = compare(run, saved, mine, true);
    if (!status) status = compare_shape(run, saved);
    if (!status) status = compare_tokenizer(run, saved);
    if (!status) status = compare_reading(run, saved);
    if (!status) status = compare(run, saved, mine, false);
    out->steps = (uint64_t)json_integer_value(json_object_get(document, "steps"));
    out->sequences = (uint64_t)json_integer_value(json_object_get(document, "sequences"));
    out->tokens = (uint64_t)json_integer_value(json_object_get(document, "tokens"));
    json_decref(mine);
    json_decref(document);
    return status;
}

/* `option` names the option that gave the folder, for errors; NULL: an argument gave it. */
static sluice_status read_extra(const slc_training_options *o, const char *option, json_t **document)
{
    void *extra = NULL;
    size_t bytes = 0;
    sluice_status status = slc_hint_checkpoint(sluice_checkpoint_extra(o->resume, &extra, &bytes), o->resume);
    if (option) status = slc_error_context(status, "%s", option);
    if (!status) status = parse_extra(o, extra, bytes, document);
    free(extra);
    /* Only this rank has read the checkpoint so far, and another rank may be able to read what this one cannot. So the
     * error names the checkpoint before only if this one is damaged. */
    return status == SLUICE_ERR_FORMAT ? slc_training_name_earlier(status, o->resume) : status;
}

/* Names an option that the saved run had and that this one lacks. */
static sluice_status what_is_missing(const slc_training_options *o, const json_t *saved)
{
    const char *path = json_string_value(json_array_get(json_object_get(saved, "paths"), 0));
    if (path && !o->data_count) {
        char item[2 * PATH_MAX];
        slc_item_write(path, item, sizeof item);
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--resume %s: the run that was saved there trained on --data %s%s; give "
                         "--data, the same wherever it lies now",
                         o->resume, slc_shell_word_of(item).text,
                         json_array_size(json_object_get(saved, "paths")) > 1 ? " and more" : "");
    }
    if (json_is_string(json_object_get(saved, "tokenizer")) && !slc_training_tokenizer(o))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--resume %s: the run that was saved there read its text with a tokenizer; "
                         "give --tokenizer PATH, the same one",
                         o->resume);
    return SLUICE_OK;
}

static sluice_status take_model(slc_training_options *o, const json_t *saved)
{
    const json_t *shape = json_object_get(saved, "shape");
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    if (o->weights || slc_training_option_given(o, "size") || !shape) return SLUICE_OK;
    if (!slc_training_shape_read(shape, &model))
        return slc_error(SLUICE_ERR_FORMAT, "--resume %s: its \"shape\" describes no model", o->resume);
    if (slc_training_option_given(o, "model") &&
        strcmp(slc_training_family(o), sluice_model_family_name((uint32_t)model.family)))
        return SLUICE_OK; /* it will be refused by name */
    o->shape = model;
    o->model = sluice_model_family_name((uint32_t)model.family);
    o->size = named_size(model.family, saved);
    if (!o->size) o->size = o->resume;
    return SLUICE_OK;
}

/* Takes the saved run's learning rate if it is the default of runs that begin with weights, so that the run goes on
 * with it although --weights is not given again. */
static void take_rate(slc_training_options *o, const json_t *saved)
{
    const bool usual = json_real_value(json_object_get(saved, "lr")) == SLC_TRAINING_FINE_TUNING_RATE;
    if (usual && !slc_training_option_given(o, "lr")) o->learning_rate = SLC_TRAINING_FINE_TUNING_RATE;
}

sluice_status slc_training_resume_model(slc_training_options *o)
{
    json_t *document = NULL;
    if (!o->resume) return SLUICE_OK;
    sluice_status status = read_extra(o, "--resume", &document);
    const json_t *saved = json_object_get(document, "settings");
    if (!status) status = take_model(o, saved);
    if (!status) take_rate(o, saved);
    if (!status) status = what_is_missing(o, saved);
    json_decref(document);
    return status;
}

/* Sets an option to what the saved run had. A share of 0 is not set, because it has the same effect as no option. */
static sluice_status take_option(slc_training_options *o, const json_t *saved, const char *name)
{
    const json_t *value = json_object_get(saved, name);
    char text[32];
    const char *kept = json_string_value(value);
    if (json_is_real(value) && json_real_value(value) == 0) return SLUICE_OK;
    if (json_is_integer(value)) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        kept = text;
    }
    if (json_is_real(value)) {
        snprintf(text, sizeof text, "%.17g", json_real_value(value));
        kept = text;
    }
    if (!kept || !*kept) return SLUICE_OK;
    kept = slc_option_keep(kept);
    return kept ? slc_training_option_set(o, name, kept) : slc_error(SLUICE_ERR_MEMORY, "--%s", name);
}

sluice_status slc_training_saved_run(const char *folder, slc_training_options *o, json_t **beside)
{
    static const char *const names[] = {"precision",   "wire", "layer-precision", "optimizer",
                                        "freeze-step", "tied", "dropout",         "drop-path"};
    json_t *document = NULL;
    o->resume = folder;
    sluice_status status = read_extra(o, NULL, &document);
    const json_t *saved = json_object_get(document, "settings");
    if (!status && !json_object_get(saved, "shape"))
        status = slc_error(SLUICE_ERR_FORMAT, "%s: it was saved by an earlier version, which kept no shape", folder);
    if (!status) status = take_model(o, saved);
    for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) status = take_option(o, saved, names[i]);
    if (!status) status = slc_training_option_set(o, "strategy", "dp");
    if (!status) status = slc_training_option_set(o, "schedule", "serial");
    *beside = status ? NULL : json_incref(json_object_get(document, "beside"));
    json_decref(document);
    return status;
}

/* The freeze's default comes from --steps, which may have changed. */
sluice_status slc_training_resume_freeze(slc_training_options *o)
{
    json_t *document = NULL;
    if (!o->resume || !slc_training_is_compressed(o->optimizer) || o->freeze_step || o->freeze_change > 0)
        return SLUICE_OK;
    sluice_status status = read_extra(o, "--resume", &document);
    json_t *saved = json_object_get(document, "settings");
    json_int_t step = json_integer_value(json_object_get(saved, "freeze-step"));
    double change = json_number_value(json_object_get(saved, "freeze-change"));
    if (step > 0) o->freeze_step = (uint64_t)step;
    if (change > 0 && change < 1) o->freeze_change = change;
    json_decref(document);
    return status;
}

/* Compares the position that lies next to the weights with the updates that the weights have had: skipped steps are in
 * `steps` and are no updates, and each step takes at least one sequence. */
static sluice_status check_position(const slc_training_identity *run, uint64_t updates,
                                    const slc_training_position *position)
{
    if (position->steps >= updates && position->sequences >= position->steps) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_FORMAT,
        "--resume %s: its weights have had %llu updates, but it says that the run made %llu steps with %llu "
        "sequences; it is damaged",
        run->options->resume, (unsigned long long)updates, (unsigned long long)position->steps,
        (unsigned long long)position->sequences);
}

/* Makes the error of reading the same on all ranks, each of which has read by itself. A rank that cannot read what
 * others can is named, and then nothing is said to be damaged. */
static sluice_status agree_on_reading(const slc_training_identity *run, sluice_status mine)
{
    double blind[2] = {mine ? 1 : 0, mine ? sluice_world_rank(run->world) : 0};
    char why[SLC_ERROR_BYTES];
    snprintf(why, sizeof why, "%s", sluice_last_error());
    sluice_status status = sluice_world_all_reduce(run->world, blind, 2);
    if (status || blind[0] == 0) return status;
    if (blind[0] == sluice_world_size(run->world) || mine == SLUICE_ERR_FORMAT) return slc_error(mine, "%s", why);
    if (mine)
        return slc_error(SLUICE_ERR_MISMATCH,
                         "rank %d does not see what other ranks do: %s; checkpoints must be on a file system that all "
                         "ranks share",
                         sluice_world_rank(run->world), why);
    if (blind[0] == 1)
        return slc_error(SLUICE_ERR_MISMATCH, "--resume %s: rank %.0f cannot read it", run->options->resume, blind[1]);
    return slc_error(SLUICE_ERR_MISMATCH, "--resume %s: %.0f ranks cannot read it", run->options->resume, blind[0]);
}

sluice_status slc_training_resume(const slc_training_identity *run, sluice_runtime *rt, slc_training_position *out)
{
    void *extra = NULL;
    size_t bytes = 0;
    *out = (slc_training_position){0};
    /* The position is compared before the weights are loaded, because the name of another model says more to the user
     * than a parameter of another size. */
    sluice_status status = slc_error_context(sluice_checkpoint_extra(run->options->resume, &extra, &bytes), "--resume");
    status = agree_on_reading(run, status);
    if (!status) status = read_position(run, extra, bytes, out);
    free(extra);
    if (!status) status = slc_error_context(sluice_checkpoint_load(rt, run->options->resume, NULL, NULL), "--resume");
    if (!status) status = check_position(run, sluice_runtime_step(rt), out);
    return slc_training_name_earlier(status, run->options->resume);
}

sluice_status slc_training_save_begin(const slc_training_identity *run, sluice_runtime *rt,
                                      const slc_training_position *position)
{
    json_t *document = json_pack("{s:i, s:I, s:I, s:I, s:o, s:O*}", "version", EXTRA_VERSION, "steps",
                                 (json_int_t)position->steps, "sequences", (json_int_t)position->sequences, "tokens",
                                 (json_int_t)position->tokens, "settings", settings_of(run), "beside", run->beside);
    char *text = document ? json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(document);
    if (!text) return slc_error(SLUICE_ERR_MEMORY, "what a checkpoint keeps beside the weights");
    sluice_status status = sluice_checkpoint_begin(rt, run->options->save, text, strlen(text));
    free(text);
    return status;
}

/* ---- Before the first step ---- */

static sluice_status check_folder(const slc_training_options *o, sluice_runtime *rt)
{
    bool found = false;
    uint64_t latest = 0, step = sluice_runtime_step(rt);
    if (mkdir(o->save, 0777) && errno != EEXIST)
        return slc_error(slc_path_status(errno), "--save: cannot make the folder %s: %s", o->save, strerror(errno));
    if (access(o->save, W_OK | X_OK))
        return slc_error(slc_path_status(errno), "--save: cannot write to %s: %s", o->save, strerror(errno));
    sluice_status status = sluice_checkpoint_lock(rt, o->save);
    if (!status) status = sluice_checkpoint_latest(o->save, &found, &latest);
    if (status) return slc_error_context(status, "--save");
    if (found && (!o->resume || latest > step))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--save %s: it holds checkpoints of another run, up to step %llu; go on from them with "
                         "--resume %s, or give another folder",
                         o->save, (unsigned long long)latest, slc_shell_word_of(o->save).text);
    return SLUICE_OK;
}

/* Makes a file in the folder. Its name is "" if that fails. */
static sluice_status make_shared_file(const slc_training_options *o, char name[PATH_MAX])
{
    if (snprintf(name, PATH_MAX, "%s/.shared-XXXXXX", o->save) >= PATH_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "--save: its name is too long");
    int file = mkstemp(name);
    if (file < 0) {
        name[0] = 0;
        return slc_error(slc_path_status(errno), "--save: cannot write to %s: %s", o->save, strerror(errno));
    }
    close(file);
    return SLUICE_OK;
}

/* Checks that all ranks see rank 0's file, and so the same folder, because each rank writes its own part there. */
static sluice_status find_shared_file(const slc_training_identity *run, const char *name)
{
    bool seen = access(name, F_OK) == 0;
    double blind = seen ? 0 : 1;
    sluice_status status = sluice_world_all_reduce(run->world, &blind, 1);
    if (status || blind == 0) return status;
    if (!seen)
        return slc_error(SLUICE_ERR_IO,
                         "--save %s: rank %d does not see what rank 0 has written there; give a folder on a file "
                         "system that all ranks share",
                         run->options->save, sluice_world_rank(run->world));
    return slc_error(SLUICE_ERR_IO, "--save %s: %.0f of the ranks do not share this folder with rank 0",
                     run->options->save, blind);
}

sluice_status slc_training_save_check(const slc_training_identity *run, sluice_runtime *rt)
{
    char name[PATH_MAX] = "";
    const bool first = sluice_world_rank(run->world) == 0;
    sluice_status status = first ? check_folder(run->options, rt) : SLUICE_OK;
    if (!status && first) status = make_shared_file(run->options, name);
    status = sluice_world_share(run->world, status, name, sizeof name, 0);
    if (!status) status = find_shared_file(run, name);
    if (first && name[0]) unlink(name);
    return status;
}
