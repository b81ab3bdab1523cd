/* Windows that are cut or folded hold what the whole window holds, each sequence in its frame, with as many targets as
 * are counted; evaluations and what comes after are whole again. */
#include "bench/train/options/options.h"
#include "lib/base/integer.h"
#include "tests/support/base/folder.h"

#include "bench/train/data/data.h"

enum { BATCH = 3, LENGTH = 33, MOST = BATCH * LENGTH, WORDS = 26, FIRST_WORD = 5, CLASS = 2, SEPARATOR = 3, MASK = 4 };

static const char *write_text(const char *name)
{
    enum { LETTERS = 6000 };
    char text[2 * LETTERS];
    for (int i = 0; i < LETTERS; i++) {
        text[2 * i] = (char)('a' + (i * 7 + i / 13) % WORDS);
        text[2 * i + 1] = ' ';
    }
    return write_file(name, text, sizeof text);
}

/* Every letter is a word. */
static const char *write_tokenizer(void)
{
    char text[2000], *at = text;
    at +=
        sprintf(at, "{\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"model\": {\"type\": "
                    "\"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\", \"vocab\": "
                    "{\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4");
    for (int i = 0; i < WORDS; i++) at += sprintf(at, ", \"%c\": %d", 'a' + i, FIRST_WORD + i);
    sprintf(at, "}}}");
    return write_file("tokenizer.json", text, strlen(text));
}

typedef struct {
    const char *family;
    sluice_model_head head;
    bool framed;
} kind;

static const kind kinds[] = {{"gpt2", SLUICE_HEAD_TOKENS, false},
                             {"bert", SLUICE_HEAD_TOKENS, false},
                             {"bert", SLUICE_HEAD_CLASSES, false},
                             {"bert", SLUICE_HEAD_TOKENS, true},
                             {"bert", SLUICE_HEAD_CLASSES, true}};

static slc_training_data *open_kind(const kind *k)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    slc_training_options options;
    slc_training_data *data = NULL;
    works(sluice_model_config_named(k->family, "nano", &model));
    model.head = k->head;
    slc_training_options_init(&options);
    options.batch = BATCH;
    works(slc_training_option_set(&options, "data", write_text("one")));
    works(slc_training_option_set(&options, "data", write_text("two")));
    if (k->framed) works(slc_training_option_set(&options, "tokenizer", write_tokenizer()));
    works(slc_training_data_open(&options, &model, LENGTH, NULL, &data));
    return data;
}

/* Holds the sequences of `batch` against those of the windows, as they were before they were masked. */
static void check_sequences(const kind *k, const sluice_batch *batch, const int32_t *whole, uint32_t length,
                            uint32_t pieces)
{
    const bool masks = !strcmp(k->family, "bert") && k->head == SLUICE_HEAD_TOKENS;
    const uint32_t inside = length - 2 * k->framed;
    for (uint32_t i = 0; i < BATCH * pieces; i++) {
        const int32_t *tokens = batch->tokens + i * length, *targets = batch->targets + i * length;
        const int32_t *text = whole + i / pieces * LENGTH + k->framed + i % pieces * inside;
        if (k->framed) assert_true(tokens[0] == CLASS && tokens[length - 1] == SEPARATOR);
        if (masks && k->framed) assert_true(targets[0] == -1 && targets[length - 1] == -1);
        for (uint32_t t = 0; t < inside; t++) {
            const int32_t token = tokens[t + k->framed];
            const int32_t target = k->head == SLUICE_HEAD_TOKENS ? targets[t + k->framed] : -1;
            assert_true(masks && target >= 0 ? target == text[t] : token == text[t]);
            if (!masks && k->head == SLUICE_HEAD_TOKENS && i % pieces * inside + t + 1 < LENGTH)
                assert_true(target == text[t + 1]);
        }
    }
}

/* The tokens of the windows without a mask. */
static void take_plain(slc_training_data *data, const kind *k, uint64_t first, int32_t whole[MOST])
{
    sluice_batch batch;
    works(slc_training_data_take(data, SLC_DATA_TRAIN, first, &batch));
    assert_true(batch.length == 0 && batch.sequences == 0);
    memcpy(whole, batch.tokens, MOST * sizeof *whole);
    if (!strcmp(k->family, "bert") && k->head == SLUICE_HEAD_TOKENS)
        for (uint32_t i = 0; i < MOST; i++) whole[i] = batch.targets[i] >= 0 ? batch.targets[i] : whole[i];
}

static uint64_t targets_of(const kind *k, const sluice_batch *batch)
{
    const uint64_t places = batch->sequences * (k->head == SLUICE_HEAD_CLASSES ? 1 : batch->length);
    uint64_t count = 0;
    for (uint64_t i = 0; i < places; i++) count += batch->targets[i] >= 0;
    return count;
}

static void sequences_hold_their_window(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {3, 8, 16, 32};
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
        const kind *k = &kinds[n];
        slc_training_data *data = open_kind(k);
        assert_int_equal(slc_training_data_least_length(data), k->framed ? 3 : 1);
        for (uint64_t first = 0; first < 5 * BATCH; first += BATCH)
            for (uint32_t l = 0; l < 2 * sizeof lengths / sizeof *lengths; l++) {
                const uint32_t length = lengths[l / 2], pieces = l % 2 ? LENGTH / length : 1;
                int32_t whole[MOST], held_out[MOST];
                sluice_batch batch;
                slc_training_data_set_shape(data, 0, 7);
                take_plain(data, k, first, whole);
                works(slc_training_data_take(data, SLC_DATA_HELD_OUT, first, &batch));
                memcpy(held_out, batch.tokens, sizeof held_out);
                slc_training_data_set_shape(data, length, pieces);
                works(slc_training_data_take(data, SLC_DATA_HELD_OUT, first, &batch));
                assert_true(batch.length == 0 && batch.sequences == 0);
                assert_memory_equal(batch.tokens, held_out, sizeof held_out);
                const uint64_t counted = slc_training_data_targets(data, first);
                works(slc_training_data_take(data, SLC_DATA_TRAIN, first, &batch));
                assert_true(batch.length == length && batch.sequences == (uint64_t)BATCH * pieces);
                check_sequences(k, &batch, whole, length, pieces);
                assert_int_equal(targets_of(k, &batch), counted);
            }
        slc_training_data_close(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sequences_hold_their_window)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
