/* Opens the source of micro-batches that the options name: windows of text (text_windows.c), examples of records
 * (examples.c), images (images.c). data_test.c covers the sources. */
#include "bench/train/data/data.h"

#include "bench/train/data/data_parts.h"
#include "bench/train/options/options.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"
#include "lib/weights/family.h"

#include <stdlib.h>
#include <string.h>

/* ---- What the data are ---- */

slc_data_type slc_training_data_type(const slc_training_options *o)
{
    return (slc_data_type)slc_option_place(SLC_DATA_TYPE_NAMES, o->data_type);
}

sluice_status slc_training_data_look(const slc_training_options *o, slc_data_type *out)
{
    slc_field_names names;
    slc_data_type other;
    const slc_data_type said = slc_training_data_type(o);
    slc_field_names_init(&names);
    *out = SLC_DATA_TEXT;
    sluice_status status = o->fields ? slc_field_names_read(o->fields, &names) : SLUICE_OK;
    if (status) return slc_error_context(status, "--fields");
    if (!o->data_count) return SLUICE_OK;
    status = slc_error_context(slc_dataset_type(o->data, o->data_count, said, &names, out), "--data");
    if (status || !o->eval_data_count) return status;
    status = slc_dataset_type(o->eval_data, o->eval_data_count, said, &names, &other);
    if (!status && (other == SLC_DATA_TEXT) != (*out == SLC_DATA_TEXT))
        status = slc_error(SLUICE_ERR_ARGUMENT, "%s holds %s, and --data %s; give both of one kind", o->eval_data[0],
                           other == SLC_DATA_TEXT ? "text" : "records", other == SLC_DATA_TEXT ? "records" : "text");
    return slc_error_context(status, "--eval-data");
}

/* ---- Any source ---- */

static void begin_data(const slc_training_options *o, const sluice_model_config *model, uint32_t length,
                       slc_training_data *base)
{
    base->seed = o->seed;
    base->batch = (uint32_t)o->batch;
    base->length = length;
    base->targets_each = sluice_model_targets(model, length);
    base->facts.held_out = UINT64_MAX;
}

/* Returns whether each record (a conversation, a label, a pair or a text) is a sequence of its own. Text alone is
 * joined. */
static bool takes_documents(const slc_training_options *o, const sluice_model_config *model, const slc_records *records)
{
    if (strcmp(o->sequences, "auto")) return !strcmp(o->sequences, "documents");
    return model->head == SLUICE_HEAD_CLASSES || slc_records_have(records, SLC_FIELD_MESSAGES);
}

static sluice_status open_records(const slc_training_options *o, const slc_training_data_watch *watch,
                                  slc_data_type type, const char *const *paths, uint64_t count, slc_records **out)
{
    slc_records_how how = {.form = slc_dataset_form(type), .index_folder = o->data_index};
    if (watch) {
        how.progress = watch->indexed;
        how.context = watch->context;
    }
    slc_field_names_init(&how.names);
    sluice_status status = o->fields ? slc_field_names_read(o->fields, &how.names) : SLUICE_OK;
    if (status) return slc_error_context(status, "--fields");
    return slc_records_open(paths, count, &how, out);
}

/* Opens the records of --data and of --eval-data. */
static sluice_status open_both(const slc_training_options *o, const slc_training_data_watch *watch, bool whole,
                               slc_records *records[2])
{
    const slc_data_type type = slc_training_data_type(o);
    sluice_status status = open_records(o, watch, type, o->data, o->data_count, &records[0]);
    if (status || !o->eval_data_count || whole) return status;
    return slc_error_context(open_records(o, watch, type, o->eval_data, o->eval_data_count, &records[1]),
                             "--eval-data");
}

static sluice_status create_data(const slc_training_options *o, const slc_training_data_watch *watch, bool whole,
                                 const sluice_model_config *model, slc_training_data **out)
{
    slc_data_type type;
    slc_records *records[2] = {0};
    if (slc_family_of(model->family)->sees) {
        *out = slc_training_images_create();
        return *out ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "training data");
    }
    sluice_status status = slc_training_data_look(o, &type);
    if (status) return status;
    const bool has_records = type != SLC_DATA_TEXT && type != SLC_DATA_UINT16;
    if (has_records) status = open_both(o, watch, whole, records);
    const bool documents = !status && has_records && takes_documents(o, model, records[0]);
    if (!status && !has_records && !strcmp(o->sequences, "documents"))
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "--sequences documents: --data is one text, which has no examples; give JSON lines, CSV or "
                           "TSV with a record for each");
    if (!status && has_records && !documents && model->head == SLUICE_HEAD_CLASSES)
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "--sequences windows: a window of joined records has no label; use --sequences documents");
    if (!status)
        *out = documents ? slc_training_examples_create(records[0], records[1])
                         : slc_training_text_create(type, records[0], records[1]);
    if (!status && *out) return SLUICE_OK;
    slc_records_close(records[0]);
    slc_records_close(records[1]);
    return status ? status : slc_error(SLUICE_ERR_MEMORY, "training data");
}

static sluice_status open_created(const slc_training_options *o, sluice_model_config *model,
                                  const slc_training_data_watch *watch, slc_training_data *data)
{
    if (slc_family_of(model->family)->sees) return slc_training_images_open(o, watch, model, data);
    return data->is_examples ? slc_training_examples_open(o, watch, model, data)
                             : slc_training_text_open(o, watch, model, data);
}

sluice_status slc_training_data_check(const slc_training_options *o, const sluice_model_config *model, uint32_t length,
                                      const slc_training_data_watch *watch)
{
    sluice_model_config changed = *model;
    slc_training_data *data = NULL;
    if (slc_family_of(model->family)->sees) return SLUICE_OK;
    sluice_status status = create_data(o, watch, false, model, &data);
    if (status) return status;
    begin_data(o, model, length, data);
    if (data->is_examples) status = open_created(o, &changed, watch, data);
    slc_training_data_close(data);
    return status;
}

static sluice_status open_data(const slc_training_options *o, sluice_model_config *model, uint32_t length,
                               uint32_t stride, const slc_training_data_watch *watch, slc_training_data **out)
{
    slc_training_data *data = NULL;
    if (slc_family_of(model->family)->sees && o->tokenizer)
        return slc_error(SLUICE_ERR_ARGUMENT, "--tokenizer %s: %s sees images; leave --tokenizer out", o->tokenizer,
                         sluice_model_family_name((uint32_t)model->family));
    sluice_status status = create_data(o, watch, stride > 0, model, &data);
    if (status) return status;
    begin_data(o, model, length, data);
    data->whole = stride > 0;
    data->stride = stride;
    status = open_created(o, model, watch, data);
    if (!status && !data->whole && !slc_family_of(model->family)->sees) status = slc_training_data_note_parts(data, o);
    if (status) {
        slc_training_data_close(data);
        return status;
    }
    *out = data;
    return SLUICE_OK;
}

sluice_status slc_training_data_open(const slc_training_options *o, sluice_model_config *model, uint32_t length,
                                     const slc_training_data_watch *watch, slc_training_data **out)
{
    return open_data(o, model, length, 0, watch, out);
}

sluice_status slc_training_data_open_whole(const slc_training_options *o, sluice_model_config *model, uint32_t length,
                                           uint32_t stride, const slc_training_data_watch *watch,
                                           slc_training_data **out)
{
    return open_data(o, model, length, stride ? stride : length + !length, watch, out);
}

void slc_training_data_close(slc_training_data *data)
{
    if (!data) return;
    if (data->close) data->close(data);
    for (uint32_t i = 0; i < data->note_count; i++) free(data->notes[i]);
    free(data);
}

const slc_training_data_facts *slc_training_data_get_facts(const slc_training_data *data)
{
    return &data->facts;
}

sluice_status slc_training_data_content(const slc_training_data *data, uint64_t *hash)
{
    return data->content(data, hash);
}

sluice_status slc_training_data_beside(const slc_training_data *data, json_t **out)
{
    json_t *beside = json_object();
    sluice_status status = beside ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "what lies beside weights");
    if (!status && data->beside) status = data->beside(data, beside);
    if (status) {
        json_decref(beside);
        return status;
    }
    *out = beside;
    return SLUICE_OK;
}

sluice_status slc_training_data_take(slc_training_data *data, slc_training_data_part part, uint64_t first,
                                     sluice_batch *out)
{
    return slc_path_was_good(data->take(data, part == SLC_DATA_HELD_OUT, first, out));
}

double slc_training_data_passes(const slc_training_data *data, uint64_t sequences)
{
    return data->passes(data, sequences);
}

slc_training_data_counts slc_training_data_get_counts(const slc_training_data *data)
{
    return data->counts;
}

void slc_training_data_set_shape(slc_training_data *data, uint32_t length, uint32_t pieces)
{
    if (data->set_shape) data->set_shape(data, length ? length : data->length, length ? pieces : 1);
}

uint32_t slc_training_data_least_length(const slc_training_data *data)
{
    return data->least_length;
}

uint64_t slc_training_data_targets(const slc_training_data *data, uint64_t first)
{
    uint64_t count = 0;
    if (!data->targets) return (uint64_t)data->batch * data->targets_each;
    for (uint32_t b = 0; b < data->batch; b++) count += data->targets(data, first + b);
    return count;
}

double slc_training_data_usual_targets(const slc_training_data *data, uint64_t first)
{
    return data->usual_targets ? data->batch * data->usual_targets(data, first) : 0;
}

sluice_status slc_training_data_take_in_order(slc_training_data *data, uint64_t first, sluice_batch *out)
{
    return slc_path_was_good(data->take_in_order(data, first, out));
}
