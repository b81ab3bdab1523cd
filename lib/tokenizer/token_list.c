/* A list of tokens grows by half. golden_tokens_test.c covers this file. */
#include "lib/tokenizer/tokenizer.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_token_list_append(slc_token_list *list, const int32_t *tokens, size_t count)
{
    if (!count) return SLUICE_OK;
    if (count > list->room - list->count) {
        size_t room = list->room + list->room / 2 + 64;
        if (room - list->count < count) room = list->count + count;
        int32_t *grown = realloc(list->tokens, room * sizeof *grown);
        if (!grown) return slc_error(SLUICE_ERR_MEMORY, "list of %zu tokens", room);
        list->tokens = grown;
        list->room = room;
    }
    memcpy(list->tokens + list->count, tokens, count * sizeof *tokens);
    list->count += count;
    return SLUICE_OK;
}
