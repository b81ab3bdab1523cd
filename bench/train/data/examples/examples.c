/* Records as examples, one a sequence. A micro-batch is as long as its longest example, in multiples of --pad-to, and
 * what is padded is neither seen nor asked for. examples_test.c covers this file. */
#include "bench/cli/path_hints.h"
#include "bench/train/data/class_names.h"
#include "bench/train/data/data_parts.h"
#include "bench/train/data/examples/example.h"
#include "bench/train/data/examples/example_order.h"
#include "bench/train/options/options.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/integer.h"
#include "lib/base/numbers/permutation.h"
#include "lib/base/status.h"
#include "lib/data/tokenizer_files/tokenizer_files.h"
#include "lib/weights/family.h"

#include <stdlib.h>
#include <string.h>

enum { STREAM_HELD_OUT = 0x68656c64, TENTH = 10, LENGTHS_MOST = 32, LENGTH_GRAIN = 8 };

typedef struct {
    slc_training_data base;
    slc_records *records, *evaluation; /* evaluation: --eval-data; NULL: every tenth record is held out */
    slc_tokenizer *tokenizer;          /* NULL: bytes */
    slc_example_kind kind;
    slc_chat_template template;
    slc_classes classes;
    bool labelled, masks, skips;
    uint64_t train, held_out; /* examples */
    uint32_t step;            /* lengths of micro-batches are multiples of it */

    slc_example_order order;
    slc_example_group group;
    slc_group_member *members, *room; /* of the group; sorted once `has_group` */
    double usual_targets;             /* of a sequence of the group; 0: not counted yet */
    bool has_group;

    slc_example example;
    int32_t *tokens, *types, *targets; /* a batch */
    uint8_t *mask;
    uint32_t *lengths; /* of the examples of a batch; 0: there is none */
} example_data;

static void close_examples(slc_training_data *base)
{
    example_data *d = (example_data *)base;
    slc_records_close(d->records);
    slc_records_close(d->evaluation);
    slc_tokenizer_close(d->tokenizer);
    slc_classes_free(&d->classes);
    slc_example_free(&d->example);
    free(d->members);
    free(d->room);
    free(d->tokens);
    free(d->types);
    free(d->targets);
    free(d->mask);
    free(d->lengths);
}

static sluice_status hash_examples(const slc_training_data *base, uint64_t *hash)
{
    const example_data *d = (const example_data *)base;
    uint64_t other;
    sluice_status status = slc_records_content(d->records, hash);
    if (!status && d->evaluation) status = slc_records_content(d->evaluation, &other);
    if (!status && d->evaluation) *hash = slc_fnv(*hash, &other, sizeof other);
    return status;
}

/* ---- Which records ---- */

/* Returns the record of an example of the training part: nine of ten records, unless other data are held out. */
static uint64_t record_to_train(const example_data *d, uint64_t example)
{
    return d->evaluation ? example : example / (TENTH - 1) * TENTH + example % (TENTH - 1);
}

/* Held-out records come in one drawn order, so that the first of them are of all kinds. */
static uint64_t record_held_out(const example_data *d, uint64_t number)
{
    const uint64_t example = slc_permutation_place(0, STREAM_HELD_OUT, d->held_out, number);
    return d->evaluation ? example : example * TENTH + TENTH - 1;
}

/* ---- The group of a sequence ---- */

/* An example that is left out gives its place to the next one of its group that is not. */
static sluice_status replace_long(const example_data *d, uint64_t count)
{
    slc_group_member *members = d->members;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t other = 1;
        if (!members[i].replaced) continue;
        while (other < count && members[(i + other) % count].replaced) other++;
        if (other == count)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "--too-long skip: all of %llu examples in a row are longer than --context %u; give a "
                             "longer context, or --too-long cut",
                             (unsigned long long)count, d->base.length);
        const slc_group_member *from = &members[(i + other) % count];
        members[i].example = from->example;
        members[i].length = from->length;
        members[i].targets = from->targets;
    }
    return SLUICE_OK;
}

static sluice_status need_group(example_data *d, uint64_t sequence)
{
    const slc_example_group group = slc_example_order_group(&d->order, sequence);
    sluice_status status = SLUICE_OK;
    if (d->has_group && d->group.number == group.number) return SLUICE_OK;
    d->has_group = false;
    for (uint64_t i = 0; !status && i < group.count; i++) {
        const uint64_t example = slc_example_order_drawn(&d->order, &group, i);
        status = slc_example_make(&d->kind, d->records, record_to_train(d, example), &d->example);
        d->members[i] = (slc_group_member){.example = example,
                                           .length = (uint32_t)d->example.tokens.count,
                                           .targets = d->example.targets,
                                           .drawn = (uint32_t)i,
                                           .replaced = d->skips && d->example.cut};
    }
    if (!status) status = replace_long(d, group.count);
    if (status) return status;
    slc_example_order_sort(&d->order, &group, d->members, d->room);
    d->usual_targets = 0;
    d->group = group;
    d->has_group = true;
    return SLUICE_OK;
}

static const slc_group_member *member_of(const example_data *d, uint64_t sequence)
{
    return &d->members[sequence - d->group.first];
}

/* ---- Targets ---- */

static uint32_t framed(const example_data *d)
{
    return d->kind.words.framed;
}

static slc_token_mask mask_of(const example_data *d, bool held_out, uint32_t length)
{
    return (slc_token_mask){.seed = d->base.seed,
                            .held_out = held_out,
                            .length = length > 2 * framed(d) ? length - 2 * framed(d) : 0,
                            .stride = d->base.length,
                            .vocabulary = d->kind.words.vocabulary,
                            .mask_token = d->kind.words.special.mask};
}

/* Counts the targets of a sequence. A group that cannot be read has none here, and the error comes when its examples
 * are taken. */
static uint64_t count_targets(const slc_training_data *base, uint64_t sequence)
{
    example_data *d = (example_data *)base;
    if (d->labelled) return 1;
    if (need_group(d, sequence)) return 0;
    const slc_group_member *member = member_of(d, sequence);
    if (!d->masks) return member->targets;
    const slc_token_mask mask = mask_of(d, false, member->length);
    return mask.length ? slc_mask_tokens_count(&mask, sequence) : 0;
}

static double usual_targets(const slc_training_data *base, uint64_t sequence)
{
    example_data *d = (example_data *)base;
    uint64_t sum = 0;
    if (need_group(d, sequence)) return 0;
    if (d->usual_targets > 0) return d->usual_targets;
    for (uint64_t i = 0; i < d->group.count; i++) sum += count_targets(base, d->group.first + i);
    return d->usual_targets = (double)sum / (double)d->group.count;
}

/* ---- A batch ---- */

/* Rows are written as long as --context, and moved together when the longest of them is known. */
static sluice_status put_record(example_data *d, uint32_t b, const slc_records *records, uint64_t record)
{
    const size_t at = (size_t)b * d->base.length;
    slc_example *e = &d->example;
    sluice_status status = slc_example_make(&d->kind, records, record, e);
    if (status) return status;
    const uint32_t length = (uint32_t)e->tokens.count;
    d->lengths[b] = length;
    memcpy(d->tokens + at, e->tokens.tokens, length * sizeof *d->tokens);
    for (uint32_t i = 0; !d->kind.causal && i < length; i++) d->types[at + i] = e->types[i];
    if (d->labelled) {
        d->targets[b] = e->class;
        return SLUICE_OK;
    }
    for (uint32_t i = 0; i < length; i++) {
        const bool asked = d->kind.causal && i + 1 < length && (!d->kind.template || e->trained[i + 1]);
        d->targets[at + i] = asked ? e->tokens.tokens[i + 1] : -1;
    }
    return SLUICE_OK;
}

static void leave_empty(example_data *d, uint32_t b)
{
    d->lengths[b] = 0;
    if (d->labelled) d->targets[b] = -1;
}

static uint32_t length_of_batch(const example_data *d)
{
    uint64_t longest = 1;
    for (uint32_t b = 0; b < d->base.batch; b++) longest = slc_most(longest, d->lengths[b]);
    return (uint32_t)slc_least(slc_round_up(longest, d->step), d->base.length);
}

static void close_row(example_data *d, uint32_t b, uint32_t length)
{
    const size_t from = (size_t)b * d->base.length, to = (size_t)b * length;
    const uint32_t own = d->lengths[b];
    const int32_t padding = d->kind.words.special.padding;
    memmove(d->tokens + to, d->tokens + from, own * sizeof *d->tokens);
    memmove(d->types + to, d->types + from, own * sizeof *d->types);
    if (!d->labelled) memmove(d->targets + to, d->targets + from, own * sizeof *d->targets);
    memset(d->mask + to, 1, own ? own : length); /* something must be seen */
    memset(d->mask + to + (own ? own : length), 0, own ? length - own : 0);
    for (uint32_t i = own; i < length; i++) {
        d->tokens[to + i] = padding < 0 ? 0 : padding;
        d->types[to + i] = 0;
        if (!d->labelled) d->targets[to + i] = -1;
    }
}

static void mask_row(example_data *d, uint32_t b, bool held_out, uint64_t sequence, uint32_t length)
{
    const slc_token_mask mask = mask_of(d, held_out, d->lengths[b]);
    const size_t at = (size_t)b * length + framed(d);
    if (mask.length) slc_mask_tokens(&mask, sequence, d->tokens + at, d->targets + at);
}

static void close_batch(example_data *d, bool held_out, uint64_t first, sluice_batch *out)
{
    const uint32_t length = length_of_batch(d);
    for (uint32_t b = 0; b < d->base.batch; b++) close_row(d, b, length);
    for (uint32_t b = 0; d->masks && !d->labelled && b < d->base.batch; b++)
        mask_row(d, b, held_out, first + b, length);
    *out = SLUICE_INIT(sluice_batch, .tokens = d->tokens, .targets = d->targets, .length = length);
    if (d->kind.causal) return; /* what follows a token is not seen anyway */
    out->types = d->types;
    out->attention_mask = d->mask;
}

static sluice_status take_to_train(example_data *d, uint64_t first, sluice_batch *out)
{
    slc_training_data_counts *counts = &d->base.counts;
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < d->base.batch; b++) {
        status = need_group(d, first + b);
        if (status) break;
        const slc_group_member *member = member_of(d, first + b);
        status = put_record(d, b, d->records, record_to_train(d, member->example));
        counts->cut += !status && d->example.cut;
        counts->replaced += member->replaced;
        counts->tokens += d->lengths[b];
    }
    if (status) return status;
    close_batch(d, false, first, out);
    counts->examples += d->base.batch;
    counts->places += (uint64_t)d->base.batch * out->length;
    return SLUICE_OK;
}

static sluice_status take_examples(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    example_data *d = (example_data *)base;
    sluice_status status = SLUICE_OK;
    if (!held_out) return take_to_train(d, first, out);
    for (uint32_t b = 0; !status && b < base->batch; b++) {
        leave_empty(d, b);
        if (first + b >= d->held_out) continue;
        status = put_record(d, b, d->evaluation ? d->evaluation : d->records, record_held_out(d, first + b));
        if (!status && d->skips && d->example.cut) leave_empty(d, b);
    }
    if (!status) close_batch(d, true, first, out);
    return status;
}

static sluice_status take_in_order(slc_training_data *base, uint64_t first, sluice_batch *out)
{
    example_data *d = (example_data *)base;
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < base->batch; b++) {
        leave_empty(d, b);
        if (first + b < base->facts.sequences) status = put_record(d, b, d->records, first + b);
    }
    if (!status) close_batch(d, true, first, out);
    return status;
}

static double passes_of_examples(const slc_training_data *base, uint64_t sequences)
{
    return slc_example_order_passes(&((const example_data *)base)->order, sequences);
}

/* ---- Opening ---- */

static sluice_status lacks(const slc_records *records, slc_field field, const char *what)
{
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "%s: %s, and its records have no field \"%s\"; say what it is called: --fields %s=NAME",
                     slc_records_path(records), what, slc_records_name(records, field), slc_field_name(field));
}

static sluice_status check_model(const example_data *d, const sluice_model_config *model)
{
    if (d->kind.causal || !slc_records_have(d->records, SLC_FIELD_MESSAGES)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "%s: conversations (\"%s\") are for gpt2, and %s is no such model",
                     slc_records_path(d->records), slc_records_name(d->records, SLC_FIELD_MESSAGES),
                     sluice_model_family_name((uint32_t)model->family));
}

/* Checks that the set has the fields that the model needs. */
static sluice_status check_fields(const example_data *d, const slc_records *records)
{
    const bool chats = slc_records_have(records, SLC_FIELD_MESSAGES);
    if (!chats && !slc_records_have(records, SLC_FIELD_TEXT))
        return lacks(records, SLC_FIELD_TEXT, "a model needs texts");
    if (d->labelled && !slc_records_have(records, SLC_FIELD_LABEL))
        return lacks(records, SLC_FIELD_LABEL, "--head classes learns labels");
    if (d->kind.pairs != (slc_records_have(records, SLC_FIELD_PAIR) && d->labelled) ||
        (d->kind.template != NULL) != chats)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: has other fields than --data; give records of the same fields",
                         slc_records_path(records));
    return SLUICE_OK;
}

/* Tries the first record of each odd kind, because some models have no use for records that others learn. */
static sluice_status check_oddities(example_data *d, const slc_records *records)
{
    sluice_status status = SLUICE_OK;
    for (int oddity = 0; !status && records && oddity < SLC_RECORDS_ODDITIES; oddity++) {
        const uint64_t first = slc_records_first(records, (slc_records_oddity)oddity);
        if (first != UINT64_MAX) status = slc_example_make(&d->kind, records, first, &d->example);
    }
    return status;
}

static sluice_status note_unused(example_data *d, slc_field field, const char *way)
{
    if (!slc_records_have(d->records, field)) return SLUICE_OK;
    return slc_training_data_add_note(&d->base, "--data: the field \"%s\" is not used: %s",
                                      slc_records_name(d->records, field), way);
}

static sluice_status open_template(const slc_training_options *o, example_data *d)
{
    const slc_special_tokens *special = &d->kind.words.special;
    const char *path = slc_training_tokenizer(o), *name = o->chat_template, *begin = "", *end = "";
    sluice_status status = SLUICE_OK;
    if (!name && path) status = slc_chat_template_find(path, &name);
    if (status) return status;
    if (!name)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--data: records are conversations, and the tokenizer has no template for them; name one with "
                         "--chat-template, as chatml");
    if (d->tokenizer && special->begin >= 0) begin = slc_tokenizer_text(d->tokenizer, special->begin);
    if (d->tokenizer && special->end >= 0) end = slc_tokenizer_text(d->tokenizer, special->end);
    status = slc_chat_template_named(name, begin, end, &d->template);
    d->kind.template = &d->template;
    return slc_error_context(status, "--chat-template");
}

static sluice_status open_words(const slc_training_options *o, sluice_model_config *model, example_data *d)
{
    const char *path = slc_training_tokenizer(o);
    char *line = NULL;
    if (!path) return slc_training_words_of_bytes(o, model, &d->kind.words);
    sluice_status status = slc_hint_tokenizer(slc_tokenizer_open(path, &d->tokenizer), path);
    d->kind.tokenizer = d->tokenizer;
    if (!status) status = slc_tokenizer_files_compare(d->tokenizer, path, &line);
    if (!status && line) status = slc_training_data_add_note(&d->base, "%s", line);
    free(line);
    line = NULL;
    if (!status) status = slc_training_words_compare(o, d->tokenizer, model, &line);
    if (!status && line) status = slc_training_data_add_note(&d->base, "%s", line);
    free(line);
    return status ? status : slc_training_words_of(o, d->tokenizer, d->base.length, model, &d->kind.words);
}

/* Labels that are the numbers or the names of the weights' classes stay these; others are the classes of a new head. */
static sluice_status take_classes_of_weights(const slc_training_options *o, example_data *d, uint32_t classes,
                                             bool *others)
{
    char **names = NULL;
    uint32_t count = 0;
    bool known = true;
    sluice_status status = slc_class_names_read(o->weights, &names, &count);
    if (status || !names) return status;
    slc_classes of_weights;
    status = slc_classes_take((const char *const *)names, count, &of_weights);
    slc_class_names_free(names, count);
    if (status) return status;
    for (uint32_t i = 0; i < d->classes.count && !d->classes.numbers; i++) {
        const slc_span label = {d->classes.names[i], strlen(d->classes.names[i])};
        known = known && slc_classes_number(&of_weights, label) >= 0;
    }
    if (!d->classes.numbers && known && count == classes) {
        slc_classes_free(&d->classes);
        d->classes = of_weights;
        return SLUICE_OK;
    }
    slc_classes_free(&of_weights);
    *others = !d->classes.numbers;
    return SLUICE_OK;
}

/* Refuses data for evaluation with labels that the training data lack: for them there is no right answer. */
static sluice_status check_evaluation(example_data *d)
{
    slc_classes own;
    sluice_status status = slc_classes_find(d->evaluation, &own);
    for (uint32_t i = 0; !status && i < own.count; i++)
        if (slc_classes_number(&d->classes, (slc_span){own.names[i], strlen(own.names[i])}) < 0)
            status = slc_error(SLUICE_ERR_ARGUMENT,
                               "--eval-data: %s has the label \"%s\", which is none of the %u classes of --data; give "
                               "records of these classes",
                               slc_records_path(d->evaluation), own.names[i], d->classes.count);
    slc_classes_free(&own);
    return status;
}

static sluice_status open_classes(const slc_training_options *o, sluice_model_config *model, example_data *d)
{
    if (!d->labelled) return SLUICE_OK;
    sluice_status status = slc_classes_find(d->records, &d->classes);
    if (status) return status;
    if (d->classes.count < 2 && !d->base.whole)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: all %llu labels are \"%s\", so there is nothing to tell apart; give records of at least "
                         "two classes",
                         slc_records_path(d->records), (unsigned long long)slc_records_count(d->records),
                         d->classes.names[0]);
    bool others = false; /* the weights have names for classes, and the labels are none of them */
    if (o->weights) status = take_classes_of_weights(o, d, model->classes, &others);
    if (status) return status;
    d->kind.classes = &d->classes;
    if (!d->base.whole) {
        model->classes = d->classes.count;
        return d->evaluation ? check_evaluation(d) : SLUICE_OK;
    }
    if ((d->classes.count == model->classes && !others) || (d->classes.numbers && d->classes.count <= model->classes))
        return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--data: records of %u classes, as \"%s\", and %s answers with %u that its config.json (id2label) "
                     "does not name so; give records with its labels",
                     d->classes.count, d->classes.names[0], o->weights, model->classes);
}

/* Returns the step between the lengths of micro-batches. There are few lengths, so that a model of many layers is made
 * quickly. */
static uint32_t length_step(const slc_training_options *o, uint32_t context)
{
    if (o->pad_to) return (uint32_t)slc_least(o->pad_to, context);
    return (uint32_t)slc_least(slc_round_up((context + LENGTHS_MOST - 1) / LENGTHS_MOST, LENGTH_GRAIN), context);
}

static sluice_status split_records(example_data *d)
{
    const uint64_t count = slc_records_count(d->records);
    if (d->base.whole) {
        d->base.facts.sequences = count;
        d->train = count;
        return SLUICE_OK;
    }
    d->held_out = d->evaluation ? slc_records_count(d->evaluation) : count / TENTH;
    d->train = d->evaluation ? count : count - d->held_out;
    d->base.facts.held_out = d->held_out;
    if (d->held_out) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "%s: %llu records are too few: a tenth is held out, so give at least 10, or others to evaluate on "
                     "with --eval-data",
                     slc_records_path(d->records), (unsigned long long)count);
}

static sluice_status make_room(const slc_training_options *o, const slc_training_data_watch *watch, example_data *d)
{
    const slc_training_data *base = &d->base;
    const uint64_t places = (uint64_t)base->batch * base->length, ranks = watch && watch->ranks ? watch->ranks : 1;
    d->order = (slc_example_order){.seed = o->seed,
                                   .examples = d->train,
                                   .step = ranks * o->micro_batches * o->batch,
                                   .row = ranks * o->batch,
                                   .group = o->length_groups};
    const uint64_t group = slc_least(d->order.group, slc_example_order_steps(&d->order)) * d->order.step;
    d->members = calloc(group, sizeof *d->members);
    d->room = calloc(group, sizeof *d->room);
    d->tokens = malloc(places * sizeof *d->tokens);
    d->types = calloc(places, sizeof *d->types);
    d->targets = malloc(places * sizeof *d->targets);
    d->mask = malloc(places);
    d->lengths = calloc(base->batch, sizeof *d->lengths);
    d->base.facts.bytes = places * 13 + base->batch * sizeof *d->lengths + 2 * group * sizeof *d->members;
    if (d->members && d->room && d->tokens && d->types && d->targets && d->mask && d->lengths) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MEMORY, "a batch of %u examples", base->batch);
}

/* Hashes the settings that turn records into examples: classes, template, cutting. Ranks compare the hash, and so do
 * runs that go on. */
static uint64_t hash_reading(const example_data *d)
{
    const uint32_t numbers[] = {d->labelled, d->kind.pairs, d->skips, d->evaluation != NULL};
    uint64_t hash = slc_fnv(SLC_FNV_START, numbers, sizeof numbers);
    if (d->kind.template) hash = slc_fnv(hash, d->template.end, strlen(d->template.end) + 1);
    if (d->kind.template) hash = slc_fnv(hash, &d->template.kind, sizeof d->template.kind);
    for (uint32_t i = 0; i < d->classes.count; i++)
        hash = slc_fnv(hash, d->classes.names[i], strlen(d->classes.names[i]) + 1);
    return hash | 1; /* never 0 */
}

static sluice_status add_classes(const slc_training_data *base, json_t *beside)
{
    const example_data *d = (const example_data *)base;
    if (!d->labelled || d->classes.numbers) return SLUICE_OK;
    return slc_beside_add_classes(beside, (const char *const *)d->classes.names, d->classes.count);
}

static void describe(const slc_training_options *o, example_data *d)
{
    uint64_t fingerprint = slc_records_fingerprint(d->records);
    if (d->evaluation) {
        const uint64_t other = slc_records_fingerprint(d->evaluation);
        fingerprint = slc_fnv(fingerprint, &other, sizeof other);
    }
    d->base.facts.about = (slc_training_data_about){.own_path = "",
                                                    .what = "examples",
                                                    .tokenizer = d->tokenizer ? slc_training_tokenizer(o) : NULL,
                                                    .files = slc_records_files(d->records),
                                                    .train = d->train,
                                                    .held_out = d->held_out};
    d->base.facts.fingerprint = fingerprint;
    d->base.facts.tokenizer = d->kind.words.fingerprint;
    d->base.facts.reading = hash_reading(d);
    d->base.facts.length_step = d->step < d->base.length ? d->step : 0;
}

static sluice_status add_notes(example_data *d)
{
    const char *index = slc_records_note(d->records);
    sluice_status status = index ? slc_training_data_add_note(&d->base, "--data: %s", index) : SLUICE_OK;
    if (!status && !d->labelled)
        status = note_unused(d, SLC_FIELD_LABEL,
                             d->kind.causal ? "gpt2 learns texts" : "--head classes learns to answer with it");
    if (!status && !d->kind.pairs) status = note_unused(d, SLC_FIELD_PAIR, "it is for bert with --head classes");
    if (!status && d->kind.template) status = note_unused(d, SLC_FIELD_TEXT, "conversations are learned");
    return status;
}

static void begin_examples(const slc_training_options *o, const sluice_model_config *model, example_data *d)
{
    const slc_family *family = slc_family_of(model->family);
    slc_training_data *base = &d->base;
    base->content = hash_examples;
    base->take = take_examples;
    base->take_in_order = take_in_order;
    base->targets = count_targets;
    base->passes = passes_of_examples;
    base->beside = add_classes;
    d->labelled = model->head == SLUICE_HEAD_CLASSES;
    if (!d->labelled && o->length_groups > 1) base->usual_targets = usual_targets;
    d->masks = family->masks;
    d->skips = !strcmp(o->too_long, "skip");
    d->kind.causal = family->causal;
    d->kind.context = base->length;
    d->kind.pairs = d->labelled && slc_records_have(d->records, SLC_FIELD_PAIR);
    d->step = length_step(o, base->length);
}

sluice_status slc_training_examples_open(const slc_training_options *o, const slc_training_data_watch *watch,
                                         sluice_model_config *model, slc_training_data *base)
{
    example_data *d = (example_data *)base;
    begin_examples(o, model, d);
    sluice_status status = check_model(d, model);
    if (!status) status = open_words(o, model, d);
    if (!status && slc_records_have(d->records, SLC_FIELD_MESSAGES)) status = open_template(o, d);
    if (!status) status = check_fields(d, d->records);
    if (!status && d->evaluation) status = slc_error_context(check_fields(d, d->evaluation), "--eval-data");
    if (!status) status = split_records(d);
    if (!status) status = open_classes(o, model, d);
    if (!status) status = check_oddities(d, d->records);
    if (!status) status = slc_error_context(check_oddities(d, d->evaluation), "--eval-data");
    if (!status) status = make_room(o, watch, d);
    if (!status) describe(o, d);
    return status ? status : add_notes(d);
}

slc_training_data *slc_training_examples_create(slc_records *records, slc_records *evaluation)
{
    example_data *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->base.is_examples = true;
    d->base.close = close_examples;
    d->records = records;
    d->evaluation = evaluation;
    return &d->base;
}
