/* Checkpoints that transformers wrote (tests/golden/make_golden.py): configs, tensors, inputs and gradients must be
 * read completely, and be the same after they are written and read again. */
#include "tests/support/base/folder.h"

#include "lib/weights/checkpoint.h"
#include "lib/weights/safetensors/safetensors.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const struct {
    const char *folder;
    sluice_model_head head;
    size_t tensors;
    const char *tensor; /* name of one of them */
    uint32_t rank;
    uint64_t shape[4];
} golden[] = {
    {"gpt2", SLUICE_HEAD_TOKENS, 28, "transformer.h.1.attn.c_attn.weight", 2, {24, 72}},
    {"bert_masked", SLUICE_HEAD_TOKENS, 42, "cls.predictions.bias", 1, {29}},
    {"bert_classifier", SLUICE_HEAD_CLASSES, 41, "bert.pooler.dense.weight", 2, {24, 24}},
    {"vit", SLUICE_HEAD_CLASSES, 40, "vit.embeddings.patch_embeddings.projection.weight", 4, {24, 3, 4, 4}},
    {"beit",
     SLUICE_HEAD_CLASSES,
     43,
     "beit.encoder.layer.1.attention.attention.relative_position_bias.relative_position_bias_table",
     2,
     {28, 3}},
    {"beit_masked", SLUICE_HEAD_TOKENS, 42, "beit.embeddings.mask_token", 3, {1, 1, 24}},
    {"beit_masked_shared",
     SLUICE_HEAD_TOKENS,
     44,
     "beit.encoder.relative_position_bias.relative_position_bias_table",
     2,
     {28, 3}},
    {"bert_before_masked",
     SLUICE_HEAD_TOKENS,
     44,
     "roberta_prelayernorm.embeddings.position_embeddings.weight",
     2,
     {17, 24}},
    {"bert_before_classifier", SLUICE_HEAD_CLASSES, 43, "classifier.out_proj.weight", 2, {5, 24}},
};
enum { FOLDERS = sizeof golden / sizeof *golden };

static const char *golden_path(size_t which, const char *file)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%s", SLUICE_GOLDEN_DIR, golden[which].folder, file);
    return path;
}

static float *read_floats(const slc_tensors *tensors, const slc_tensor *tensor)
{
    float *values = malloc(tensor->elements * sizeof *values + 1);
    works(slc_tensors_read_float(tensors, tensor, 0, tensor->elements, values));
    return values;
}

static void checkpoints_of_transformers_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < FOLDERS; i++) {
        slc_config config;
        slc_tensors *tensors;
        works(slc_checkpoint_open(golden_path(i, ""), &config, &tensors));
        assert_int_equal(config.head, golden[i].head);
        assert_int_equal(config.channels, 24);
        assert_int_equal(config.layers, 2);
        assert_int_equal(config.heads, 3);
        assert_int_equal(config.inner, config.family == SLUICE_GPT2 ? 96 : 40);
        assert_true(config.dropout == 0 && config.attention_dropout == 0 && config.drop_path_rate == 0);
        assert_int_equal(slc_tensors_count(tensors), golden[i].tensors);
        for (size_t t = 0; t < golden[i].tensors; t++)
            works(slc_tensors_check_finite(tensors, slc_tensors_at(tensors, t), NULL));
        const slc_tensor *tensor = slc_tensors_find(tensors, golden[i].tensor);
        assert_non_null(tensor);
        assert_int_equal(tensor->rank, golden[i].rank);
        assert_memory_equal(tensor->shape, golden[i].shape, golden[i].rank * sizeof *tensor->shape);
        slc_tensors_close(tensors);
    }
}

/* Every parameter must have a gradient of its own shape, and every model a loss and inputs. */
static void goldens_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < FOLDERS; i++) {
        slc_tensors *weights, *inputs, *expected;
        works(slc_safetensors_open(golden_path(i, "model.safetensors"), &weights));
        works(slc_safetensors_open(golden_path(i, "inputs.safetensors"), &inputs));
        works(slc_safetensors_open(golden_path(i, "expected.safetensors"), &expected));
        assert_int_equal(slc_tensors_count(expected), slc_tensors_count(weights) + 2);
        for (size_t t = 0; t < slc_tensors_count(weights); t++) {
            const slc_tensor *weight = slc_tensors_at(weights, t);
            char name[256];
            snprintf(name, sizeof name, "grad.%s", weight->name);
            const slc_tensor *gradient = slc_tensors_find(expected, name);
            assert_non_null(gradient);
            assert_int_equal(gradient->rank, weight->rank);
            assert_memory_equal(gradient->shape, weight->shape, weight->rank * sizeof *weight->shape);
            works(slc_tensors_check_finite(expected, gradient, NULL));
        }
        float loss;
        works(slc_tensors_read_float(expected, slc_tensors_find(expected, "loss"), 0, 1, &loss));
        assert_true(isfinite(loss) && loss > 0);
        const slc_tensor *labels = slc_tensors_find(inputs, "labels");
        int32_t values[64];
        assert_non_null(labels);
        assert_true(labels->elements <= 64);
        works(slc_tensors_read_int32(inputs, labels, 0, labels->elements, values));
        const slc_tensor *masked = slc_tensors_find(inputs, "bool_masked_pos");
        if (masked) {
            uint8_t bits[18], count = 0;
            works(slc_tensors_read_bytes(inputs, masked, 0, 18, bits));
            for (int b = 0; b < 18; b++) count += bits[b];
            assert_int_equal(count, labels->elements);
        }
        slc_tensors_close(weights);
        slc_tensors_close(inputs);
        slc_tensors_close(expected);
    }
}

static void copy_tensors(const slc_tensors *from, const char *path)
{
    slc_safetensors_writer *writer;
    works(slc_safetensors_create(path, &writer));
    for (uint32_t t = 0, index; t < slc_tensors_count(from); t++) {
        const slc_tensor *tensor = slc_tensors_at(from, t);
        works(slc_safetensors_declare(writer, tensor->name, tensor->dtype, tensor->rank, tensor->shape, &index));
        assert_int_equal(index, t);
    }
    for (uint32_t t = 0; t < slc_tensors_count(from); t++) {
        float *values = read_floats(from, slc_tensors_at(from, t));
        works(slc_safetensors_write_float(writer, t, slc_tensors_at(from, t)->elements, values));
        free(values);
    }
    works(slc_safetensors_commit(writer));
    slc_safetensors_destroy(writer);
}

static void copies_are_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < FOLDERS; i++) {
        slc_tensors *from, *copy;
        works(slc_safetensors_open(golden_path(i, "model.safetensors"), &from));
        copy_tensors(from, path_of("copy.safetensors"));
        works(slc_safetensors_open(path_of("copy.safetensors"), &copy));
        assert_int_equal(slc_tensors_count(copy), slc_tensors_count(from));
        for (size_t t = 0; t < slc_tensors_count(from); t++) {
            const slc_tensor *tensor = slc_tensors_at(from, t), *other = slc_tensors_find(copy, tensor->name);
            float *values = read_floats(from, tensor), *others = read_floats(copy, other);
            assert_int_equal(other->elements, tensor->elements);
            assert_memory_equal(values, others, tensor->elements * sizeof *values);
            free(values);
            free(others);
        }
        slc_tensors_close(from);
        slc_tensors_close(copy);
    }
}

/* ---- Python's safetensors and transformers must read the files that are written here ---- */

static const char script[] =
    "import os, sys\n"
    "try:\n"
    "    import torch, transformers\n"
    "    from safetensors import safe_open\n"
    "    from safetensors.torch import load_file\n"
    "except ImportError:\n"
    "    sys.exit(77)\n"
    "root, golden, *names = sys.argv[1:]\n"
    "for name in names:\n"
    "    folders = os.path.join(root, name), os.path.join(golden, name)\n"
    "    a, b = (load_file(os.path.join(folder, 'model.safetensors')) for folder in folders)\n"
    "    assert a.keys() == b.keys()\n"
    "    for tensor in a:\n"
    "        assert a[tensor].dtype == b[tensor].dtype and torch.equal(a[tensor], b[tensor]), (name, tensor)\n"
    "    with safe_open(os.path.join(folders[0], 'model.safetensors'), 'pt') as file:\n"
    "        assert file.metadata() == {'format': 'pt'}, file.metadata()\n"
    "    kind = transformers.AutoConfig.from_pretrained(folders[0]).architectures[0]\n"
    "    inputs, logits = load_file(os.path.join(folders[1], 'inputs.safetensors')), []\n"
    "    for folder in folders:\n"
    "        model, info = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)\n"
    "        assert not info['missing_keys'] and not info['unexpected_keys'] and not info['mismatched_keys'], info\n"
    "        logits.append(model.eval()(**inputs).logits)\n"
    "    assert torch.equal(*logits), name\n";

static void copy_checkpoint(size_t which)
{
    slc_config config;
    slc_tensors *tensors;
    char path[PATH_MAX];
    assert_int_equal(mkdir(path_of(golden[which].folder), 0700), 0);
    works(slc_checkpoint_open(golden_path(which, ""), &config, &tensors));
    works(slc_config_write(path_of(golden[which].folder), &config));
    snprintf(path, sizeof path, "%s/%s/model.safetensors", test_folder(), golden[which].folder);
    copy_tensors(tensors, path);
    slc_tensors_close(tensors);
}

static void fail_with_end_of(const char *path)
{
    char text[4096] = {0};
    FILE *output = fopen(path, "r");
    assert_non_null(output);
    if (fseek(output, -(long)sizeof text + 1, SEEK_END)) rewind(output);
    size_t used = fread(text, 1, sizeof text - 1, output);
    fclose(output);
    fail_msg("%.*s", (int)used, text);
}

static void transformers_reads_what_is_written(void **state)
{
    (void)state;
    const char *python = getenv("PYTHON");
    char command[4 * PATH_MAX], names[256] = "";
    write_file("check.py", script, strlen(script));
    for (size_t i = 0; i < FOLDERS; i++) {
        copy_checkpoint(i);
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s", golden[i].folder);
    }
    snprintf(command, sizeof command, "HF_HUB_OFFLINE=1 %s %s %s %s %s >%s 2>&1", python ? python : "python3",
             path_of("check.py"), test_folder(), SLUICE_GOLDEN_DIR, names, path_of("output"));
    int code = system(command);
    if (WIFEXITED(code) && (WEXITSTATUS(code) == 77 || WEXITSTATUS(code) == 127)) {
        print_message("SKIP: transformers is not installed for %s; PYTHON names another Python\n",
                      python ? python : "python3");
        skip();
    }
    if (code) fail_with_end_of(path_of("output"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_of_transformers_are_read),
        cmocka_unit_test(goldens_are_whole),
        cmocka_unit_test(copies_are_the_same),
        cmocka_unit_test(transformers_reads_what_is_written),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
