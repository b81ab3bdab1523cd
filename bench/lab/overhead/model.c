/* The loop keeps its numbers in registers, so its time does not depend on what communication does to the caches.
 * tests/command/measure/overhead_test.sh covers this file. */
#include "bench/lab/overhead/model.h"

#include "lib/base/clock.h"
#include "lib/optim/adamw.h"

enum { CHAINS = 8 };
static const sluice_adamw settings = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01};

static float turn(uint64_t turns, float seed)
{
    float x[CHAINS], sum = 0;
    for (int i = 0; i < CHAINS; i++) x[i] = seed + (float)i;
    for (uint64_t t = 0; t < turns; t++)
        for (int i = 0; i < CHAINS; i++) x[i] = x[i] * 0.9999f + 0.5f;
    for (int i = 0; i < CHAINS; i++) sum += x[i];
    return sum;
}

static void compute(uint64_t turns, float seed)
{
    volatile float result = turn(turns, seed);
    (void)result;
}

uint64_t slc_overhead_calibrate(double seconds)
{
    uint64_t turns = 1000, took = 0;
    while (took < 20000000u) {
        turns *= 2;
        uint64_t start = slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        compute(turns, 1);
        took = slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    }
    return (uint64_t)((double)turns * seconds / ((double)took * 1e-9));
}

void slc_overhead_forward(slc_overhead_model *model, const float *value)
{
    uint64_t start = slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    compute(model->turns, value[0] + value[model->elements - 1]);
    model->compute_ns += slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

void slc_overhead_backward(slc_overhead_model *model, uint32_t layer, const float *value, float *gradient)
{
    uint64_t start = slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    uint32_t seed = layer * 7 + (uint32_t)model->rank * 3;
    compute(model->turns, value[0] + value[model->elements - 1]);
    for (uint64_t i = 0; i < model->elements; i++) gradient[i] = (float)(int32_t)(((uint32_t)i ^ seed) & 15) - 7.5f;
    model->compute_ns += slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

static sluice_status timed_update(const sluice_update *update, void *context)
{
    slc_overhead_optimizer *optimizer = context;
    uint64_t start = slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    sluice_status status = optimizer->adamw.update(update, optimizer->adamw.context);
    optimizer->update_ns += slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    return status;
}

sluice_status slc_overhead_optimizer_open(slc_overhead_optimizer *optimizer)
{
    *optimizer = (slc_overhead_optimizer){0};
    sluice_status status = slc_device_open("cpu", &optimizer->device);
    if (!status) status = slc_stream_create(optimizer->device, 1, &optimizer->stream);
    if (!status) status = slc_adamw_create(&settings, &optimizer->stream, &optimizer->adamw);
    optimizer->optimizer = optimizer->adamw;
    optimizer->optimizer.update = timed_update;
    optimizer->optimizer.context = optimizer;
    return status;
}

void slc_overhead_optimizer_close(slc_overhead_optimizer *optimizer)
{
    if (optimizer->adamw.update) slc_adam_destroy(&optimizer->adamw);
    if (!optimizer->device) return;
    slc_stream_destroy(&optimizer->stream);
    slc_device_close(optimizer->device);
}
