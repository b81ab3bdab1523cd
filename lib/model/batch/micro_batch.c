/* Checks a caller's micro-batch and lays it out as the device's copies read it; adds up the losses that come back.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/model/batch/micro_batch.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/kernels/embedding/embedding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

enum { LINE = 64 };

/* Returns the next piece of the block at `base`, which is NULL while its size is counted. */
static void *carve(unsigned char *base, uint64_t *used, uint64_t bytes)
{
    void *piece = base && bytes ? base + *used : NULL;
    *used += slc_round_up(bytes, LINE);
    return piece;
}

static uint64_t patches_of(const sluice_model *m)
{
    return (uint64_t)m->sequences * slc_model_patches(&m->config);
}

/* Returns the bytes of the block. On the host, kernels and copies are done when a call returns, and so read what is the
 * caller's in place. */
static uint64_t lay_out(const sluice_model *m, slc_batch_memory *memory, unsigned char *base)
{
    const sluice_model_config *c = &m->config;
    const bool sees = slc_model_sees(c), text = m->apart && !sees, images = m->apart && sees;
    const uint64_t numbers = m->rows * sizeof(int32_t);
    uint64_t used = 0;
    memory->losses = carve(base, &used, m->rows * sizeof *memory->losses);
    memory->targets = carve(base, &used, numbers);
    memory->rows = carve(base, &used, slc_model_picks(m) ? numbers : 0);
    memory->pick_order = carve(base, &used, slc_model_picks(m) && m->apart ? numbers : 0);
    memory->places = carve(base, &used, m->look_up || text ? numbers : 0);
    memory->types = carve(base, &used, text && c->types ? numbers : 0);
    memory->place_order = carve(base, &used, text ? numbers : 0);
    memory->type_order = carve(base, &used, text && c->types ? numbers : 0);
    memory->order_scratch = carve(base, &used, text ? numbers : 0);
    memory->attention_mask = carve(base, &used, text ? m->rows : 0);
    memory->pixels = carve(base, &used, images ? slc_model_pixels(m) * sizeof *memory->pixels : 0);
    memory->masked_patches = carve(base, &used, images && c->mask_token ? patches_of(m) : 0);
    return used;
}

/* Bits that say of a shape of micro-batches which kernels are launched already: those of an evaluation, which runs
 * forwards alone, or those of a training step. PICKS_TOLD_APART divides every number of picked rows. */
enum { SLC_LAUNCHED_EVALUATING = 1, SLC_LAUNCHED_TRAINING = 2, PICKS_TOLD_APART = 16 };

/* Numbers the shape of the current micro-batch: its length, and whether it has more sequences than usual. */
static size_t number_of_shape(const sluice_model *m, uint32_t length)
{
    const size_t whole = m->length_step ? m->length / m->length_step + 1 : 0;
    const size_t number = length == m->length ? whole : length / m->length_step;
    return 2 * number + (m->sequences != m->batch);
}

static sluice_status create_launched(sluice_model *m)
{
    const size_t shapes = number_of_shape(m, m->length) + 2, picks = m->rows / PICKS_TOLD_APART + 2;
    if (!m->apart) return SLUICE_OK;
    m->launched_lengths = calloc(shapes, 1);
    m->launched_picks = calloc(picks, 1);
    return m->launched_lengths && m->launched_picks ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "lengths of sequences");
}

static bool is_first(uint8_t *launched, bool trains)
{
    const uint8_t now = trains ? SLC_LAUNCHED_TRAINING : SLC_LAUNCHED_EVALUATING;
    const bool first = !(*launched & (now | SLC_LAUNCHED_TRAINING));
    *launched |= now;
    return first;
}

sluice_status slc_micro_batch_expect_launches(sluice_model *m, bool trains)
{
    if (!m->apart) return SLUICE_OK;
    bool first = is_first(&m->launched_lengths[number_of_shape(m, m->memory->length)], trains);
    if (trains) first |= is_first(&m->launched_picks[m->memory->picked / PICKS_TOLD_APART], true);
    return first ? sluice_runtime_expect_launches(m->rt) : SLUICE_OK;
}

static uint32_t memories_of(const sluice_model *m)
{
    return m->apart ? SLC_BATCH_MEMORIES : m->in_step ? m->in_step : 1;
}

sluice_status slc_micro_batch_create(sluice_model *m)
{
    const uint64_t most = UINT64_MAX / 2 / LINE;
    if (m->rows > most) return slc_error(SLUICE_ERR_MEMORY, "%llu tokens", (unsigned long long)m->rows);
    m->memories = calloc(memories_of(m), sizeof *m->memories);
    if (!m->memories) return slc_error(SLUICE_ERR_MEMORY, "micro-batches");
    m->memory_count = memories_of(m);
    sluice_status status = create_launched(m);
    if (!status) status = slc_device_open(m->apart ? "cuda" : "cpu", &m->device);
    for (uint32_t i = 0; !status && i < m->memory_count; i++) {
        slc_batch_memory *memory = &m->memories[i];
        status = slc_pinned_create(m->device, lay_out(m, memory, NULL), &memory->block);
        if (!status) lay_out(m, memory, memory->block.base);
        if (!status) status = slc_event_create(m->device, &memory->done);
    }
    m->memory = &m->memories[m->memory_count - 1];
    return status;
}

void slc_micro_batch_destroy(sluice_model *m)
{
    for (uint32_t i = 0; i < m->memory_count; i++) {
        slc_pinned_destroy(&m->memories[i].block);
        slc_event_destroy(&m->memories[i].done);
    }
    free(m->memories);
    free(m->launched_lengths);
    free(m->launched_picks);
    slc_device_close(m->device);
}

sluice_status slc_micro_batch_reserve(sluice_model *m)
{
    if (m->apart) return SLUICE_OK;
    const uint64_t rows = m->rows * memories_of(m);
    sluice_status status = SLUICE_OK;
    if (m->look_up) status = sluice_runtime_reserve(m->rt, "places of tokens", rows * sizeof(int32_t));
    if (status) return status;
    if (slc_model_picks(m)) status = sluice_runtime_reserve(m->rt, "rows with targets", rows * sizeof(int32_t));
    if (status) return status;
    return sluice_runtime_reserve(m->rt, "targets and loss values", rows * (sizeof(float) + sizeof(int32_t)));
}

/* ---- Checks ---- */

static sluice_status check_range(const char *family, const char *what, const int32_t *values, uint64_t count,
                                 uint32_t limit)
{
    for (uint64_t i = 0; i < count; i++)
        if ((uint32_t)values[i] >= limit)
            return slc_error(SLUICE_ERR_ARGUMENT, "%s: %s %d at %llu is outside the %u that there are", family, what,
                             values[i], (unsigned long long)i, limit);
    return SLUICE_OK;
}

static sluice_status check_length(const sluice_model *m, const sluice_batch *b)
{
    const char *name = sluice_model_family_name((uint32_t)m->config.family);
    const uint32_t step = m->length_step;
    if (!b->length || b->length == m->length) return SLUICE_OK;
    if (!step)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: a micro-batch of %u tokens a sequence, and the model was made for %u; set "
                         "sluice_model_options.length_step for shorter ones",
                         name, b->length, m->length);
    if (b->length < m->length && b->length % step == 0 && b->length >= m->length_least) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "%s: a micro-batch of %u tokens a sequence; it must be a multiple of %u (length_step) from %u up and below "
        "%u, or %u",
        name, b->length, step, m->length_least, m->length, m->length);
}

static uint32_t length_of(const sluice_model *m, const sluice_batch *b)
{
    return b->length ? b->length : m->length;
}

static uint32_t sequences_of(const sluice_model *m, const sluice_batch *b)
{
    return b->sequences ? (uint32_t)b->sequences : m->batch;
}

static sluice_status check_sequences(const sluice_model *m, const sluice_batch *b)
{
    const uint64_t folded = m->folds ? slc_model_folded(m, length_of(m, b)) : m->batch;
    if (!b->sequences || b->sequences == m->batch || b->sequences == folded) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "%s: a micro-batch of %llu sequences of %u tokens; it must have %u, or with "
                     "sluice_model_options.folds %llu",
                     sluice_model_family_name((uint32_t)m->config.family), (unsigned long long)b->sequences,
                     length_of(m, b), m->batch,
                     (unsigned long long)m->batch * (m->length ? m->length / length_of(m, b) : 1));
}

static sluice_status check_inputs(const sluice_model *m, const sluice_batch *b)
{
    const sluice_model_config *c = &m->config;
    const char *name = sluice_model_family_name((uint32_t)c->family);
    bool sees = slc_model_sees(c);
    if (sees ? !b->pixels : !b->tokens)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: the micro-batch has no %s", name, sees ? "pixels" : "tokens");
    if (b->masked_patches && !c->mask_token)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: masked patches, but the model has no mask token", name);
    if (b->attention_mask && sees) return slc_error(SLUICE_ERR_ARGUMENT, "%s: an attention mask is for text", name);
    if (sees) return SLUICE_OK;
    const uint64_t rows = (uint64_t)sequences_of(m, b) * length_of(m, b);
    sluice_status status = check_range(name, "token", b->tokens, rows, c->vocabulary);
    if (!status && b->types && c->types) status = check_range(name, "token type", b->types, rows, c->types);
    return status;
}

/* Refuses targets that are no class or token of the model; the kernel that reads them relies on this. */
static sluice_status check_targets(const sluice_model *m, const sluice_batch *b)
{
    const sluice_model_config *c = &m->config;
    const char *name = sluice_model_family_name((uint32_t)c->family);
    const uint64_t count = (uint64_t)sequences_of(m, b) * sluice_model_targets(c, length_of(m, b));
    uint32_t limit = c->head == SLUICE_HEAD_CLASSES ? c->classes : c->vocabulary;
    for (uint64_t i = 0; i < count; i++)
        if (b->targets[i] != -1 && (uint32_t)b->targets[i] >= limit)
            return slc_error(SLUICE_ERR_ARGUMENT, "%s: target %d at %llu is outside the %u that there are", name,
                             b->targets[i], (unsigned long long)i, limit);
    return SLUICE_OK;
}

/* Refuses a divisor by whose inverse the head cannot scale. 0 stays, which the head takes for an evaluation. */
static sluice_status check_divisor(double divisor)
{
    if (divisor == 0 || (divisor > 0 && isnormal((float)(1 / divisor)))) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "sluice_batch.loss_divisor is %g; give the targets of the step over the "
                     "number of its micro-batches on all ranks, or 0",
                     divisor);
}

uint32_t sluice_model_shape(const sluice_model *m, uint32_t length)
{
    uint32_t shape = 0;
    while (m && shape < m->shape_count && length && length <= m->shape_lengths[shape]) shape++;
    return shape;
}

/* A micro-batch that is longer than the step's shape would write beyond what its plan has room for. */
sluice_status slc_micro_batch_check_shape(const sluice_model *m, const sluice_batch *b)
{
    const uint32_t shape = sluice_runtime_shape(m->rt);
    if (!shape || sluice_model_shape(m, length_of(m, b)) >= shape) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "%s: a micro-batch of %u tokens a sequence in a step of shape %u, which has %u; give it shape %u",
                     sluice_model_family_name((uint32_t)m->config.family), length_of(m, b), shape,
                     shape <= m->shape_count ? m->shape_lengths[shape - 1] : 0, sluice_model_shape(m, length_of(m, b)));
}

sluice_status slc_micro_batch_check(const sluice_model *m, const sluice_batch *b)
{
    sluice_status status = check_length(m, b);
    if (!status) status = check_sequences(m, b);
    if (!status) status = check_inputs(m, b);
    if (!status) status = check_divisor(b->loss_divisor);
    return status || !b->targets ? status : check_targets(m, b);
}

/* ---- Waiting ---- */

sluice_status slc_micro_batch_queued(sluice_model *m)
{
    return slc_event_record(m->stream, &m->memory->done);
}

/* After a step's end the copies are done already, and the host does not wait. */
sluice_status slc_micro_batch_wait(slc_batch_memory *memory)
{
    return slc_event_done(&memory->done) ? SLUICE_OK : slc_event_synchronize(&memory->done);
}

/* ---- Losses ---- */

double slc_micro_batch_loss(const slc_batch_memory *memory)
{
    double sum = 0;
    uint64_t rows = memory->target_count ? memory->loss_rows : 0; /* else nothing need be there */
    for (uint64_t i = 0; i < rows; i++) sum += memory->losses[i];
    return sum / memory->divisor;
}

static sluice_status collect(sluice_model *m, slc_batch_memory *memory)
{
    sluice_status status = memory->owes ? slc_micro_batch_wait(memory) : SLUICE_OK;
    if (status || !memory->owes) return status;
    m->losses.last = slc_micro_batch_loss(memory);
    m->losses.sum += m->losses.last;
    m->losses.count++;
    memory->owes = false;
    return SLUICE_OK;
}

/* The memories are used in a circle, so the one after the current one was used first. */
sluice_status slc_losses_collect(sluice_model *m)
{
    uint32_t now = (uint32_t)(m->memory - m->memories);
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 1; !status && i <= m->memory_count; i++)
        status = collect(m, &m->memories[(now + i) % m->memory_count]);
    return status;
}

void slc_losses_forget(sluice_model *m)
{
    for (uint32_t i = 0; i < m->memory_count; i++) m->memories[i].owes = false;
    m->losses = (slc_losses){0};
}

/* ---- The arrays ---- */

/* Lays targets out as the head reads them, one for each row: BEiT's first rows have none. */
static void take_targets(sluice_model *m, const sluice_batch *b)
{
    slc_batch_memory *memory = m->memory;
    const int32_t *targets = b->targets;
    uint64_t each = m->targets / m->sequences;
    bool shifted = slc_model_sees(&m->config) && m->config.head == SLUICE_HEAD_TOKENS;
    memory->target_count = memory->picked = 0;
    memory->loss_rows = slc_model_head_rows(m);
    for (uint64_t i = 0; i < m->targets; i++) {
        int32_t target = targets ? targets[i] : -1;
        uint64_t sequence = i / each;
        if (shifted && i % each == 0) memory->targets[sequence * m->tokens] = -1;
        memory->targets[shifted ? i + sequence + 1 : i] = target;
        memory->target_count += target != -1;
    }
    memory->divisor = b->loss_divisor > 0 ? b->loss_divisor : memory->target_count ? (double)memory->target_count : 1;
}

void slc_micro_batch_pick(sluice_model *m)
{
    slc_batch_memory *memory = m->memory;
    const uint64_t step = slc_model_pick_step(m), targets = memory->target_count;
    const uint64_t picked = slc_round_up(targets ? targets : 1, step);
    uint64_t count = 0;
    if (!slc_model_picks(m) || picked >= m->rows) return;
    for (uint64_t row = 0; row < m->rows; row++) {
        if (memory->targets[row] == -1) continue;
        memory->targets[count] = memory->targets[row];
        memory->rows[count++] = (int32_t)row;
    }
    for (; count < picked; count++) {
        memory->targets[count] = -1;
        memory->rows[count] = targets ? memory->rows[targets - 1] : 0;
    }
    for (uint64_t i = 0; memory->pick_order && i < picked; i++) memory->pick_order[i] = (uint32_t)i;
    memory->picked = memory->loss_rows = picked;
}

/* Tells the runtime which rows of a shared token table are looked up, and learns where they lie: each at its own place
 * of the whole table, or all of them in a small table. */
static sluice_status take_places(sluice_model *m, slc_batch_memory *memory, const int32_t *tokens)
{
    const int32_t padding = (int32_t)m->config.padding;
    if (!m->look_up) {
        if (memory->places) memcpy(memory->places, tokens, m->rows * sizeof *tokens);
        m->padding_place = padding;
        return SLUICE_OK;
    }
    sluice_status status = sluice_rows_set(m->look_up, tokens, m->rows, memory->places);
    if (status) return status;
    m->padding_place = -1;
    for (uint64_t i = 0; i < m->rows; i++)
        if (tokens[i] == padding) m->padding_place = memory->places[i];
    return SLUICE_OK;
}

/* Copies what the device will read after the caller has freed it, and makes the orders of places. */
static void keep_inputs(sluice_model *m, const sluice_batch *b)
{
    slc_batch_memory *memory = m->memory;
    const uint64_t numbers = m->rows * sizeof(int32_t);
    if (memory->place_order) slc_embedding_order(m->rows, memory->places, memory->place_order, memory->order_scratch);
    if (memory->types && b->types) memcpy(memory->types, b->types, numbers);
    if (memory->types && !b->types) memset(memory->types, 0, numbers);
    if (memory->type_order) slc_embedding_order(m->rows, memory->types, memory->type_order, memory->order_scratch);
    if (memory->attention_mask && b->attention_mask) memcpy(memory->attention_mask, b->attention_mask, m->rows);
    if (memory->pixels) memcpy(memory->pixels, b->pixels, slc_model_pixels(m) * sizeof *b->pixels);
    if (memory->masked_patches && b->masked_patches) memcpy(memory->masked_patches, b->masked_patches, patches_of(m));
    m->in.types = memory->types;
    m->in.place_order = memory->place_order;
    m->in.type_order = memory->type_order;
    m->in.attention_mask = b->attention_mask ? memory->attention_mask : NULL;
    m->in.pixels = memory->pixels;
    m->in.masked_patches = b->masked_patches ? memory->masked_patches : NULL;
}

sluice_status slc_micro_batch_take(sluice_model *m, const sluice_batch *b)
{
    slc_batch_memory *next = &m->memories[(uint32_t)(m->memory - m->memories + 1) % m->memory_count];
    sluice_status status = next->owes ? collect(m, next) : slc_micro_batch_wait(next);
    slc_model_set_shape(m, sequences_of(m, b), length_of(m, b));
    if (!status && !slc_model_sees(&m->config)) status = take_places(m, next, b->tokens);
    if (status) return status;
    m->memory = next;
    m->masked = b->attention_mask != NULL;
    m->in = (slc_batch_arrays){.places = next->places ? next->places : b->tokens,
                               .types = b->types,
                               .attention_mask = b->attention_mask,
                               .pixels = b->pixels,
                               .masked_patches = b->masked_patches};
    take_targets(m, b);
    if (m->apart) keep_inputs(m, b);
    next->sequences = sequences_of(m, b);
    next->length = length_of(m, b);
    next->masked = m->masked;
    next->padding_place = m->padding_place;
    next->in = m->in;
    return SLUICE_OK;
}

void slc_micro_batch_return_to(sluice_model *m, uint32_t number)
{
    m->memory = &m->memories[number % m->memory_count];
    slc_model_set_shape(m, m->memory->sequences, m->memory->length);
    m->masked = m->memory->masked;
    m->padding_place = m->memory->padding_place;
    m->in = m->memory->in;
}
