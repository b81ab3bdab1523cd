/* The values of the training options, found by walking the table: names are checked, ranks compared, checkpoints and
 * reports told, and the runtime's and the world's configuration filled. bench/train/train_run_test.c covers this file.
 */
#include "bench/train/options/options.h"

#include "bench/cli/device_transport.h"
#include "bench/cli/output/provenance.h"
#include "bench/train/options/lr_schedule.h"
#include "bench/train/options/onebit_options.h"
#include "bench/train/options/optimizer_options.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/base/text/parse_quantity.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const slc_training_options *options, const slc_option *row)
{
    const char *text;
    memcpy(&text, (const char *)options + row->field, sizeof text);
    return text;
}

/* ---- Checking ---- */

sluice_status slc_training_names_check(const slc_training_options *o)
{
    for (const slc_option *row = slc_training_rows(); row->name; row++) {
        const char *value = row->choices ? text_of(o, row) : NULL;
        if (!value || !strcmp(value, row->fallback) || slc_option_place(row->choices, value) >= 0) continue;
        if (slc_option_place(row->later, value) >= 0)
            return slc_error(SLUICE_ERR_UNSUPPORTED, "--%s %s: not built in this version; use %s", row->name, value,
                             row->choices);
        const char *hub = strcmp(row->name, "model")
                              ? ""
                              : "; weights of Hugging Face's hub are fetched by hf download, and their folder is given "
                                "with --weights";
        return slc_error(SLUICE_ERR_ARGUMENT, "--%s %s: unknown; use %s%s", row->name, value, row->choices, hub);
    }
    return SLUICE_OK;
}

/* ---- Between ranks ---- */

static uint64_t digest(const slc_training_options *o, const slc_option *row)
{
    if (row->flags & SLC_OWN) return 0;
    if (row->type != SLC_OPTION_TEXT) return slc_fnv(SLC_FNV_START, (const char *)o + row->field, 8);
    const char *text = text_of(o, row) ? text_of(o, row) : "";
    return slc_fnv(SLC_FNV_START, text, strlen(text));
}

sluice_status slc_training_options_compare(const slc_training_options *o, sluice_world *world)
{
    const slc_option *rows = slc_training_rows();
    uint64_t mine[SLC_TRAINING_OPTIONS_MAX] = {0}, ranks = (uint64_t)sluice_world_size(world),
             (*all)[SLC_TRAINING_OPTIONS_MAX] = malloc(ranks * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "options of %llu ranks", (unsigned long long)ranks);
    for (int i = 0; rows[i].name; i++) mine[i] = digest(o, &rows[i]);
    sluice_status status = sluice_world_all_gather(world, mine, sizeof mine, all);
    for (uint64_t r = 1; !status && r < ranks; r++)
        for (int i = 0; !status && rows[i].name; i++)
            if (all[r][i] != all[0][i])
                status =
                    slc_error(SLUICE_ERR_MISMATCH, "rank %llu has another --%s than rank 0; give all ranks the same",
                              (unsigned long long)r, rows[i].name);
    free(all);
    return status;
}

/* ---- As JSON ---- */

/* Names of files that are no UTF-8 have question marks. */
static json_t *paths_json(const char *const *list, uint64_t count)
{
    json_t *paths = json_array();
    bool whole = paths;
    for (uint64_t i = 0; whole && i < count; i++) whole = !json_array_append_new(paths, slc_plain_text_json(list[i]));
    if (whole) return paths;
    json_decref(paths);
    return NULL;
}

/* `plain`: a text that is no UTF-8 is written with question marks; otherwise NULL is returned for it. */
static json_t *value_json(const slc_training_options *o, const slc_option *row, bool plain)
{
    const char *field = (const char *)o + row->field;
    double real;
    uint64_t count;
    if (row->type == SLC_OPTION_SET)
        return row->field == offsetof(slc_training_options, eval_data) ? paths_json(o->eval_data, o->eval_data_count)
                                                                       : paths_json(o->data, o->data_count);
    const char *text = row->type == SLC_OPTION_TEXT ? text_of(o, row) : NULL;
    if (text) return plain ? slc_plain_text_json(text) : json_string(text);
    if (row->type == SLC_OPTION_TEXT) return json_null();
    memcpy(&real, field, sizeof real);
    memcpy(&count, field, sizeof count);
    if (row->type == SLC_OPTION_REAL) return json_real(real);
    return row->type == SLC_OPTION_FLAG ? json_boolean(count) : json_integer((json_int_t)count);
}

/* Returns true if the setting has a value: the optimizer has it, or the options give it. While the options name no
 * optimizer, it is also true for a setting that the default lacks; *open becomes true, and the value is null. */
static bool has_value(const slc_training_options *o, const slc_option *row, bool *open)
{
    *open = false;
    const size_t first = offsetof(slc_training_options, optimizer_settings);
    if (row->field < first || row->field >= first + sizeof o->optimizer_settings) return true;
    const size_t i = (row->field - first) / sizeof *o->optimizer_settings;
    const char *name = slc_training_optimizer_setting(i)->name;
    if (slc_optimizer_option(slc_training_optimizer_row(o), name) || slc_training_optimizer_is_given(o, i)) return true;
    *open = !*o->optimizer;
    return *open;
}

int slc_training_options_json(const slc_training_options *o, unsigned uses, json_t *settings)
{
    int failed = 0;
    slc_training_options filled = *o;
    slc_training_optimizer_fill(&filled);
    filled.lr_horizon = slc_lr_schedule_horizon(o);
    for (const slc_option *row = slc_training_rows(); !failed && row->name; row++) {
        char key[32];
        bool open;
        if (!(row->flags & uses) || !has_value(o, row, &open)) continue;
        snprintf(key, sizeof key, "%s", row->name);
        for (char *dash; uses & SLC_REPORTED && (dash = strchr(key, '-'));) *dash = '_';
        failed = json_object_set_new(settings, key, open ? json_null() : value_json(&filled, row, uses & SLC_REPORTED));
    }
    return failed;
}

json_t *slc_training_options_given_json(const slc_training_options *o)
{
    const slc_option *rows = slc_training_rows();
    json_t *given = json_object();
    for (int i = 0; given && rows[i].name; i++) {
        const char *name = rows[i].name;
        const bool of_files = !strcmp(name, "config") || !strcmp(name, "recipe") || !strcmp(name, "overwrite");
        if (!o->typed[i] || of_files) continue;
        json_object_set_new(given, name,
                            rows[i].type == SLC_OPTION_FLAG ? json_true() : value_json(o, &rows[i], false));
    }
    return given;
}

/* ---- Configurations ---- */

static void copy_to_config(const slc_training_options *o, sluice_config *config)
{
    for (const slc_option *row = slc_training_rows(); row->name; row++) {
        const char *from = (const char *)o + row->field;
        char *to = (char *)config + row->config;
        uint64_t count;
        if (!row->config) continue;
        memcpy(&count, from, sizeof count);
        if (row->flags & SLC_ENUMERATOR)
            memcpy(to, &(int){slc_option_place(row->choices, text_of(o, row))}, sizeof(int));
        else if (row->type == SLC_OPTION_COUNT)
            memcpy(to, &(uint32_t){(uint32_t)count}, sizeof(uint32_t));
        else /* TEXT, REAL */
            memcpy(to, from, sizeof count);
    }
}

sluice_status slc_training_config(const slc_training_options *o, sluice_config *config)
{
    sluice_config_init(config);
    copy_to_config(o, config);
    config->updates = o->updates;
    config->steps = o->steps;
    config->measure_norm = o->log != NULL;
    config->pipeline = (uint32_t)slc_training_stages(o);
    slc_training_optimizer_config(o, config);
    slc_training_onebit(o, &config->onebit);
    sluice_status status = SLUICE_OK;
    if (strcmp(o->block, "auto")) status = slc_parse_bytes(o->block, &config->block_bytes);
    if (status) return slc_error_context(status, "--block");
    if (*o->budget) status = slc_parse_budget(o->budget, &config->budget_bytes, &config->budget_of_dp);
    return slc_error_context(status, "--budget");
}

sluice_status slc_training_world(const slc_training_options *o, sluice_world_config *config)
{
    sluice_status status = sluice_world_config_init(config);
    if (status) return status;
    if (*o->throttle) config->throttle = o->throttle;
    if (o->timeout_s > 0) config->timeout_s = o->timeout_s;
    slc_choose_transport(o->device, config);
    if (o->ranks && (int)o->ranks != config->size)
        return slc_error(SLUICE_ERR_MISMATCH, "-n %llu, but the launcher started %d ranks",
                         (unsigned long long)o->ranks, config->size);
    return SLUICE_OK;
}
