/* A folder is marked by sluice.json, which says where its weights come from.
 * tests/command/weights/saved_weights_test.sh covers this file. */
#include "bench/train/saved_weights.h"

#include "bench/cli/output/provenance.h"
#include "bench/launch/stop_signals.h"
#include "bench/train/data/beside.h"
#include "lib/base/file/json_file.h"
#include "lib/base/file/json_object.h"
#include "lib/base/file/make_folder.h"
#include "lib/base/file/path_error.h"
#include "lib/base/file/path_in.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/data/tokenizer_files/tokenizer_files.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <sluice/version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { BESIDE_BYTES = 32 << 20 }; /* a tokenizer's files, and what else goes along */
static const char mark[] = "sluice.json";
/* Keys of config.json that say what training drops, and the option that says it instead. */
static const struct {
    const char *key, *option;
} drops[] = {
    {"resid_pdrop", "dropout"},         {"embd_pdrop", "dropout"},
    {"attn_pdrop", "dropout"},          {"summary_first_dropout", "dropout"},
    {"hidden_dropout_prob", "dropout"}, {"attention_probs_dropout_prob", "dropout"},
    {"classifier_dropout", "dropout"},  {"drop_path_rate", "drop-path"},
};
enum { DROPS = sizeof drops / sizeof *drops };

static bool has(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return !slc_path_in(folder, name, path) && !access(path, F_OK);
}

/* ---- Before the first step ---- */

sluice_status slc_saved_weights_check(const slc_training_options *o)
{
    static const char *const weights[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                          "pytorch_model.bin.index.json", "config.json"};
    const char *folder = o->save_weights;
    if (!folder) return SLUICE_OK;
    sluice_status status = slc_error_context(slc_make_writable_folder(folder), "--save-weights %s", folder);
    if (status || o->overwrite || has(folder, mark)) return status;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (has(folder, weights[i]))
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "--save-weights %s: it has a %s that no run of ours has written; give another folder, or "
                             "--overwrite to replace it",
                             folder, weights[i]);
    return SLUICE_OK;
}

static sluice_status find_room(const char *folder, double *bytes)
{
    struct statvfs disk;
    if (statvfs(folder, &disk))
        return slc_error(slc_path_status(errno), "--save-weights %s: %s", folder, strerror(errno));
    *bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    return SLUICE_OK;
}

static double needed_bytes(uint64_t parameters)
{
    return 4.0 * (double)parameters + BESIDE_BYTES;
}

sluice_status slc_saved_weights_check_room(const slc_training_options *o, uint64_t parameters)
{
    double room = 0;
    const double needed = needed_bytes(parameters);
    if (!o->save_weights) return SLUICE_OK;
    sluice_status status = find_room(o->save_weights, &room);
    if (status || room >= needed) return status;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--save-weights %s: the weights take %.1f MiB, and its disk has room for %.1f MiB; make room, or "
                     "give a folder on another disk",
                     o->save_weights, needed / 0x1p20, room / 0x1p20);
}

/* ---- What goes along ---- */

/* Reads a file that may be missing: *root is NULL then. */
static sluice_status read_object(const char *folder, const char *name, json_t **root)
{
    char path[PATH_MAX];
    *root = NULL;
    sluice_status status = slc_path_in(folder, name, path);
    return status || access(path, F_OK) ? status : slc_json_object_read(path, root);
}

static sluice_status write_object(const char *folder, const char *name, const json_t *root)
{
    char path[PATH_MAX], *text = json_dumps(root, JSON_INDENT(2));
    sluice_status status = text ? slc_path_in(folder, name, path) : slc_error(SLUICE_ERR_MEMORY, "%s", name);
    if (!status) status = slc_json_file_write(path, text);
    free(text);
    return status;
}

double slc_saved_weights_drops(const slc_training_options *o, const char *option)
{
    json_t *root = NULL;
    double most = 0;
    if (!o->weights || read_object(o->weights, "config.json", &root)) return 0;
    for (int i = 0; i < DROPS; i++) {
        const double value = json_number_value(json_object_get(root, drops[i].key));
        if (!strcmp(drops[i].option, option) && value > most) most = value;
    }
    json_decref(root);
    return most;
}

/* Keeps in the saved folder the dropout that the weights' own config.json asks for. The run dropped nothing, because
 * nobody asked for it, but the folder still says what the model was made with. */
static sluice_status keep_drops(const slc_training_options *o)
{
    json_t *from = NULL, *to = NULL;
    sluice_status status = read_object(o->weights, "config.json", &from);
    if (!status) status = read_object(o->save_weights, "config.json", &to);
    bool changed = false;
    for (int i = 0; !status && from && to && i < DROPS; i++) {
        json_t *value = json_object_get(from, drops[i].key);
        if (slc_training_option_given(o, drops[i].option)) continue;
        if (!value || json_equal(value, json_object_get(to, drops[i].key))) continue;
        changed = true;
        json_object_set(to, drops[i].key, value);
    }
    if (!status && changed) status = write_object(o->save_weights, "config.json", to);
    json_decref(from);
    json_decref(to);
    return status;
}

static sluice_status copy_generation(const slc_training_options *o)
{
    static const char name[] = "generation_config.json";
    json_t *root = NULL;
    sluice_status status = read_object(o->weights, name, &root);
    if (!status && root) status = write_object(o->save_weights, name, root);
    json_decref(root);
    return status;
}

static sluice_status write_mark(const slc_training_options *o)
{
    json_t *root =
        json_pack("{s:s, s:s, s:s*}", "sluice_weights", sluice_version(), "model", o->model, "weights", o->weights);
    if (!root) return slc_error(SLUICE_ERR_MEMORY, "%s", mark);
    slc_provenance_add(root);
    sluice_status status = write_object(o->save_weights, mark, root);
    json_decref(root);
    return status;
}

static sluice_status write_words_of_data(const slc_saved_weights *s)
{
    json_t *said = NULL;
    sluice_status status = s->data ? slc_training_data_beside(s->data, &said) : SLUICE_OK;
    if (!status) status = slc_beside_write(s->data ? said : s->beside, s->options->save_weights);
    json_decref(said);
    return status;
}

static sluice_status write_beside(const slc_saved_weights *s)
{
    const slc_training_options *o = s->options;
    const char *tokenizer = slc_training_tokenizer(o);
    sluice_status status = tokenizer ? slc_tokenizer_files_save(tokenizer, o->save_weights) : SLUICE_OK;
    if (!status) status = write_words_of_data(s);
    if (!status && o->weights) status = keep_drops(o);
    if (!status && o->weights) status = copy_generation(o);
    return status ? status : write_mark(o);
}

/* ---- Writing, and waiting for room ---- */

/* Waits until there is room, or until a rank was asked to stop. *again becomes true if there is room. Every rank waits
 * and asks alike, because a rank that makes no call counts as absent. */
static sluice_status wait_for_room(const slc_saved_weights *s, int stops_before, bool *again)
{
    const uint64_t parameters = sluice_model_param_count(sluice_model_get_config(s->model));
    const bool first = sluice_world_rank(s->world) == 0;
    for (*again = false; !*again;) {
        double room = 0, said[2] = {0, 0};
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        said[0] = s->stops && slc_stop_signals_seen(s->stops) > stops_before;
        said[1] = first && !find_room(s->options->save_weights, &room) && room >= needed_bytes(parameters);
        sluice_status status = sluice_world_all_reduce(s->world, said, 2);
        if (status || said[0] > 0) return status;
        *again = said[1] > 0;
    }
    return SLUICE_OK;
}

/* The outcome of a save on all ranks. */
typedef struct {
    bool failed, full; /* a rank could not write; rank 0's disk has no room, so that waiting may help */
} save_outcome;

/* Tells all ranks how the save ended, because writing fails on rank 0 alone. */
static sluice_status agree_on_save(const slc_saved_weights *s, sluice_status mine, save_outcome *out)
{
    const uint64_t parameters = sluice_model_param_count(sluice_model_get_config(s->model));
    double room = 0, said[2] = {mine == SLUICE_ERR_IO, 0};
    if (mine == SLUICE_ERR_IO && sluice_world_rank(s->world) == 0 && !find_room(s->options->save_weights, &room))
        said[1] = room < needed_bytes(parameters);
    sluice_status status = sluice_world_all_reduce(s->world, said, 2);
    *out = (save_outcome){said[0] > 0, said[1] > 0 && s->stops};
    return status;
}

static void tell_of_waiting(const slc_saved_weights *s, const char *why)
{
    const uint64_t parameters = sluice_model_param_count(sluice_model_get_config(s->model));
    if (sluice_world_rank(s->world)) return;
    slc_log(
        SLC_LOG_WARN,
        "%s; the weights wait in memory until its disk has room for %.1f MiB, and one more signal (Ctrl-C) gives them "
        "up",
        why, needed_bytes(parameters) / 0x1p20);
}

/* Saves once. *again: the disk was full and has room now. */
static sluice_status save_once(const slc_saved_weights *s, int stops_before, bool *again)
{
    slc_kept_error kept;
    save_outcome outcome;
    *again = false;
    const sluice_status mine = slc_path_was_good(sluice_model_save(s->model, s->options->save_weights));
    if (mine && mine != SLUICE_ERR_IO) return mine;
    slc_error_keep(&kept);
    sluice_status status = agree_on_save(s, mine, &outcome);
    if (status || !outcome.failed) return status;
    if (outcome.full) {
        tell_of_waiting(s, kept.line);
        status = wait_for_room(s, stops_before, again);
        if (status || *again) return status;
    }
    if (mine) return slc_error_restore(&kept, mine);
    return slc_error(SLUICE_ERR_IO, "rank 0 could not write %s", s->options->save_weights);
}

sluice_status slc_saved_weights_write(const slc_saved_weights *s)
{
    const int stops_before = s->stops ? slc_stop_signals_seen(s->stops) : 0;
    sluice_status status = SLUICE_OK;
    for (bool again = true; !status && again;) status = save_once(s, stops_before, &again);
    if (!status && sluice_world_rank(s->world) == 0) status = write_beside(s);
    return slc_error_context(status, "--save-weights");
}
