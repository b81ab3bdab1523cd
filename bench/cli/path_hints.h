/* What a path is that cannot be what it was given for, and what to do about it: names and files that people have from
 * other programs. One thread. */
#pragma once

#include <sluice/status.h>

/* `status` comes from reading weights at `path` (a folder or a file). Where it is an error and what lies there is
 * known (the name of a model of a hub, a single file of a folder, PyTorch's weights, a pointer of Git LFS, an adapter,
 * a checkpoint of `sluice train`), this thread's error line becomes one that says so and what to do. Returns `status`.
 */
sluice_status slc_hint_weights(sluice_status status, const char *path);

/* The same for a tokenizer (vocab.json with merges.txt, vocab.txt, a model of SentencePiece). */
sluice_status slc_hint_tokenizer(sluice_status status, const char *path);

/* The same for a checkpoint to go on from (a folder with weights). */
sluice_status slc_hint_checkpoint(sluice_status status, const char *path);
