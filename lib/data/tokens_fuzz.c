/* Any file must be read as bytes, as tokens, or be refused with a line; all that is read must lie inside the file. */
#include "tests/support/base/file_fuzz.h"
#include "lib/data/text.h"
#include "lib/data/tokens.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *path)
{
    slc_text *text = NULL;
    int32_t tokens[64];
    if (slc_text_open(&path, 1, &text)) {
        if (!*sluice_last_error() || text) abort();
        return;
    }
    uint64_t count = slc_text_tokens(text);
    for (uint64_t first = 0; first < count; first += 64) {
        size_t take = count - first < 64 ? (size_t)(count - first) : 64;
        sluice_status status = slc_text_read(text, first, take, tokens);
        if (status && status != SLUICE_ERR_FORMAT) abort();
        for (size_t i = 0; i < take && !status; i++)
            if (tokens[i] < 0 || (uint32_t)tokens[i] >= slc_text_vocabulary(text)) abort();
    }
    slc_text_close(text);
}

/* The first byte chooses the magic, the second how far the header's number is wrong; the rest are the tokens. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int32_t kinds[][2] = {{20240520, 1}, {20240801, 7}, {20240520, 2}, {20240522, 1}, {20240326, 3}};
    if (size < 2) return 0;
    int fd;
    const char *path = fuzz_file(&fd);
    size_t which = data[0] % 8, bytes = size - 2;
    int32_t words[256] = {0};
    if (which < 5) {
        words[0] = kinds[which][0];
        words[1] = kinds[which][1];
        words[2] = (int32_t)(bytes / (which == 1 ? 4 : 2)) + (int8_t)data[1] / 64;
        size_t head = data[1] == 255 ? bytes % sizeof words : sizeof words;
        fuzz_put(fd, words, head);
    }
    fuzz_put(fd, data + 2, bytes);
    check(path);
    return 0;
}
