/* Names of fields. record_files_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/base/text/list_item.h"
#include "lib/data/records/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names_of[SLC_FIELDS] = {"text", "text_pair", "label", "messages"};
static const char *const forms[] = {"no records", "JSON lines", "CSV", "TSV"};

const char *slc_field_name(slc_field field)
{
    return names_of[field];
}

const char *slc_records_form_name(slc_records_form form)
{
    return forms[form];
}

void slc_field_names_init(slc_field_names *names)
{
    *names = (slc_field_names){0};
    for (int f = 0; f < SLC_FIELDS; f++) snprintf(names->of[f], sizeof names->of[f], "%s", names_of[f]);
}

static sluice_status read_name(const char *item, slc_field_names *names)
{
    const char *equals = strchr(item, '=');
    for (int f = 0; equals && f < SLC_FIELDS; f++) {
        if (strlen(names_of[f]) != (size_t)(equals - item) || strncmp(item, names_of[f], (size_t)(equals - item)) != 0)
            continue;
        if (!equals[1] || strlen(equals + 1) >= SLC_FIELD_ROOM) break;
        snprintf(names->of[f], sizeof names->of[f], "%s", equals + 1);
        names->given[f] = true;
        return SLUICE_OK;
    }
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "\"%s\": say it as text=NAME; the fields are text, text_pair, label and messages, and a name has "
                     "at most %d bytes",
                     item, SLC_FIELD_ROOM - 1);
}

sluice_status slc_field_names_read(const char *list, slc_field_names *names)
{
    char *copy = strdup(list), *rest = copy, *item;
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "names of fields");
    sluice_status status = SLUICE_OK;
    while (!status && (item = slc_next_item(&rest)) != NULL)
        if (*item) status = read_name(item, names);
    free(copy);
    return status;
}
