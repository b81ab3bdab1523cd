/* The parts of a text. Private to lib/data. */
#pragma once

#include "lib/base/file/file.h"
#include "lib/data/records/records.h"
#include "lib/data/tokens.h"

typedef struct {
    slc_file file;
    slc_token_format format; /* of the encoded text, once there is one */
    uint64_t first;          /* token, in the whole text */
    uint32_t closed;         /* 1: the last of its tokens stands between it and the next file */
} slc_text_file_part;

struct slc_text {
    slc_text_file_part *files;
    size_t count;
    uint64_t tokens;
    uint32_t vocabulary;
    uint64_t fingerprint; /* of the files */
    slc_file encoded;     /* the tokens of all files; SLC_FILE_NONE: the files themselves are read */
    uint64_t encoding;    /* a hash of the tokenizer and of the token between files; 0: none */
    size_t passed_over;   /* files of directories that hold no text */
    char *first_passed_over, *note;
    bool uint16;                /* files are tokens without a header */
    const slc_records *records; /* of which the text was made; NULL: of the files */
};

/* The bytes of all files. */
static inline uint64_t slc_text_file_bytes(const slc_text *text)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < text->count; i++) sum += text->files[i].file.bytes;
    return sum;
}
