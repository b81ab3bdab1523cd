/* Hints for a path that could not be used come from names and first bytes alone, and are looked for only after a
 * failure. */
#include "bench/cli/path_hints.h"

#include "lib/base/status.h"
#include "lib/base/text/shell_word.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_MAX && !access(path, F_OK);
}

static bool begins_with(const char *path, const char *text)
{
    char head[64] = "";
    struct stat facts;
    if (stat(path, &facts) || !S_ISREG(facts.st_mode)) return false; /* a pipe would be waited for */
    FILE *file = fopen(path, "re");
    const size_t count = file ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file) fclose(file);
    return count >= strlen(text) && !memcmp(head, text, strlen(text));
}

static bool is_pointer(const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s%s%s", folder, *name ? "/" : "", name) >= PATH_MAX) return false;
    return begins_with(path, "version https://git-lfs.github.com/spec/");
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), end = strlen(ending);
    return length > end && !strcmp(text + length - end, ending);
}

bool slc_is_name_of_hub(const char *path)
{
    const char *slash = strchr(path, '/');
    return *path != '/' && *path != '.' && *path != '~' && (!slash || (!strchr(slash + 1, '/') && slash[1]));
}

static sluice_status say_hub(sluice_status status, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return slc_error(status,
                     "cannot read %s: No such file or directory; if that is a model of Hugging Face's hub, fetch it "
                     "first: hf download %s "
                     "--local-dir %s, then give the folder %s/",
                     path, slc_shell_word_of(path).text, slc_shell_word_of(name).text, name);
}

static sluice_status say_pointer(sluice_status status, const char *path)
{
    return slc_error(
        status,
        "%s: holds pointers of Git LFS instead of the files; fetch these in its folder: git lfs install && "
        "git lfs pull",
        path);
}

/* ---- Weights ---- */

static sluice_status hint_file(sluice_status status, const char *path)
{
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) : 1;
    const char *from = slash ? path : ".";
    if (is_pointer(path, "")) return say_pointer(status, path);
    if (ends_with(path, ".safetensors"))
        return slc_error(status, "%s: is one file of a model; give its folder, %.*s, with a config.json in it", path,
                         folder, from);
    if (ends_with(path, ".gguf") || begins_with(path, "GGUF"))
        return slc_error(status,
                         "%s: is a GGUF file, whose weights are not those that are trained; give the folder of "
                         "the model that it was made of",
                         path);
    if (begins_with(path, "PK\x03\x04") || begins_with(path, "\x80\x02"))
        return slc_error(status,
                         "%s: is a file of PyTorch; make safetensors of its folder: python3 -c 'import transformers; "
                         "transformers.AutoModel.from_pretrained(\"%.*s\").save_pretrained(\"NEW\")'",
                         path, folder, from);
    return status;
}

/* True for a folder of checkpoints, and for a checkpoint itself. */
static bool is_checkpoint(const char *path)
{
    DIR *folder = opendir(path);
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder)) != NULL;)
        found = !strncmp(entry->d_name, "step-", 5);
    if (folder) closedir(folder);
    return found || has(path, "manifest.json");
}

static sluice_status hint_folder(sluice_status status, const char *path)
{
    const bool tensors = has(path, "model.safetensors") || has(path, "model.safetensors.index.json");
    if (is_pointer(path, "model.safetensors") || is_pointer(path, "config.json")) return say_pointer(status, path);
    if (is_checkpoint(path) && !has(path, "config.json"))
        return slc_error(
            status,
            "%s: is a checkpoint of sluice train (--save), which holds an optimizer's state too; write its "
            "weights with: sluice weights %s -o NEW, and give NEW; or go on from it with --resume %s",
            path, slc_shell_word_of(path).text, slc_shell_word_of(path).text);
    if (has(path, "adapter_config.json") && !tensors)
        return slc_error(status,
                         "%s: is an adapter (LoRA) without the model that it belongs to; merge both first: PEFT's "
                         "merge_and_unload(), then save_pretrained()",
                         path);
    if (tensors) return status;
    const char *other = has(path, "pytorch_model.bin") || has(path, "pytorch_model.bin.index.json") ? "PyTorch"
                        : has(path, "tf_model.h5")                                                  ? "TensorFlow"
                        : has(path, "flax_model.msgpack")                                           ? "Flax"
                                                                                                    : NULL;
    if (!other) return status;
    return slc_error(status,
                     "%s: its weights are %s's; make safetensors of them: python3 -c 'import transformers; "
                     "transformers.AutoModel.from_pretrained(\"%s\"%s).save_pretrained(\"NEW\")'",
                     path, other, path,
                     !strcmp(other, "TensorFlow") ? ", from_tf=True"
                     : !strcmp(other, "Flax")     ? ", from_flax=True"
                                                  : "");
}

sluice_status slc_hint_weights(sluice_status status, const char *path)
{
    struct stat info;
    if (!status || !path) return status;
    if (stat(path, &info)) return slc_is_name_of_hub(path) ? say_hub(status, path) : status;
    return S_ISDIR(info.st_mode) ? hint_folder(status, path) : hint_file(status, path);
}

/* ---- Tokenizers ---- */

sluice_status slc_hint_tokenizer(sluice_status status, const char *path)
{
    struct stat info;
    char folder[PATH_MAX];
    if (!status || !path) return status;
    if (stat(path, &info))
        return slc_is_name_of_hub(path) && !ends_with(path, ".json") ? say_hub(status, path) : status;
    if (is_pointer(path, S_ISDIR(info.st_mode) ? "tokenizer.json" : "")) return say_pointer(status, path);
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s",
             S_ISDIR(info.st_mode) ? PATH_MAX - 1
             : slash               ? (int)(slash - path)
                                   : 1,
             S_ISDIR(info.st_mode) || slash ? path : ".");
    const char *name = slash ? slash + 1 : path;
    const bool wrong_file = !S_ISDIR(info.st_mode) && strcmp(name, "tokenizer.json") != 0;
    if (wrong_file && has(folder, "tokenizer.json"))
        return slc_error(status, "%s: is no tokenizer.json; there is one beside it: give %s", path, folder);
    if (has(folder, "tokenizer.json")) return status;
    const char *other = has(folder, "vocab.json") && has(folder, "merges.txt")          ? "vocab.json and merges.txt"
                        : has(folder, "vocab.txt")                                      ? "vocab.txt"
                        : has(folder, "spiece.model") || has(folder, "tokenizer.model") ? "a model of SentencePiece"
                                                                                        : NULL;
    if (!other) return status;
    return slc_error(status,
                     "%s: has %s and no tokenizer.json; make one: python3 -c 'import transformers; "
                     "transformers.AutoTokenizer.from_pretrained(\"%s\").save_pretrained(\"%s\")'",
                     folder, other, folder, folder);
}

/* ---- Checkpoints ---- */

sluice_status slc_hint_checkpoint(sluice_status status, const char *path)
{
    if (!status || !path || is_checkpoint(path)) return status;
    if (has(path, "config.json"))
        return slc_error(status,
                         "%s: holds weights and no checkpoint of sluice train (--save); begin with them: "
                         "--weights %s",
                         path, slc_shell_word_of(path).text);
    return status;
}
