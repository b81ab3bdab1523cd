/* Checks the records of a file one after the other, while it is looked through. record_files_test.c covers this file.
 */
#include "lib/data/records/records_parts.h"

static void note_odd(slc_records_check *check, slc_records_oddity oddity, bool is)
{
    if (is && !check->index->odd[oddity]) check->index->odd[oddity] = check->count;
}

/* Returns the properties of a record that was parsed without a fault. */
static slc_records_about about_record(const slc_records *set, const slc_records_item *record)
{
    slc_records_about about = {.label = record->label, .empty = !record->text.bytes && !record->pair.bytes};
    for (size_t i = 0; set->have[SLC_FIELD_MESSAGES] && i < record->message_count; i++)
        slc_turns_add(&about.turns, record->messages[i].role);
    return about;
}

sluice_status slc_records_check_next(slc_records_check *check, const uint64_t place[2], const char *text)
{
    const slc_records *set = check->set;
    const bool messages = set->have[SLC_FIELD_MESSAGES];
    slc_records_about about;
    sluice_status status = SLUICE_OK;
    if (!text || check->part->form != SLC_RECORDS_JSON ||
        !slc_json_line_scan(set, text, (size_t)(place[1] - place[0]), &about)) {
        status = slc_records_read_at(set, check->part, place, text, &check->record);
        if (status) return status;
        about = about_record(set, &check->record);
    }
    check->count++;
    note_odd(check, SLC_RECORDS_EMPTY, about.empty && !messages);
    note_odd(check, SLC_RECORDS_MUTE, messages && (about.turns.unknown || !about.turns.speaks));
    note_odd(check, SLC_RECORDS_UNEVEN, messages && about.turns.uneven);
    return set->have[SLC_FIELD_LABEL] ? slc_labels_add(&check->index->labels, about.label) : SLUICE_OK;
}

void slc_records_check_end(slc_records_check *check)
{
    slc_records_item_free(&check->record);
}
