/* Error lines for paths that name something other than the option needs, as a model's name on a hub or a file of
 * another program: the line says what the path is and what to do. One thread. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>

/* True for words such as "gpt2" and "openai-community/gpt2", which may name something of a hub and no path of this
 * machine. */
bool slc_is_name_of_hub(const char *path);

/* `status` comes from reading weights at `path` (a folder or a file). If it is an error and what lies there is
 * known (the name of a model of a hub, a single file of a folder, PyTorch's weights, a pointer of Git LFS, an adapter,
 * a checkpoint of `sluice train`), this thread's error line becomes one that says so and what to do. Returns `status`.
 */
sluice_status slc_hint_weights(sluice_status status, const char *path);

/* slc_hint_weights for a tokenizer: knows vocab.json with merges.txt, vocab.txt, and a model of SentencePiece. */
sluice_status slc_hint_tokenizer(sluice_status status, const char *path);

/* slc_hint_weights for a checkpoint that training is to go on from: knows a folder with weights. */
sluice_status slc_hint_checkpoint(sluice_status status, const char *path);
