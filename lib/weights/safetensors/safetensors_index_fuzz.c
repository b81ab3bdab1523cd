/* Any index must be read or be refused with a line; it must open nothing outside its folder, where two good files
 * lie. */
#include "tests/support/base/splice_fuzz.h"
#include "lib/weights/safetensors/safetensors_parts.h"
#include "lib/weights/tensors_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const seeds[] = {
    "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"one\",\"b\":\"two\"}}",
    "{\"weight_map\":{\"b\":\"two\"}}",
    "{\"weight_map\":{\"a\":\"one\",\"b\":\"../two\",\"c\":\"/dev/zero\"}}",
};

static char folder[] = "/tmp/sluice-index-fuzz-XXXXXX", path[64];

static void write_file(const char *name, const char *tensor)
{
    slc_safetensors_writer *writer;
    uint32_t index;
    char file[64];
    snprintf(file, sizeof file, "%s/%s", folder, name);
    if (slc_safetensors_create(file, &writer) ||
        slc_safetensors_declare(writer, tensor, SLC_TENSOR_F32, 1, &(uint64_t){1}, &index) ||
        slc_safetensors_write_float(writer, index, 1, &(float){1}) || slc_safetensors_commit(writer))
        abort();
    slc_safetensors_destroy(writer);
}

static void clean_up(void)
{
    static const char *const names[] = {"one", "two"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void set_up(void)
{
    if (!mkdtemp(folder)) abort();
    write_file("one", "a");
    write_file("two", "b");
    atexit(clean_up);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t length;
    slc_tensors *tensors;
    if (!*path) set_up();
    char *text = fuzz_splice(seeds, sizeof seeds / sizeof *seeds, data, size, &length);
    if (!text || slc_tensors_create(&tensors)) return 0;
    if (slc_safetensors_add_index(tensors, path, text, length)) {
        if (!*sluice_last_error()) abort();
    } else {
        if (!tensors->count || tensors->count > 2) abort();
        for (uint32_t i = 0; i < tensors->file_count; i++)
            if (strncmp(tensors->files[i].path, folder, strlen(folder)) != 0) abort();
    }
    slc_tensors_close(tensors);
    free(text);
    return 0;
}
