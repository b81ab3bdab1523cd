/* Examples of records: what the model sees of each, that a pass has each of them once however a step is split, that
 * counts are those of the batches, and what is cut, left out and held out. */
#include "tests/support/base/folder.h"

#include "bench/train/data/data.h"
#include "bench/train/options/options.h"
#include "lib/base/numbers/random.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RECORDS = 100, HELD_OUT = 10, CONTEXT = 24, BATCH = 2, STEP = 4 };
#define BPE SLUICE_GOLDEN_DIR "/tokenizer_bpe"
#define WORDPIECE SLUICE_GOLDEN_DIR "/tokenizer_wordpiece"

/* The path lasts for sixteen more calls. */
static const char *put(const char *name, const char *text)
{
    static char paths[16][PATH_MAX];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, PATH_MAX, "%s", write_file(name, text, strlen(text)));
    return path;
}

/* Record i begins with its number, and is 6 to 30 letters long. */
static const char *write_records(const char *name)
{
    static char text[RECORDS * 80];
    char *at = text;
    for (uint64_t i = 0; i < RECORDS; i++) {
        char letters[40];
        const int count = (int)slc_random_below(1, 1, i, 25);
        memset(letters, 'x', sizeof letters);
        at += sprintf(at, "{\"text\": \"%05" PRIu64 " %.*s\", \"label\": \"%s\"}\n", i, count, letters,
                      i % 3 ? "good" : "bad");
    }
    return put(name, text);
}

typedef struct {
    const char *family, *path, *tokenizer, *evaluation, *head;
    const char *set[4][2]; /* other options */
    uint64_t ranks;
    bool whole;
} wanted;

static slc_training_data *open_wanted(const wanted *w, sluice_model_config *model, sluice_status expected,
                                      const char *why)
{
    slc_training_options o;
    slc_training_data *data = NULL;
    const slc_training_data_watch watch = {.ranks = w->ranks};
    slc_training_options_init(&o);
    o.batch = BATCH;
    o.context = CONTEXT;
    o.micro_batches = 1;
    o.pad_to = STEP;
    works(slc_training_option_set(&o, "data", w->path));
    if (w->tokenizer) works(slc_training_option_set(&o, "tokenizer", w->tokenizer));
    if (w->evaluation) works(slc_training_option_set(&o, "eval-data", w->evaluation));
    for (size_t i = 0; i < sizeof w->set / sizeof *w->set && w->set[i][0]; i++)
        works(slc_training_option_set(&o, w->set[i][0], w->set[i][1]));
    *model = SLUICE_INIT(sluice_model_config);
    works(sluice_model_config_named(w->family, "nano", model));
    if (w->head) model->head = SLUICE_HEAD_CLASSES;
    const sluice_status status = w->whole ? slc_training_data_open_whole(&o, model, CONTEXT, 0, &watch, &data)
                                          : slc_training_data_open(&o, model, CONTEXT, &watch, &data);
    if (expected)
        fails(status, expected, why);
    else
        works(status);
    return data;
}

static slc_training_data *open_data(const wanted *w, sluice_model_config *model)
{
    return open_wanted(w, model, SLUICE_OK, NULL);
}

static void refused(const wanted *w, sluice_status expected, const char *why)
{
    sluice_model_config model;
    open_wanted(w, &model, expected, why);
}

/* ---- Numbers and order ---- */

static uint32_t number_of(const int32_t *tokens)
{
    uint32_t number = 0;
    for (int i = 0; i < 5; i++) number = 10 * number + (uint32_t)(tokens[i] - '0');
    return number;
}

static uint32_t length_of(uint32_t number)
{
    const uint32_t length = 6 + (uint32_t)slc_random_below(1, 1, number, 25);
    return length < CONTEXT ? length : CONTEXT;
}

static void rows_are_the_records(const sluice_batch *batch, uint32_t *numbers)
{
    uint32_t longest = 0;
    assert_int_equal(batch->length % STEP, 0);
    assert_true(batch->length <= CONTEXT);
    for (uint32_t b = 0; b < BATCH; b++) {
        const int32_t *tokens = batch->tokens + b * batch->length, *targets = batch->targets + b * batch->length;
        numbers[b] = number_of(tokens);
        assert_true(numbers[b] < RECORDS);
        const uint32_t length = length_of(numbers[b]);
        longest = length > longest ? length : longest;
        for (uint32_t i = 5; i < batch->length; i++) assert_int_equal(tokens[i], i >= length ? 0 : i == 5 ? ' ' : 'x');
        for (uint32_t i = 0; i < batch->length; i++) assert_int_equal(targets[i], i + 1 < length ? tokens[i + 1] : -1);
    }
    assert_true(batch->length < longest + STEP);
}

static void a_pass_has_each_record_once(void **state)
{
    (void)state;
    const char *path = write_records("all.jsonl");
    uint32_t order[3][RECORDS];
    uint64_t taken = 0;
    static const struct {
        uint64_t ranks;
        const char *micro_batches;
    } splits[] = {{4, "1"}, {2, "2"}, {1, "4"}};
    for (size_t k = 0; k < 3; k++) {
        const wanted w = {.family = "gpt2",
                          .path = path,
                          .ranks = splits[k].ranks,
                          .set = {{"sequences", "documents"}, {"micro-batches", splits[k].micro_batches}}};
        sluice_model_config model;
        slc_training_data *data = open_data(&w, &model);
        assert_int_equal(slc_training_data_get_facts(data)->held_out, HELD_OUT);
        assert_int_equal(slc_training_data_get_facts(data)->about.train, RECORDS - HELD_OUT);
        assert_int_equal(slc_training_data_get_facts(data)->length_step, STEP);
        taken = (RECORDS - HELD_OUT) / (4 * BATCH) * (4 * BATCH);
        bool seen[RECORDS] = {false};
        const double usual = slc_training_data_usual_targets(data, 0); /* all steps of the pass are one group */
        uint64_t all = 0;
        for (uint64_t first = 0; first < taken; first += BATCH) {
            sluice_batch batch;
            uint64_t targets = 0;
            const uint64_t counted = slc_training_data_targets(data, first);
            works(slc_training_data_take(data, SLC_DATA_TRAIN, first, &batch));
            rows_are_the_records(&batch, &order[k][first]);
            for (uint64_t i = 0; i < BATCH * (uint64_t)batch.length; i++) targets += batch.targets[i] >= 0;
            assert_int_equal(targets, counted);
            assert_true(slc_training_data_usual_targets(data, first) == usual);
            all += targets;
            for (uint32_t b = 0; b < BATCH; b++) {
                assert_false(seen[order[k][first + b]]);
                assert_true(order[k][first + b] % 10 != 9); /* every tenth is held out */
                seen[order[k][first + b]] = true;
            }
        }
        assert_true(fabs(usual * (double)taken / BATCH - (double)all) < 1e-6 * (double)all);
        assert_true(slc_training_data_passes(data, taken) == 1);
        const slc_training_data_counts counts = slc_training_data_get_counts(data);
        assert_int_equal(counts.examples, taken);
        assert_true(counts.cut > 0 && counts.replaced == 0);
        assert_true(counts.tokens < counts.places);
        slc_training_data_close(data);
    }
    /* However many micro-batches a step has, its examples are in the pass; which step has them is another matter. */
    assert_memory_not_equal(order[0], order[1], taken * sizeof **order);
}

static void held_out_records_come_once(void **state)
{
    (void)state;
    const char *path = write_records("some.jsonl");
    const char *other = put("other.jsonl", "{\"text\": \"00001 \"}\n{\"text\": \"00002 \"}\n{\"text\": \"00003 \"}\n");
    for (int given = 0; given < 2; given++) {
        const wanted w = {
            .family = "gpt2", .path = path, .evaluation = given ? other : NULL, .set = {{"sequences", "documents"}}};
        const uint64_t count = given ? 3 : HELD_OUT;
        bool seen[RECORDS] = {false};
        sluice_model_config model;
        slc_training_data *data = open_data(&w, &model);
        assert_int_equal(slc_training_data_get_facts(data)->held_out, count);
        assert_int_equal(slc_training_data_get_facts(data)->about.train, given ? RECORDS : RECORDS - HELD_OUT);
        for (uint64_t first = 0; first < count + BATCH; first += BATCH) {
            sluice_batch batch;
            works(slc_training_data_take(data, SLC_DATA_HELD_OUT, first, &batch));
            for (uint32_t b = 0; b < BATCH; b++) {
                const uint64_t row = b * (uint64_t)batch.length;
                if (first + b >= count) {
                    for (uint32_t i = 0; i < batch.length; i++) assert_int_equal(batch.targets[row + i], -1);
                    continue;
                }
                const uint32_t number = number_of(batch.tokens + row);
                assert_true(given ? number < 4 : number % 10 == 9);
                assert_false(seen[number]);
                seen[number] = true;
            }
        }
        slc_training_data_close(data);
    }
}

static void long_records_can_be_left_out(void **state)
{
    (void)state;
    const wanted w = {.family = "gpt2",
                      .path = write_records("long.jsonl"),
                      .set = {{"sequences", "documents"}, {"too-long", "skip"}}};
    sluice_model_config model;
    slc_training_data *data = open_data(&w, &model);
    for (uint64_t first = 0; first < 200; first += BATCH) {
        sluice_batch batch;
        works(slc_training_data_take(data, SLC_DATA_TRAIN, first, &batch));
        for (uint32_t b = 0; b < BATCH; b++) {
            const uint32_t number = number_of(batch.tokens + b * batch.length);
            assert_true(6 + slc_random_below(1, 1, number, 25) <= CONTEXT);
        }
    }
    const slc_training_data_counts counts = slc_training_data_get_counts(data);
    assert_true(counts.cut == 0 && counts.replaced > 0);
    slc_training_data_close(data);
}

/* ---- What a model sees ---- */

static void pairs_have_types_and_classes(void **state)
{
    (void)state;
    /* Letters are tokens of their own in this vocabulary: a has some number, and so has b. */
    const wanted w = {
        .family = "bert",
        .head = "classes",
        .tokenizer = WORDPIECE,
        .path = put("pairs.jsonl", "{\"text\": \"a\", \"text_pair\": \"b b\", \"label\": \"no\"}\n"
                                   "{\"text\": \"b\", \"text_pair\": \"a\", \"label\": \"yes\"}\n"),
        .evaluation = put("pairs_eval.jsonl", "{\"text\": \"a\", \"text_pair\": \"b\", \"label\": \"yes\"}\n"),
    };
    sluice_model_config model;
    sluice_batch batch;
    slc_training_data *data = open_data(&w, &model);
    assert_int_equal(model.classes, 2);
    works(slc_training_data_take(data, SLC_DATA_TRAIN, 0, &batch));
    assert_int_equal(slc_training_data_targets(data, 0), BATCH);
    assert_int_equal(batch.length, 8);
    for (uint32_t b = 0; b < BATCH; b++) {
        const int32_t *tokens = batch.tokens + b * batch.length, *types = batch.types + b * batch.length;
        const uint8_t *mask = batch.attention_mask + b * batch.length;
        const bool yes = batch.targets[b] == 1;
        const int32_t a = yes ? tokens[3] : tokens[1], other = yes ? tokens[1] : tokens[3];
        const int32_t one[8] = {2, a, 3, other, other, 3, 0, 0}, two[8] = {2, other, 3, a, 3, 0, 0, 0};
        const int32_t one_types[8] = {0, 0, 0, 1, 1, 1, 0, 0}, two_types[8] = {0, 0, 0, 1, 1, 0, 0, 0};
        const uint8_t one_mask[8] = {1, 1, 1, 1, 1, 1, 0, 0}, two_mask[8] = {1, 1, 1, 1, 1, 0, 0, 0};
        assert_true(a > 4 && other > 4 && a != other);
        assert_memory_equal(tokens, yes ? two : one, sizeof one);
        assert_memory_equal(types, yes ? two_types : one_types, sizeof one_types);
        assert_memory_equal(mask, yes ? two_mask : one_mask, sizeof one_mask);
    }
    assert_int_equal(batch.targets[0] + batch.targets[1], 1);
    works(slc_training_data_take(data, SLC_DATA_HELD_OUT, 0, &batch));
    assert_int_equal(batch.targets[0], 1);
    assert_int_equal(batch.targets[1], -1);
    slc_training_data_close(data);
}

static void texts_end_with_the_end_token(void **state)
{
    (void)state;
    const wanted w = {.family = "gpt2",
                      .tokenizer = BPE,
                      .path = put("ends.jsonl", "{\"text\": \"a\"}\n{\"text\": \"bb\"}\n"),
                      .evaluation = put("ends_eval.jsonl", "{\"text\": \"c\"}\n"),
                      .set = {{"sequences", "documents"}}};
    sluice_model_config model;
    sluice_batch batch;
    slc_training_data *data = open_data(&w, &model);
    assert_int_equal(model.vocabulary, 703);
    works(slc_training_data_take(data, SLC_DATA_HELD_OUT, 0, &batch));
    assert_int_equal(batch.tokens[1], 0);
    assert_int_equal(batch.targets[0], 0);
    assert_int_equal(batch.targets[1], -1);
    assert_null(batch.attention_mask);
    slc_training_data_close(data);
}

static void masks_lie_inside_the_frame(void **state)
{
    (void)state;
    const wanted w = {.family = "bert",
                      .path = write_records("masked.jsonl"),
                      .tokenizer = WORDPIECE,
                      .set = {{"sequences", "documents"}}};
    sluice_model_config model;
    slc_training_data *data = open_data(&w, &model);
    for (uint64_t first = 0; first < 60; first += BATCH) {
        sluice_batch batch;
        uint64_t targets = 0;
        const uint64_t counted = slc_training_data_targets(data, first);
        works(slc_training_data_take(data, SLC_DATA_TRAIN, first, &batch));
        for (uint32_t b = 0; b < BATCH; b++) {
            const int32_t *row = batch.tokens + b * batch.length;
            uint32_t length = 0;
            while (length < batch.length && batch.attention_mask[b * batch.length + length]) length++;
            assert_int_equal(row[0], 2);
            assert_int_equal(row[length - 1], 3);
            for (uint32_t i = 0; i < batch.length; i++) {
                const bool asked = batch.targets[b * batch.length + i] >= 0;
                assert_true(!asked || (i > 0 && i + 1 < length));
                targets += asked;
            }
        }
        assert_int_equal(targets, counted);
    }
    slc_training_data_close(data);
}

static void only_the_assistant_is_learned(void **state)
{
    (void)state;
    const wanted w = {
        .family = "gpt2",
        .path = put("chat.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", "
                                  "\"content\": \"A\"}]}\n{\"messages\": [{\"role\": \"user\", \"content\": \"r\"}, "
                                  "{\"role\": \"assistant\", \"content\": \"BC\"}]}\n"),
        .evaluation = put("chat_eval.jsonl", "{\"messages\": [{\"role\": \"assistant\", \"content\": \"D\"}]}\n"),
        .set = {{"chat-template", "chatml"}},
    };
    sluice_model_config model;
    sluice_batch batch;
    slc_training_data *data = open_data(&w, &model);
    works(slc_training_data_take(data, SLC_DATA_HELD_OUT, 0, &batch));
    char text[CONTEXT + 1] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < batch.length; i++)
        if (batch.targets[i] >= 0) text[used++] = (char)batch.targets[i];
    /* "<|im_start|>assistant\n" are 22 bytes, so that of "D<|im_end|>" two are left of 24. */
    assert_string_equal(text, "D<");
    slc_training_data_close(data);
}

static void windows_join_records(void **state)
{
    (void)state;
    const wanted w = {.family = "gpt2", .path = write_records("joined.jsonl")};
    sluice_model_config model;
    sluice_batch batch;
    slc_training_data *data = open_data(&w, &model);
    works(slc_training_data_take(data, SLC_DATA_TRAIN, 0, &batch));
    assert_int_equal(batch.length, 0);
    assert_int_equal(slc_training_data_get_facts(data)->length_step, 0);
    bool ends = false;
    for (uint64_t i = 0; i < BATCH * (uint64_t)CONTEXT; i++) {
        const int32_t token = batch.tokens[i];
        ends |= token == '\n';
        assert_true((token >= '0' && token <= '9') || token == ' ' || token == 'x' || token == '\n');
    }
    assert_true(ends);
    slc_training_data_close(data);
}

/* ---- Mistakes ---- */

static void what_a_model_cannot_learn_is_refused(void **state)
{
    (void)state;
    const char *texts = put("texts.jsonl", "{\"text\": \"a\"}\n"), *plain = put("plain.txt", "words\n");
    const char *chat = put("talk.jsonl", "{\"messages\": [{\"role\": \"assistant\", \"content\": \"A\"}]}\n");
    const char *one = write_records("one.jsonl");
    const char *same = put("same.jsonl", "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\", \"label\": 1}\n");
    refused(&(wanted){.family = "bert", .head = "classes", .path = texts}, SLUICE_ERR_ARGUMENT, "--fields label=NAME");
    refused(&(wanted){.family = "gpt2", .path = texts, .set = {{"sequences", "documents"}}}, SLUICE_ERR_ARGUMENT,
            "too few");
    refused(&(wanted){.family = "gpt2", .path = plain, .set = {{"sequences", "documents"}}}, SLUICE_ERR_ARGUMENT,
            "which has no examples");
    refused(&(wanted){.family = "bert", .path = chat}, SLUICE_ERR_ARGUMENT, "are for gpt2");
    refused(&(wanted){.family = "gpt2", .path = chat}, SLUICE_ERR_ARGUMENT, "--chat-template");
    refused(&(wanted){.family = "bert", .head = "classes", .path = one, .set = {{"sequences", "windows"}}},
            SLUICE_ERR_ARGUMENT, "no label");
    refused(&(wanted){.family = "bert", .head = "classes", .path = same, .evaluation = same}, SLUICE_ERR_ARGUMENT,
            "nothing to tell apart");
    refused(&(wanted){.family = "gpt2", .path = one, .evaluation = plain}, SLUICE_ERR_ARGUMENT, "both of one kind");
    refused(&(wanted){.family = "gpt2", .path = one, .set = {{"fields", "text=body"}}}, SLUICE_ERR_ARGUMENT,
            "has no field \"body\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_has_each_record_once),          cmocka_unit_test(held_out_records_come_once),
        cmocka_unit_test(long_records_can_be_left_out),         cmocka_unit_test(pairs_have_types_and_classes),
        cmocka_unit_test(texts_end_with_the_end_token),         cmocka_unit_test(masks_lie_inside_the_frame),
        cmocka_unit_test(only_the_assistant_is_learned),        cmocka_unit_test(windows_join_records),
        cmocka_unit_test(what_a_model_cannot_learn_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
