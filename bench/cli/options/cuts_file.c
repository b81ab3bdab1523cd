/* tests/command/plan/pipeline_command_test.sh covers this file. */
#include "bench/cli/options/cuts_file.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void put_commas(char *text)
{
    char *to = text;
    bool between = false;
    for (const char *from = text; *from; from++) {
        if (isspace((unsigned char)*from) || *from == ',') {
            between = true;
            continue;
        }
        if (between && to > text) *to++ = ',';
        between = false;
        *to++ = *from;
    }
    *to = 0;
}

sluice_status slc_cuts_file_read(const char *path, char **out)
{
    char *content = NULL;
    size_t length;
    *out = NULL;
    sluice_status status = slc_json_file_read(path, &content, &length);
    if (status) return status;
    *out = strndup(content, length);
    free(content);
    if (!*out) return slc_error(SLUICE_ERR_MEMORY, "cuts");
    put_commas(*out);
    return SLUICE_OK;
}
