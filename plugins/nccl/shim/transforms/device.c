/* Finds CUDA's driver in the process, and loads the kernels into a GPU's primary context.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/device.h"

#include "lib/base/status.h"
#include "plugins/nccl/shim/library/real_dlsym.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while a GPU is opened */
static slc_shim_gpu gpus[SLC_SHIM_GPUS];
static bool driver_found;
static slc_shim_cu_driver driver;

const slc_shim_cu_driver *slc_shim_cu(void)
{
    return &driver;
}

sluice_status slc_shim_cu_status(int result, const char *what)
{
    const char *name = NULL;
    if (!result) return SLUICE_OK;
    if (!slc_shim_cu()->GetErrorName || slc_shim_cu()->GetErrorName(result, &name) || !name) name = "an unknown error";
    return slc_error(SLUICE_ERR_SYSTEM, "%s failed with %s (%d)", what, name, result);
}

static sluice_status find_driver(void)
{
    if (driver_found) return SLUICE_OK;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return slc_error(SLUICE_ERR_UNSUPPORTED, "CUDA's driver (libcuda.so.1) is not in the process");
#define FIND(name, suffix, parameters)                                                                                 \
    if (!(*(void **)&driver.name = slc_shim_real_dlsym(library, "cu" #name suffix)))                                   \
        return slc_error(SLUICE_ERR_UNSUPPORTED, "CUDA's driver has no cu" #name suffix);
    SLC_SHIM_CU_FUNCTIONS(FIND)
#undef FIND
    driver_found = true;
    return SLUICE_OK;
}

static sluice_status open_context(int number, slc_shim_gpu *gpu)
{
    int device;
    sluice_status status = find_driver();
    if (status) return status;
    status = slc_shim_cu_status(slc_shim_cu()->DeviceGet(&device, number), "cuDeviceGet");
    if (status) return status;
    status =
        slc_shim_cu_status(slc_shim_cu()->DevicePrimaryCtxRetain(&gpu->context, device), "cuDevicePrimaryCtxRetain");
    if (status) gpu->context = NULL;
    return status;
}

static sluice_status load_kernels(slc_shim_gpu *gpu)
{
    static const char *const names[SLC_SHIM_KERNELS] = {SHIM_KERNEL_GATHER, SHIM_KERNEL_SCATTER, SHIM_KERNEL_WORKER,
                                                        SHIM_KERNEL_SERVER, SHIM_KERNEL_RESULTS};
    sluice_status status = slc_shim_gpu_enter(gpu);
    if (status) return status;
    if (!gpu->module)
        status = slc_shim_cu_status(slc_shim_cu()->ModuleLoadData(&gpu->module, slc_shim_image), "loading the kernels");
    if (status) gpu->module = NULL;
    for (int k = 0; !status && k < SLC_SHIM_KERNELS; k++)
        status = slc_shim_cu_status(slc_shim_cu()->ModuleGetFunction(&gpu->kernel[k], gpu->module, names[k]), names[k]);
    slc_shim_gpu_leave();
    gpu->has_kernels = !status;
    if (!status) return SLUICE_OK;
    slc_error_context(status, "this build's kernels do not run here (-DSLUICE_CUDA=ON makes those for a GPU)");
    return SLUICE_ERR_UNSUPPORTED;
}

sluice_status slc_shim_gpu_open(int number, const slc_shim_gpu **out)
{
    *out = NULL;
    if (number < 0 || number >= SLC_SHIM_GPUS)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "GPU %d: at most %d are known", number, SLC_SHIM_GPUS);
    slc_shim_gpu *gpu = &gpus[number];
    sluice_status status = SLUICE_OK;
    pthread_mutex_lock(&lock);
    if (!gpu->context) status = open_context(number, gpu);
    if (!status && !gpu->has_kernels) status = load_kernels(gpu);
    if (gpu->context) *out = gpu;
    pthread_mutex_unlock(&lock);
    return status;
}

unsigned slc_shim_gpu_number(const slc_shim_gpu *gpu)
{
    return (unsigned)(gpu - gpus);
}

void slc_shim_gpu_child(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(gpus, 0, sizeof gpus);
    driver_found = false;
}

static _Thread_local int capture_mode; /* the program's, while the thread is in a GPU's context */

sluice_status slc_shim_gpu_enter(const slc_shim_gpu *gpu)
{
    sluice_status status = slc_shim_cu_status(slc_shim_cu()->CtxPushCurrent(gpu->context), "cuCtxPushCurrent");
    if (status) return status;
    capture_mode = SLC_SHIM_CU_RELAXED;
    slc_shim_cu()->ThreadExchangeStreamCaptureMode(&capture_mode);
    return SLUICE_OK;
}

void slc_shim_gpu_leave(void)
{
    slc_shim_cu_context left;
    slc_shim_cu()->ThreadExchangeStreamCaptureMode(&capture_mode);
    slc_shim_cu()->CtxPopCurrent(&left);
}

sluice_status slc_shim_gpu_launch(const slc_shim_gpu *gpu, slc_shim_cu_stream stream, const slc_shim_launch *launch)
{
    void *arguments[] = {(void *)(uintptr_t)launch->arguments};
    return slc_shim_cu_status(slc_shim_cu()->LaunchKernel(gpu->kernel[launch->kernel], launch->blocks, launch->slices,
                                                          1, launch->threads, 1, 1, launch->shared_bytes, stream,
                                                          arguments, NULL),
                              "a kernel of the NCCL shim");
}
