/* See vocabulary.h. Entries and texts have their places from the beginning, so that the hash table may point to them.
 * tokenizer_test.c covers this file. */
#define HASH_NONFATAL_OOM 1
#include "lib/tokenizer/vocabulary.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(entry) ((entry)->number = -1)

sluice_status slc_vocabulary_init(slc_vocabulary *vocabulary, size_t count, size_t bytes)
{
    *vocabulary = (slc_vocabulary){.room = count};
    vocabulary->entries = calloc(count + 1, sizeof *vocabulary->entries);
    vocabulary->texts = malloc(bytes + 1);
    if (vocabulary->entries && vocabulary->texts) return SLUICE_OK;
    slc_vocabulary_fini(vocabulary);
    return slc_error(SLUICE_ERR_MEMORY, "%zu tokens of a tokenizer", count);
}

void slc_vocabulary_fini(slc_vocabulary *vocabulary)
{
    HASH_CLEAR(hh, vocabulary->by_text);
    free(vocabulary->entries);
    free(vocabulary->texts);
    *vocabulary = (slc_vocabulary){0};
}

sluice_status slc_vocabulary_add(slc_vocabulary *vocabulary, const char *text, size_t bytes, int32_t number)
{
    slc_token_entry *entry = &vocabulary->entries[vocabulary->count], *before = entry - 1;
    char *place = vocabulary->count ? (char *)before->text + before->bytes + 1 : vocabulary->texts;
    memcpy(place, text, bytes);
    place[bytes] = '\0';
    *entry = (slc_token_entry){.text = place, .bytes = bytes, .number = number};
    HASH_ADD_KEYPTR(hh, vocabulary->by_text, entry->text, entry->bytes, entry);
    if (entry->number < 0) return slc_error(SLUICE_ERR_MEMORY, "token %d of a tokenizer", number);
    vocabulary->count++;
    if (bytes > vocabulary->longest) vocabulary->longest = bytes;
    return SLUICE_OK;
}

int32_t slc_vocabulary_find(const slc_vocabulary *vocabulary, const char *text, size_t bytes)
{
    slc_token_entry *entry;
    HASH_FIND(hh, vocabulary->by_text, text, bytes, entry);
    return entry ? entry->number : -1;
}
