/* llm.c's checkpoints of GPT-2 (https://github.com/karpathy/llm.c, train_gpt2.c: gpt2_build_from_checkpoint,
 * train_gpt2.py: write_model). A file has 256 int32: magic 20240326, version (3: fp32, 5: bf16), positions, vocabulary,
 * layers, heads, channels, padded vocabulary. Then comes each kind of parameter for all layers: wte (padded rows) wpe
 * ln1w ln1b qkvw qkvb attprojw attprojb ln2w ln2b fcw fcb fcprojw fcprojb lnfw lnfb, with matrices as
 * [outputs][inputs].
 *
 * Here they have GPT2LMHeadModel's names ("transformer.h.0.attn.c_attn.weight") and shapes: wte without its padding,
 * and matrices as [inputs][outputs], transposed while they are read. */
#pragma once

#include "lib/weights/config.h"
#include "lib/weights/tensors.h"

enum { SLC_LLMC_MAGIC = 20240326 };

/* Opens a checkpoint. The caller closes *out; `config` and `out` are set on success only. Errors: FORMAT (no magic,
 * another version, sizes that are out of range or do not give the file's length), PATH, IO, MEMORY. */
sluice_status slc_llmc_open(const char *path, slc_config *config, slc_tensors **out);
