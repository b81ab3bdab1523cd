/* Finds what the files of a dataset are, by their content and not by their names. */
#pragma once

#include "lib/data/records/records.h"

/* The ways in which the user may say that files are to be read. */
typedef enum {
    SLC_DATA_AUTO,
    SLC_DATA_TEXT, /* text, or tokens with llm.c's header */
    SLC_DATA_JSON, /* records (records/records.h) */
    SLC_DATA_CSV,
    SLC_DATA_TSV,
    SLC_DATA_UINT16, /* tokens of 2 bytes each, little endian, without a header, as nanoGPT's */
} slc_data_type;
#define SLC_DATA_TYPE_NAMES "auto,text,jsonl,csv,tsv,uint16"

/* Reads the first lines of the files, and of folders' files. With AUTO *out is what they are: TEXT, or JSON if they
 * are records of any form; else it is `type`. Files that hold no text by their content (file_kind.h) are not looked at.
 * Errors: FORMAT (records that nobody can read: slc_records_form_of; text that is none: slc_text_form_check), ARGUMENT
 * (files of two kinds), PATH, IO, MEMORY. Any thread. */
sluice_status slc_dataset_type(const char *const *paths, size_t count, slc_data_type type, const slc_field_names *names,
                               slc_data_type *out);
/* The form that records have by the user's word; NONE: each file's own. */
slc_records_form slc_dataset_form(slc_data_type type);
