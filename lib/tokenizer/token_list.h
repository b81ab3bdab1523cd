/* Appending to a list of tokens. Private to lib/tokenizer. */
#pragma once

#include "lib/tokenizer/tokenizer.h"

/* Error: MEMORY; then the list is as it was. */
sluice_status slc_token_list_append(slc_token_list *list, const int32_t *tokens, size_t count);
