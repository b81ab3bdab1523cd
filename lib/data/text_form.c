/* Tokens of 2 bytes are told by what their halves are: low bytes are spread over all values, high ones are few and
 * small, because frequent tokens have small numbers. */
#include "lib/data/text_form.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/base/text/shell_word.h"
#include "lib/base/text/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 1 << 20, LEAST_TOKENS = 256, LARGEST_TOKEN = 60000 };

/* Figures of the two halves of 16-bit numbers, by which tokens and encodings are told apart. */
typedef struct {
    uint64_t count;
    uint32_t largest;
    double low_bits, high_bits; /* entropy of the halves */
    double printable, spaces;   /* shares of numbers that are ASCII's printable signs and line ends; that are spaces */
    double high_zero, low_zero; /* shares of halves that are 0 */
} halves;

static double entropy(const uint64_t counts[256], uint64_t all)
{
    double bits = 0;
    for (int i = 0; i < 256; i++)
        if (counts[i]) bits -= (double)counts[i] / (double)all * log2((double)counts[i] / (double)all);
    return bits;
}

static halves look_at_halves(const unsigned char *text, size_t bytes)
{
    uint64_t low[256] = {0}, high[256] = {0}, printable = 0, spaces = 0;
    halves h = {.count = bytes / 2};
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        const uint32_t number = text[i] | (uint32_t)text[i + 1] << 8;
        low[text[i]]++;
        high[text[i + 1]]++;
        h.largest = number > h.largest ? number : h.largest;
        printable += (number >= 0x20 && number < 0x7f) || number == '\n' || number == '\r' || number == '\t';
        spaces += number == ' ';
    }
    const double all = (double)slc_most(1, h.count);
    h.low_bits = entropy(low, slc_most(1, h.count));
    h.high_bits = entropy(high, slc_most(1, h.count));
    h.printable = (double)printable / all;
    h.spaces = (double)spaces / all;
    h.high_zero = (double)high[0] / all;
    h.low_zero = (double)low[0] / all;
    return h;
}

static uint64_t line_of(const char *text, size_t at)
{
    uint64_t line = 1;
    for (size_t i = 0; i < at; i++) line += text[i] == '\n';
    return line;
}

/* Names the encoding that the bytes look like; NULL: none. Text in UTF-16 has a zero in most pairs of bytes, wherever
 * it is in letters of ASCII. */
static const char *encoding_of(const halves *h, const unsigned char *text, size_t bytes)
{
    if (bytes >= 8 && bytes % 4 == 0 && !text[1] && !text[2] && !text[3] && text[0] && text[4] && !text[5] && !text[6])
        return "UTF-32LE";
    if (h->printable > 0.8 || h->spaces > 0.05) return "UTF-16LE";
    if (h->low_zero > 0.5 && h->high_zero < 0.1) return "UTF-16BE";
    return NULL;
}

static sluice_status refuse(const slc_file *file, const char *text, size_t bytes, size_t wrong)
{
    const halves h = look_at_halves((const unsigned char *)text, bytes);
    const char *encoding = encoding_of(&h, (const unsigned char *)text, bytes), *path = file->path;
    const uint64_t line = line_of(text, wrong);
    const slc_shell_word word = slc_shell_word_of(path);
    if (encoding)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s is text in %s, not UTF-8; convert it: iconv -f %s -t UTF-8 %s > text.txt", path, encoding,
                         encoding, word.text);
    if (file->bytes % 2 == 0 && h.count >= LEAST_TOKENS && h.largest < LARGEST_TOKEN && h.low_bits > h.high_bits + 0.5)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s looks like tokens of 2 bytes each (as nanoGPT's train.bin), the largest at its beginning "
                         "%" PRIu32 "; --data-type uint16 reads it so",
                         path, h.largest);
    if (!text[wrong])
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s, line %" PRIu64 ": has a NUL, so it is no text; remove NULs (tr -d '\\000'), or "
                         "--data-type text trains on its bytes as they are",
                         path, line);
    return slc_error(SLUICE_ERR_FORMAT,
                     "%s, line %" PRIu64
                     ": byte 0x%02x at byte %zu is no UTF-8; if the file is in Latin-1, convert it: "
                     "iconv -f LATIN1 -t UTF-8 %s > text.txt; --data-type text trains on its bytes as they are",
                     path, line, (unsigned)(unsigned char)text[wrong], wrong + 1, word.text);
}

sluice_status slc_text_form_check(const slc_file *file)
{
    const size_t bytes = (size_t)slc_least(file->bytes, LOOKED_AT);
    char *text = malloc(bytes + 1);
    if (!text) return slc_error(SLUICE_ERR_MEMORY, "the beginning of %s", file->path);
    sluice_status status = slc_file_read(file, 0, bytes, text);
    if (!status) {
        const char *nul = memchr(text, 0, bytes);
        const size_t end = nul ? (size_t)(nul - text) : bytes;
        size_t wrong = slc_utf8_valid(text, end);
        /* A character that the piece's end cuts off is right. */
        if (wrong < end && end == bytes && bytes < file->bytes && bytes - wrong < 4) wrong = end;
        if (wrong < bytes) status = refuse(file, text, bytes, wrong);
    }
    free(text);
    return status;
}
