/* Reads llm.c's checkpoints. Offsets are counted up in the order of the file; the length of the file must equal their
 * sum. */
#include "lib/weights/llmc.h"

#include "lib/base/status.h"
#include "lib/weights/family.h"
#include "lib/weights/tensors_parts.h"

#include <stdio.h>
#include <string.h>

enum { HEADER_WORDS = 256, VERSION_FP32 = 3, VERSION_BF16 = 5, SIZE_MAX_WORD = 1 << 24 };

typedef struct {
    const char *path;
    uint32_t padded; /* rows of wte in the file */
    slc_tensor_dtype dtype;
    uint64_t end; /* of the tensors placed so far */
} llmc_layout;

static sluice_status fault(const char *path, const char *what, int32_t value, const char *expected)
{
    return slc_error(SLUICE_ERR_FORMAT, "%s: %s %d: %s", path, what, value, expected);
}

/* ---- The header ---- */

static sluice_status read_sizes(const char *path, const int32_t *words, slc_config *config, uint32_t *padded)
{
    static const char *const names[] = {"positions", "vocabulary", "layers", "heads", "channels", "padded vocabulary"};
    uint32_t *const fields[] = {&config->positions, &config->vocabulary, &config->layers,
                                &config->heads,     &config->channels,   padded};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (words[2 + i] < 1 || words[2 + i] > SIZE_MAX_WORD)
            return fault(path, names[i], words[2 + i], "must be from 1 to 16777216");
        *fields[i] = (uint32_t)words[2 + i];
    }
    config->inner = 4 * config->channels;
    if (config->channels % config->heads) return fault(path, "heads", words[5], "do not divide the channels");
    if (*padded < config->vocabulary)
        return fault(path, "padded vocabulary", words[7], "is smaller than the vocabulary");
    return SLUICE_OK;
}

static sluice_status read_header(const slc_file *file, slc_config *config, llmc_layout *out)
{
    int32_t words[HEADER_WORDS];
    if (file->bytes < sizeof words)
        return slc_error(SLUICE_ERR_FORMAT, "%s: is too short for a checkpoint of llm.c", file->path);
    sluice_status status = slc_file_read(file, 0, sizeof words, words);
    if (status) return status;
    if (words[0] != SLC_LLMC_MAGIC) return fault(file->path, "magic", words[0], "llm.c's checkpoints have 20240326");
    if (words[1] != VERSION_FP32 && words[1] != VERSION_BF16)
        return fault(file->path, "version", words[1],
                     "3 (fp32) and 5 (bf16) are read; export it anew with train_gpt2.py");
    slc_config_defaults(SLUICE_GPT2, SLUICE_HEAD_TOKENS, config);
    *out = (llmc_layout){
        .path = file->path, .dtype = words[1] == VERSION_FP32 ? SLC_TENSOR_F32 : SLC_TENSOR_BF16, .end = sizeof words};
    return read_sizes(file->path, words, config, &out->padded);
}

/* ---- The parameters ---- */

typedef struct {
    const char *name;
    uint32_t rows, columns; /* as in the file; columns 0: a vector */
} parameter_kind;

/* Places tensors of one kind: one for each layer, or (layers 0) one for the model. */
static sluice_status place(slc_tensors *tensors, llmc_layout *layout, const parameter_kind *kind, uint32_t layers)
{
    for (uint32_t i = 0; i < (layers ? layers : 1); i++) {
        char name[64];
        if (layers)
            snprintf(name, sizeof name, "transformer.h.%u.%s", i, kind->name);
        else
            snprintf(name, sizeof name, "transformer.%s", kind->name);
        slc_tensor tensor = {.name = name, .dtype = layout->dtype, .offset = layout->end};
        tensor.rank = kind->columns ? 2 : 1;
        tensor.transposed = kind->columns && layers; /* the embeddings have the same layout here and in llm.c */
        tensor.shape[0] = tensor.transposed ? kind->columns : kind->rows;
        tensor.shape[1] = tensor.transposed ? kind->rows : kind->columns;
        uint64_t elements = (uint64_t)kind->rows * (kind->columns ? kind->columns : 1);
        layout->end += elements * slc_tensor_dtype_bytes(layout->dtype);
        sluice_status status = slc_tensors_add(tensors, &tensor);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* Returns the bytes that the file must have: for the elements of all layers, and of the parameters that exist once. 0:
 * the sizes are absurd. Each size is below 2^24, so the elements of a layer stay below 2^55. */
static uint64_t expected_bytes(const slc_config *config, const llmc_layout *layout)
{
    uint64_t c = config->channels, layer = 12 * c * c + 13 * c;
    uint64_t rest = ((uint64_t)layout->padded + config->positions + 2) * c;
    uint64_t elements;
    if (__builtin_mul_overflow(layer, (uint64_t)config->layers, &elements) || elements > INT64_MAX / 8) return 0;
    return layout->end + (elements + rest) * slc_tensor_dtype_bytes(layout->dtype);
}

static sluice_status place_all(slc_tensors *tensors, llmc_layout *layout, const slc_config *config)
{
    uint32_t c = config->channels, layers = config->layers;
    const parameter_kind embeddings[] = {{"wte.weight", config->vocabulary, c}, {"wpe.weight", config->positions, c}};
    const parameter_kind of_layers[] = {{"ln_1.weight", c, 0},
                                        {"ln_1.bias", c, 0},
                                        {"attn.c_attn.weight", 3 * c, c},
                                        {"attn.c_attn.bias", 3 * c, 0},
                                        {"attn.c_proj.weight", c, c},
                                        {"attn.c_proj.bias", c, 0},
                                        {"ln_2.weight", c, 0},
                                        {"ln_2.bias", c, 0},
                                        {"mlp.c_fc.weight", 4 * c, c},
                                        {"mlp.c_fc.bias", 4 * c, 0},
                                        {"mlp.c_proj.weight", c, 4 * c},
                                        {"mlp.c_proj.bias", c, 0}};
    const parameter_kind last[] = {{"ln_f.weight", c, 0}, {"ln_f.bias", c, 0}};
    sluice_status status = place(tensors, layout, &embeddings[0], 0);
    layout->end += (uint64_t)(layout->padded - config->vocabulary) * c * slc_tensor_dtype_bytes(layout->dtype);
    if (!status) status = place(tensors, layout, &embeddings[1], 0);
    for (size_t i = 0; i < sizeof of_layers / sizeof *of_layers && !status; i++)
        status = place(tensors, layout, &of_layers[i], layers);
    for (size_t i = 0; i < sizeof last / sizeof *last && !status; i++) status = place(tensors, layout, &last[i], 0);
    return status;
}

static sluice_status fill(slc_tensors *tensors, const char *path, slc_config *config)
{
    uint32_t index;
    llmc_layout layout = {0};
    sluice_status status = slc_tensors_add_file(tensors, path, &index);
    if (status) return status;
    const slc_file *file = &tensors->files[index];
    status = read_header(file, config, &layout);
    if (status) return status;
    /* This is checked first, so that a wrong number of layers costs no memory. */
    uint64_t expected = expected_bytes(config, &layout);
    if (file->bytes != expected)
        return slc_error(SLUICE_ERR_FORMAT, "%s: has %llu bytes; with its header it must have %llu", path,
                         (unsigned long long)file->bytes, (unsigned long long)expected);
    status = place_all(tensors, &layout, config);
    return status ? status : slc_tensors_finish(tensors);
}

sluice_status slc_llmc_open(const char *path, slc_config *config, slc_tensors **out)
{
    slc_config read;
    slc_tensors *tensors;
    sluice_status status = slc_tensors_create(&tensors);
    if (status) return status;
    status = fill(tensors, path, &read);
    if (status) {
        slc_tensors_close(tensors);
        return status;
    }
    *config = read;
    *out = tensors;
    return SLUICE_OK;
}
