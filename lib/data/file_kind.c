/* Most formats begin with a fixed sequence; safetensors, images of Netpbm and files of settings are recognised by what
 * must follow. If the sequence is one of letters, so many are compared that no text begins with them. */
#include "lib/data/file_kind.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { HEAD = 4096 };

#define BEGINS(text, kind)                                                                                             \
    {                                                                                                                  \
        text, sizeof text - 1, 0, kind                                                                                 \
    }
static const struct {
    const char *bytes;
    size_t count, at;
    const char *kind;
} beginnings[] = {
    BEGINS("\x89PNG\r\n\x1a\n", "a PNG image"),
    BEGINS("\xff\xd8\xff", "a JPEG image"),
    BEGINS("GIF87a", "a GIF image"),
    BEGINS("GIF89a", "a GIF image"),
    BEGINS("II*\0", "a TIFF image"),
    BEGINS("MM\0*", "a TIFF image"),
    BEGINS("\x1f\x8b\x08", "compressed by gzip; decompress it with gunzip"),
    {"1AY&SY", 6, 4, "compressed by bzip2; decompress it with bunzip2"}, /* after "BZh9" */
    BEGINS("\xfd\x37zXZ\0", "compressed by xz; decompress it with unxz"),
    BEGINS("\x28\xb5\x2f\xfd", "compressed by zstd; decompress it with unzstd"),
    BEGINS("PK\x03\x04", "a zip archive (or PyTorch's .pt, a .docx, an .epub)"),
    BEGINS("7z\xbc\xaf\x27\x1c", "a 7z archive"),
    {"ustar", 5, 257, "a tar archive"},
    BEGINS("\x7f"
           "ELF",
           "a program or library (ELF)"),
    BEGINS("%PDF-", "a PDF document; convert it with pdftotext"),
    BEGINS("PAR1\x15", "a Parquet table"),
    BEGINS("ARROW1\0", "an Arrow table"),
    BEGINS("\x89HDF\r\n\x1a\n", "an HDF5 file"),
    BEGINS("\x93NUMPY", "an array of NumPy"),
    BEGINS("\x80\x02", "a Python pickle"),
    BEGINS("\x80\x04\x95", "a Python pickle"),
    BEGINS("SQLite format 3\0", "a SQLite database"),
    {"WEBPVP8", 7, 8, "a WebP image"}, /* after "RIFF" and a size */
    {"WAVEfmt ", 8, 8, "a sound file (WAV)"},
    {"AVI LIST", 8, 8, "a film (AVI)"},
    BEGINS("OggS\0", "an Ogg file"),
    BEGINS("GGUF\x02\0", "a GGUF file"),
    BEGINS("GGUF\x03\0", "a GGUF file"),
    BEGINS("\xff\xfe", "text in UTF-16; convert it with iconv -f UTF-16 -t UTF-8"),
    BEGINS("\xfe\xff", "text in UTF-16; convert it with iconv -f UTF-16 -t UTF-8"),
};

/* True for safetensors, which begin with the length of a JSON object, 8 bytes little endian, and the object. */
static bool is_safetensors(const unsigned char *head, size_t count, uint64_t bytes)
{
    uint64_t length = 0;
    if (count < 10) return false;
    memcpy(&length, head, sizeof length);
    return length >= 2 && length <= bytes - 8 && head[8] == '{' && (head[9] == '"' || head[9] == '}');
}

/* Hugging Face's files of settings: config.json, tokenizer.json, an index of weights and the like. */
static bool is_settings(const unsigned char *head, size_t count)
{
    static const char *const keys[] = {"\"model_type\"",           "\"architectures\"",   "\"added_tokens\"",
                                       "\"weight_map\"",           "\"tokenizer_class\"", "\"transformers_version\"",
                                       "\"image_processor_type\"", "\"sluice_weights\""};
    if (!count || head[0] != '{') return false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (memmem(head, count, keys[i], strlen(keys[i]))) return true;
    return false;
}

/* Passes white space and comments, then reads a number from 1 to 65535; returns 0 if there is none. */
static uint32_t pnm_number(const unsigned char *head, size_t count, size_t *at)
{
    const size_t before = *at;
    uint32_t number = 0;
    for (bool comment = false; *at < count && (comment || isspace(head[*at]) || head[*at] == '#'); ++*at)
        comment = (comment || head[*at] == '#') && head[*at] != '\n';
    if (*at == before) return 0;
    for (; *at < count && isdigit(head[*at]) && number <= 65535; ++*at) number = 10 * number + (head[*at] - '0');
    return number <= 65535 ? number : 0;
}

/* Returns the kind of a binary PGM or PPM, or NULL. They begin with letters and numbers, as a text may; but their
 * samples fill the file to the byte. */
static const char *pnm_kind(const unsigned char *head, size_t count, uint64_t bytes)
{
    if (count < 3 || head[0] != 'P' || (head[1] != '5' && head[1] != '6')) return NULL;
    size_t at = 2;
    const uint64_t width = pnm_number(head, count, &at), height = pnm_number(head, count, &at);
    const uint64_t white = pnm_number(head, count, &at), channels = head[1] == '5' ? 1 : 3;
    const uint64_t samples = width * height * channels * (white > 255 ? 2 : 1);
    if (!samples || !white || at == count || !isspace(head[at]) || bytes != at + 1 + samples) return NULL;
    return channels == 1 ? "a PGM image" : "a PPM image";
}

sluice_status slc_file_kind(const slc_file *file, const char **kind)
{
    unsigned char head[HEAD];
    size_t count = file->bytes < HEAD ? (size_t)file->bytes : HEAD;
    sluice_status status = slc_file_read(file, 0, count, head);
    *kind = NULL;
    if (status) return status;
    if (is_safetensors(head, count, file->bytes)) *kind = "a safetensors file: weights";
    if (is_settings(head, count)) *kind = "a file of settings of a model or a tokenizer";
    if (!*kind) *kind = pnm_kind(head, count, file->bytes);
    for (size_t i = 0; !*kind && i < sizeof beginnings / sizeof *beginnings; i++)
        if (beginnings[i].at + beginnings[i].count <= count &&
            !memcmp(head + beginnings[i].at, beginnings[i].bytes, beginnings[i].count))
            *kind = beginnings[i].kind;
    return SLUICE_OK;
}
