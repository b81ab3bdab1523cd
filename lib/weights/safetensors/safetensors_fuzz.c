/* Any file must be read as safetensors or be refused with a line; a tensor that was read must have its elements inside
 * the file. Headers are JSON, so the fuzzer starts from good ones: the first byte says how many bytes of data follow
 * the text that splice_fuzz.h makes of the rest. The length before the header is the right one, or what the second byte
 * makes of it. */
#include "tests/support/base/file_fuzz.h"
#include "tests/support/base/splice_fuzz.h"
#include "lib/weights/safetensors/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const seeds[] = {
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
    "{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[8,14]},"
    "\"i\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},\"m\":{\"dtype\":\"BOOL\",\"shape\":[2,1],"
    "\"data_offsets\":[14,16]},\"e\":{\"dtype\":\"F16\",\"shape\":[0,7],\"data_offsets\":[16,16]}}",
    "{\"a\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
    "\"data_offsets\":[4,8]},\"c\":{\"dtype\":\"F64\",\"shape\":[1,1,1],\"data_offsets\":[8,16]},"
    "\"d\":{\"dtype\":\"I16\",\"shape\":[4],\"data_offsets\":[16,24]}}",
};

static void read_all(const slc_tensors *tensors, const slc_tensor *tensor)
{
    sluice_status status;
    uint64_t count = tensor->elements;
    if (count > 1 << 16) abort(); /* the file is small */
    float *reals = malloc((size_t)(count + 1) * sizeof *reals);
    if (!reals) return;
    if (slc_tensor_dtype_is_real(tensor->dtype)) {
        status = slc_tensors_read_float(tensors, tensor, 0, count, reals);
        if (status) abort();
        status = slc_tensors_check_finite(tensors, tensor, NULL);
        if (status && status != SLUICE_ERR_NON_FINITE) abort();
    } else {
        status = slc_tensors_read_int32(tensors, tensor, 0, count, (int32_t *)reals);
        if (status && status != SLUICE_ERR_FORMAT) abort();
        status = slc_tensors_read_bytes(tensors, tensor, 0, count, (uint8_t *)reals);
        if (status && status != SLUICE_ERR_FORMAT) abort();
    }
    free(reals);
}

static void check(const char *path)
{
    slc_tensors *tensors = NULL;
    if (slc_safetensors_open(path, &tensors)) {
        if (!*sluice_last_error() || tensors) abort();
        return;
    }
    for (size_t i = 0; i < slc_tensors_count(tensors); i++) {
        const slc_tensor *tensor = slc_tensors_at(tensors, i);
        if (slc_tensors_find(tensors, tensor->name) != tensor) abort();
        read_all(tensors, tensor);
    }
    slc_tensors_close(tensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    int fd;
    const char *path = fuzz_file(&fd);
    static const uint64_t lies[] = {0, 1, 8, 100000001, INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
    size_t tail = data[0] % 64, length;
    char *text = fuzz_splice(seeds, sizeof seeds / sizeof *seeds, data + 2, size - 2, &length);
    if (!text) return 0;
    uint64_t said =
        data[1] < sizeof lies / sizeof *lies ? lies[data[1]] : length + (data[1] > 250 ? data[1] - 253u : 0);
    fuzz_put(fd, &said, sizeof said);
    fuzz_put(fd, text, length);
    for (size_t i = 0; i < tail; i++) fuzz_put(fd, data + i % size, 1);
    free(text);
    check(path);
    return 0;
}
