/* Paths that users of other programs give by habit get an error that says what to do; any other path keeps the error
 * that it had. */
#include "tests/support/base/folder.h"

#include "bench/cli/path_hints.h"
#include "lib/base/status.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ROOM = PATH_MAX };

/* An empty folder of this name, with files in it; their contents are of no interest. */
static const char *folder_of(const char *name, const char *const *files)
{
    static char path[ROOM];
    snprintf(path, sizeof path, "%s", path_of(name));
    mkdir(path, 0777);
    for (; *files; files++) {
        char file[512];
        snprintf(file, sizeof file, "%s/%s", name, *files);
        write_file(file, "x", 1);
    }
    return path;
}
#define FOLDER(name, ...) folder_of(name, (const char *const[]){__VA_ARGS__, NULL})

typedef sluice_status (*hint)(sluice_status status, const char *path);

static void says(hint given, const char *path, const char *why)
{
    fails(given(slc_error(SLUICE_ERR_PATH, "as it was"), path), SLUICE_ERR_PATH, why);
    assert_int_equal(given(SLUICE_OK, path), SLUICE_OK);
}

static void weights_are_known(void **state)
{
    (void)state;
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
    says(slc_hint_weights, "gpt2", "hf download gpt2 --local-dir gpt2");
    says(slc_hint_weights, "openai-community/gpt2", "hf download openai-community/gpt2 --local-dir gpt2");
    says(slc_hint_weights, "/nowhere/gpt2", "as it was");
    says(slc_hint_weights, "./gpt2", "as it was");
    says(slc_hint_weights, write_file("model.safetensors", "12345678{}", 10), "give its folder");
    says(slc_hint_weights, write_file("pytorch_model.bin", "PK\x03\x04", 4), "save_pretrained");
    says(slc_hint_weights, write_file("old.bin", "\x80\x02", 2), "save_pretrained");
    says(slc_hint_weights, write_file("model.gguf", "GGUF", 4), "GGUF");
    says(slc_hint_weights, write_file("pointer.safetensors", pointer, sizeof pointer - 1), "git lfs pull");
    says(slc_hint_weights, FOLDER("torch", "config.json", "pytorch_model.bin"), "its weights are PyTorch's");
    says(slc_hint_weights, FOLDER("tf", "config.json", "tf_model.h5"), "from_tf=True");
    says(slc_hint_weights, FOLDER("flax", "config.json", "flax_model.msgpack"), "from_flax=True");
    says(slc_hint_weights, FOLDER("lora", "adapter_config.json", "adapter_model.safetensors"), "merge_and_unload");
    says(slc_hint_weights, FOLDER("saved", "step-000012"), "checkpoint of sluice train");
    says(slc_hint_weights, FOLDER("whole", "config.json", "model.safetensors"), "as it was");
    const char *lfs = FOLDER("lfs", "config.json");
    write_file("lfs/model.safetensors", pointer, sizeof pointer - 1);
    says(slc_hint_weights, lfs, "git lfs pull");
}

static void tokenizers_are_known(void **state)
{
    (void)state;
    says(slc_hint_tokenizer, "gpt2", "hf download gpt2");
    says(slc_hint_tokenizer, "missing.json", "as it was");
    says(slc_hint_tokenizer, FOLDER("bpe", "vocab.json", "merges.txt"),
         "vocab.json and merges.txt and no tokenizer.json");
    char file[ROOM];
    snprintf(file, sizeof file, "%s/bpe/vocab.json", test_folder());
    says(slc_hint_tokenizer, file, "vocab.json and merges.txt");
    says(slc_hint_tokenizer, FOLDER("wordpiece", "vocab.txt"), "vocab.txt and no tokenizer.json");
    says(slc_hint_tokenizer, FOLDER("pieces", "tokenizer.model"), "SentencePiece");
    says(slc_hint_tokenizer, FOLDER("good", "tokenizer.json", "vocab.json"), "as it was");
    snprintf(file, sizeof file, "%s/good/vocab.json", test_folder());
    says(slc_hint_tokenizer, file, "there is one beside it");
    says(slc_hint_tokenizer, FOLDER("none", "readme"), "as it was");
}

static void checkpoints_are_known(void **state)
{
    (void)state;
    says(slc_hint_checkpoint, FOLDER("weights", "config.json", "model.safetensors"), "begin with them: --weights ");
    says(slc_hint_checkpoint, FOLDER("run", "step-000012", "config.json"), "as it was");
    says(slc_hint_checkpoint, "/nowhere", "as it was");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_known),
        cmocka_unit_test(tokenizers_are_known),
        cmocka_unit_test(checkpoints_are_known),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
