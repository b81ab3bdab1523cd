/* Any file must be read as an llm.c checkpoint or be refused with a line; a tensor that was read must have its elements
 * inside the file. The input gives eight words of the header, small if one byte is enough, and how much longer the
 * file is than it should be. */
#include "tests/support/base/file_fuzz.h"
#include "lib/weights/llmc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENDS = 16 }; /* how many elements are read at a tensor's beginning and end */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *path)
{
    slc_config config;
    slc_tensors *tensors = NULL;
    if (slc_llmc_open(path, &config, &tensors)) {
        if (!*sluice_last_error() || tensors) abort();
        return;
    }
    if (slc_tensors_count(tensors) != 4 + 12 * (size_t)config.layers) abort();
    for (size_t i = 0; i < slc_tensors_count(tensors); i++) {
        const slc_tensor *tensor = slc_tensors_at(tensors, i);
        float values[ENDS];
        uint64_t count = tensor->elements < ENDS ? tensor->elements : ENDS;
        if (slc_tensors_read_float(tensors, tensor, 0, count, values)) abort();
        if (slc_tensors_read_float(tensors, tensor, tensor->elements - count, count, values)) abort();
    }
    slc_tensors_close(tensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 10) return 0;
    int fd;
    const char *path = fuzz_file(&fd);
    int32_t words[256] = {SLC_LLMC_MAGIC, 3, 2, 3, 1, 1, 2, 4};
    for (int i = 0; i < 8; i++)
        if (data[i]) words[i] = i ? data[i] : SLC_LLMC_MAGIC + (data[i] == 1);
    for (size_t i = 10; i + 4 < size; i += 5) memcpy(&words[data[i] % 8], data + i + 1, 4); /* any value */
    uint64_t c = (uint32_t)words[6], rows = (uint64_t)(uint32_t)words[7] + (uint32_t)words[2];
    uint64_t bytes = sizeof words +
                     (words[1] == 5 ? 2 : 4) * ((uint64_t)(uint32_t)words[4] * (12 * c * c + 13 * c) + (rows + 2) * c);
    bytes += data[8] < 200 ? 0 : data[8] - 228u;
    if (bytes > 1 << 14) bytes = data[9] * 16u; /* the length is wrong: the file is shorter */
    if (ftruncate(fd, (off_t)bytes)) abort();
    if (pwrite(fd, words, bytes < sizeof words ? (size_t)bytes : sizeof words, 0) < 0) abort();
    check(path);
    return 0;
}
