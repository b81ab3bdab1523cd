/* Names are kept sorted while they are found, since there are few of them. record_files_test.c covers this file. */
#include "lib/data/records/labels.h"

#include "lib/base/array.h"
#include "lib/base/bisect.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

int slc_label_compare(const char *name, slc_span label)
{
    const size_t length = strlen(name), least = length < label.bytes ? length : label.bytes;
    const int order = memcmp(name, label.text, least);
    return order ? order : length < label.bytes ? -1 : length > label.bytes;
}

sluice_status slc_labels_add(slc_labels *l, slc_span label)
{
    if (l->many) return SLUICE_OK;
    SLC_BISECT(uint32_t, at, 0, l->count, slc_label_compare(l->names[at], label) < 0);
    if (at < l->count && !slc_label_compare(l->names[at], label)) return SLUICE_OK;
    if (l->count == SLC_LABELS_MAX || l->bytes + label.bytes > SLC_LABELS_BYTES_MAX) {
        slc_labels_free(l);
        l->many = true;
        return SLUICE_OK;
    }
    char *name = strndup(label.text, label.bytes);
    if (!name || !SLC_ROOM_FOR_ONE(l->names, l->count)) {
        free(name);
        return slc_error(SLUICE_ERR_MEMORY, "names of classes");
    }
    memmove(l->names + at + 1, l->names + at, (l->count - at) * sizeof *l->names);
    l->names[at] = name;
    l->count++;
    l->bytes += label.bytes;
    return SLUICE_OK;
}

void slc_labels_free(slc_labels *l)
{
    for (uint32_t i = 0; l->names && i < l->count; i++) free(l->names[i]);
    free(l->names);
    *l = (slc_labels){0};
}
