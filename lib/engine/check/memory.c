/* SLUICE_ENGINE_CHECK on one rank: memory that nobody holds is NaN, and what a binary gets moves and is watched.
 * tests/calls/engine_check_test.c covers this file. */
#include "lib/engine/check/check.h"

#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/runtime.h"
#include "lib/engine/settings.h"

#include <stdlib.h>
#include <string.h>

/* Memory without a holder is filled with these 16 bits. They are a NaN in bf16 and, twice, in fp32, and one that
 * signals, so that adding to it changes it too. */
enum { UNUSED = 0xffa5, GAP_LEAST = 64, GAP_MOST = 64 << 10 };

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Returns the bytes of a buffer and of the gap that follows it. A program that takes elements for bytes writes three
 * times the buffer's size beyond its end, so the gap has as much, up to a limit. */
static uint64_t with_gap(uint64_t bytes)
{
    return aligned(bytes) + GAP_LEAST + aligned(3 * bytes < GAP_MOST ? 3 * bytes : GAP_MOST);
}

static unsigned char unused_byte(const unsigned char *at)
{
    return (uintptr_t)at % 2 ? UNUSED >> 8 : UNUSED & 0xff;
}

void slc_check_fill(void *memory, uint64_t bytes)
{
    unsigned char *at = memory;
    for (uint64_t i = 0; i < bytes; i++) at[i] = unused_byte(at + i);
}

/* Returns the first byte that somebody has written; `bytes`: there is none. */
static uint64_t first_written(const unsigned char *memory, uint64_t bytes)
{
    uint64_t at = 0;
    while (at < bytes && at < 2 && memory[at] == unused_byte(memory + at)) at++;
    if (at == 2 && !memcmp(memory, memory + 2, bytes - 2)) return bytes; /* each two bytes equal the two before */
    while (at < bytes && memory[at] == unused_byte(memory + at)) at++;
    return at;
}

static unsigned char *allocate_filled(uint64_t bytes)
{
    unsigned char *memory = aligned_alloc(64, bytes);
    if (memory) slc_check_fill(memory, bytes);
    return memory;
}

/* ---- Life ---- */

sluice_status slc_check_create(const slc_device *device, slc_check **out)
{
    bool on;
    sluice_status status = slc_setting_switch(&slc_engine_settings, "SLUICE_ENGINE_CHECK", &on);
    if (status || !on) return status;
    if (slc_device_get_kind(device) != SLC_DEVICE_HOST)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "SLUICE_ENGINE_CHECK is for the device cpu alone; switch it off");
    *out = calloc(1, sizeof **out);
    return *out ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "SLUICE_ENGINE_CHECK");
}

void slc_check_destroy(slc_check *check)
{
    if (!check) return;
    for (int i = 0; i < 2; i++) {
        free(check->lendings[i].base);
        free(check->lendings[i].lent);
        free(check->lasting[i]);
    }
    free(check->activation_at);
    free(check->region_at);
    free(check->written);
    free(check);
}

/* Counts what a slot of this layer may ask for. */
static void measure_layer(const sluice_runtime *rt, const sluice_layer *layer, slc_check *check)
{
    uint64_t values = 0, gradients = 0, lent = 0;
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        bool uses = param->layer == layer->index;
        for (uint32_t i = 0; i < layer->use_count; i++) uses |= layer->uses[i] == param;
        if (!uses) continue;
        values += with_gap(param->count * sluice_dtype_bytes(param->dtype));
        gradients += with_gap(param->count * sluice_dtype_bytes(sluice_param_gradient_dtype(param)));
        lent += 2;
    }
    if (values > check->value_bytes) check->value_bytes = values;
    if (gradients > check->gradient_bytes) check->gradient_bytes = gradients;
    if (lent > check->lent_most) check->lent_most = lent;
}

static sluice_status measure_lasting(const sluice_runtime *rt, slc_check *check)
{
    const uint32_t slots = slc_job_slots(&rt->job);
    check->lasting_bytes = GAP_LEAST;
    check->activation_at = calloc((size_t)rt->model.activation_count + 1, sizeof *check->activation_at);
    check->region_at = calloc((size_t)slots + 1, sizeof *check->region_at);
    if (!check->activation_at || !check->region_at) return slc_error(SLUICE_ERR_MEMORY, "SLUICE_ENGINE_CHECK");
    for (uint32_t a = 0; a < rt->model.activation_count; a++) {
        check->activation_at[a] = check->lasting_bytes;
        check->lasting_bytes += with_gap(rt->model.activations[a]->bytes);
    }
    for (uint32_t s = 0; s < slots; s++) {
        check->region_at[s] = check->lasting_bytes;
        if (rt->regions[s].sizes.bytes) check->lasting_bytes += with_gap(rt->regions[s].sizes.bytes);
    }
    return SLUICE_OK;
}

/* Two workspaces that are in use at one operation of a slot have no byte in common. */
static sluice_status check_workspaces(const sluice_runtime *rt)
{
    for (uint32_t i = 0; i < rt->model.workspace_count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const sluice_workspace *a = rt->model.workspaces[i], *b = rt->model.workspaces[k];
            bool meet = a->layer == b->layer && a->direction == b->direction && a->first <= b->last &&
                        b->first <= a->last && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            if (meet)
                return slc_error(SLUICE_ERR_FORMAT, "workspaces \"%s\" and \"%s\" overlap: this is a fault of Sluice",
                                 a->name, b->name);
        }
    return SLUICE_OK;
}

sluice_status slc_check_commit(sluice_runtime *rt)
{
    slc_check *check = rt->check;
    if (!check) return SLUICE_OK;
    sluice_status status = check_workspaces(rt);
    if (!status) status = measure_lasting(rt, check);
    if (status) return status;
    for (uint32_t l = 0; l < rt->model.layer_count; l++) measure_layer(rt, rt->model.layers[l], check);
    const uint64_t lending_bytes = check->value_bytes + check->gradient_bytes;
    check->written = calloc(rt->model.param_count, sizeof *check->written);
    bool missing = !check->written;
    for (int i = 0; i < 2; i++) {
        check->lasting[i] = allocate_filled(check->lasting_bytes);
        check->lendings[i].base = allocate_filled(lending_bytes);
        check->lendings[i].lent = calloc(check->lent_most + 1, sizeof *check->lendings[i].lent);
        missing |= !check->lasting[i] || !check->lendings[i].base || !check->lendings[i].lent;
    }
    const uint64_t bytes = 2 * (check->lasting_bytes + lending_bytes);
    if (missing) return slc_error(SLUICE_ERR_MEMORY, "SLUICE_ENGINE_CHECK: %llu bytes", (unsigned long long)bytes);
    if (rt->rank == 0)
        slc_log(SLC_LOG_WARN, "SLUICE_ENGINE_CHECK is on: steps are slower, and take %llu bytes beside the budget",
                (unsigned long long)bytes);
    return SLUICE_OK;
}

/* ---- Activations and workspaces ---- */

static void point_to_lasting(sluice_runtime *rt)
{
    const slc_check *check = rt->check;
    unsigned char *base = check->lasting[check->lasting_now];
    for (uint32_t a = 0; a < rt->model.activation_count; a++)
        rt->model.activations[a]->data = base + check->activation_at[a];
    for (uint32_t s = 0; s < slc_job_slots(&rt->job); s++)
        if (rt->regions[s].sizes.bytes) rt->regions[s].data = base + check->region_at[s];
}

/* Names the holder of byte `at` of lasting memory. The gap after a buffer counts as its own. */
static const char *holder(const sluice_runtime *rt, uint64_t at, const char **kind, uint64_t *from)
{
    const slc_check *check = rt->check;
    const char *name = "the first buffer";
    *kind = "memory in front of";
    *from = 0;
    for (uint32_t a = 0; a < rt->model.activation_count && check->activation_at[a] <= at; a++) {
        *from = check->activation_at[a];
        *kind = "activation";
        name = rt->model.activations[a]->name;
    }
    for (uint32_t s = 0; s < slc_job_slots(&rt->job) && check->region_at[s] <= at; s++) {
        if (!rt->regions[s].sizes.bytes) continue;
        *from = check->region_at[s];
        *kind = slc_slot_is_forward(&rt->job, s) ? "forward workspaces of layer" : "backward workspaces of layer";
        name = rt->model.layers[slc_slot_layer(&rt->job, s)]->name;
    }
    return name;
}

/* ORDER unless bytes [from, end) of lasting memory `which` are as they were filled. */
static sluice_status check_unwritten(const sluice_runtime *rt, uint32_t which, uint64_t from, uint64_t end)
{
    const slc_check *check = rt->check;
    uint64_t at = from + first_written(check->lasting[which] + from, end - from), start;
    if (at >= end) return SLUICE_OK;
    const char *kind, *name = holder(rt, at, &kind, &start);
    if (which != check->lasting_now)
        return slc_error(SLUICE_ERR_ORDER,
                         "%s \"%s\" was written at its address of an earlier step (byte %llu): step_end may move it, "
                         "ask for its address in each step",
                         kind, name, (unsigned long long)(at - start));
    return slc_error(SLUICE_ERR_ORDER,
                     "%s \"%s\" was written outside of its life or past its end (byte %llu): declare as many bytes "
                     "and as long a life as it has",
                     kind, name, (unsigned long long)(at - start));
}

void slc_check_place(sluice_runtime *rt)
{
    slc_arena_fill_free(rt->memory.arena, slc_check_fill);
    if (rt->current.number > 1)
        slc_check_move(rt);
    else
        point_to_lasting(rt);
}

sluice_status slc_check_lives(const sluice_runtime *rt)
{
    const slc_check *check = rt->check;
    if (!check) return SLUICE_OK;
    sluice_status status = check_unwritten(rt, check->lasting_now ^ 1, 0, check->lasting_bytes);
    return status ? status : check_unwritten(rt, check->lasting_now, 0, check->lasting_bytes);
}

void slc_check_move(sluice_runtime *rt)
{
    if (!rt->check) return;
    rt->check->lasting_now ^= 1;
    point_to_lasting(rt);
}

/* Finds where the check has the buffer of a claim, and how long it is. False: the arena has it. */
static bool find_lasting(const sluice_runtime *rt, const slc_buffer *buffer, uint64_t *at, uint64_t *bytes)
{
    *bytes = buffer->bytes;
    if (buffer->kind == SLC_BUFFER_ACTIVATION) {
        *at = rt->check->activation_at[buffer->index];
        *bytes = rt->model.activations[buffer->index]->bytes;
        return true;
    }
    for (uint32_t s = 0; buffer->kind == SLC_BUFFER_WORKSPACE && s < slc_job_slots(&rt->job); s++)
        if (rt->regions[s].workspace == buffer->index) {
            *at = rt->check->region_at[s];
            *bytes = rt->regions[s].sizes.bytes;
            return true;
        }
    return false;
}

sluice_status slc_check_claim(sluice_runtime *rt, const slc_claim *claim, bool begins)
{
    const slc_buffer *buffer = &rt->current.plan->buffers[claim->buffer];
    uint64_t at, bytes;
    slc_check_fill(rt->memory.base + buffer->offset + claim->first_byte, claim->end_byte - claim->first_byte);
    if (!find_lasting(rt, buffer, &at, &bytes)) return SLUICE_OK;
    const uint32_t now = rt->check->lasting_now;
    sluice_status status = check_unwritten(rt, now, at + (begins ? 0 : bytes), at + with_gap(bytes));
    slc_check_fill(rt->check->lasting[now] + at, bytes);
    return status;
}

/* ---- Values and gradients ---- */

/* Returns ORDER if somebody has written what was lent to an earlier slot. It is called at every slot, so that the error
 * can name the slot. */
static sluice_status check_unlent(const sluice_runtime *rt, const slc_lending *lending, const char *when)
{
    const slc_check *check = rt->check;
    const uint64_t bytes = check->value_bytes + check->gradient_bytes;
    uint64_t at = first_written(lending->base, bytes);
    if (at == bytes) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ORDER,
                     "%s the %s of layer \"%s\" a %s was written at an address of an earlier slot: an address holds in "
                     "one slot, ask for it again in each",
                     when, rt->at.direction == SLUICE_FORWARD ? "forward" : "backward", rt->at.layer->name,
                     at < check->value_bytes ? "value" : "gradient");
}

sluice_status slc_check_slot_begin(sluice_runtime *rt, const slc_item *slot, uint32_t micro_batch)
{
    slc_check *check = rt->check;
    if (!check) return SLUICE_OK;
    sluice_status status = check_unlent(rt, &check->lendings[0], "before");
    if (!status) status = check_unlent(rt, &check->lendings[1], "before");
    if (!slot->slot && !micro_batch) check->runs++;
    /* A slot gets the other memory in the next micro-batch or step, and so does the backward of its layer. */
    check->now = (check->runs + micro_batch + slot->slot) & 1;
    slc_lending *lending = &check->lendings[check->now];
    lending->used[0] = lending->used[1] = 0;
    lending->count = 0;
    return status;
}

static sluice_status take_back(const slc_lent *lent)
{
    const char *kind = lent->gradient ? "gradient" : "value", *name = lent->param->name;
    const uint64_t gap = with_gap(lent->bytes) - lent->bytes;
    if (first_written(lent->copy + lent->bytes, gap) < gap)
        return slc_error(SLUICE_ERR_ORDER, "parameter \"%s\": its %s was written past its end; it has %llu bytes", name,
                         kind, (unsigned long long)lent->bytes);
    if (lent->gradient)
        memcpy(lent->original, lent->copy, lent->bytes);
    else if (memcmp(lent->original, lent->copy, lent->bytes))
        return slc_error(SLUICE_ERR_ORDER,
                         "parameter \"%s\": its value was written inside a slot; it can be read there "
                         "alone: updates, and sluice_param_write between steps, change it",
                         name);
    return SLUICE_OK;
}

sluice_status slc_check_slot_end(sluice_runtime *rt)
{
    if (!rt->check) return SLUICE_OK;
    slc_lending *lending = &rt->check->lendings[rt->check->now];
    sluice_status status = slc_stream_synchronize(&rt->compute);
    for (uint32_t i = 0; !status && i < lending->count; i++) status = take_back(&lending->lent[i]);
    slc_check_fill(lending->base, lending->used[0]);
    slc_check_fill(lending->base + rt->check->value_bytes, lending->used[1]);
    return status ? status : check_unlent(rt, &rt->check->lendings[rt->check->now ^ 1], "in");
}

void *slc_check_lend(sluice_param *param, bool gradient, void *memory, uint64_t bytes)
{
    const slc_check *check = param->rt->check;
    slc_lending *lending = &param->rt->check->lendings[check->now];
    for (uint32_t i = 0; i < lending->count; i++)
        if (lending->lent[i].param == param && lending->lent[i].gradient == gradient) return lending->lent[i].copy;
    slc_lent *lent = &lending->lent[lending->count++];
    unsigned char *area = lending->base + (gradient ? check->value_bytes : 0);
    *lent = (slc_lent){param, gradient, area + lending->used[gradient], memory, bytes};
    lending->used[gradient] += with_gap(bytes);
    return memcpy(lent->copy, memory, bytes);
}
