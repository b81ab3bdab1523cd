/* Tokens of texts that are kept between runs, and shared by the ranks of a host: a folder with one file a text, whose
 * name is a hash of everything that decides its tokens, the text's every byte included. One process makes such a file;
 * others that want it wait. Where anything of it fails, tokens are made as without a cache. Private to lib/data. */
#pragma once

#include "lib/data/text.h"
#include "lib/data/text_parts.h"

/* A file that is being made. */
typedef struct {
    const slc_text_cache *cache;
    char key[65];
    int fd; /* locked; -1: none is made */
    char *draft, *path;
} slc_token_cache;

/* Looks for the tokens of a text whose files are bytes. If *found is set, the text has them. Else *out is the file to
 * make, if there may be one: the caller writes tokens to `fd` from byte slc_token_cache_head_bytes(text->count) on.
 * While another process makes them `how->progress` is called with nothing done. Errors: IO (of the text), MEMORY, what
 * `progress` returned. */
sluice_status slc_token_cache_look(slc_text *text, const slc_text_encoding *how, uint32_t width, slc_token_cache *out,
                                   bool *found);
/* Gives the file that now has the text's tokens (cache->fd) its name, and removes the files that were used longest ago
 * if all together are more than the cache may hold. Failures leave the text as it is. */
void slc_token_cache_keep(slc_token_cache *cache, const slc_text *text);
/* Leaves a file that is not kept without a name; it stays open. Does nothing after slc_token_cache_keep. */
void slc_token_cache_end(slc_token_cache *cache);

uint64_t slc_token_cache_head_bytes(size_t files);
