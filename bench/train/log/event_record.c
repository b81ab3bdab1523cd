/* Protocol buffers' wire format: a field is its number and kind in one byte, then its value.
 * tests/command/train/log_test.sh covers this file. */
#include "bench/train/log/event_record.h"

#include "lib/base/hash/crc32c.h"

#include <assert.h>
#include <string.h>

enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5 };
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, SESSION_STATUS = 1, SESSION_START = 1 };

typedef struct {
    char *at;
} writer;

static void put_number(writer *w, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) *w->at++ = (char)(value >> 8 * i);
}

static void put_varint(writer *w, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) *w->at++ = (char)(value | 0x80);
    *w->at++ = (char)value;
}

static void put_key(writer *w, int field, int kind)
{
    put_varint(w, (uint64_t)field << 3 | (uint64_t)kind);
}

static void put_bytes(writer *w, int field, const void *content, size_t bytes)
{
    put_key(w, field, LENGTH);
    put_varint(w, bytes);
    memcpy(w->at, content, bytes);
    w->at += bytes;
}

static uint32_t masked_crc(const void *data, size_t bytes)
{
    const uint32_t crc = slc_crc32c(0, data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Begins a record. Its content follows the 12 bytes of its length; both checksums are known only at its end. */
static writer begin_record(char *out, double time_s)
{
    writer w = {out + 12};
    uint64_t bits;
    memcpy(&bits, &time_s, sizeof bits);
    put_key(&w, EVENT_TIME, EIGHT_BYTES);
    put_number(&w, bits, 8);
    return w;
}

static size_t end_record(writer *w, char *out)
{
    const size_t bytes = (size_t)(w->at - out) - 12;
    writer head = {out};
    put_number(&head, bytes, 8);
    put_number(&head, masked_crc(out, 8), 4);
    put_number(w, masked_crc(out + 12, bytes), 4);
    return (size_t)(w->at - out);
}

static void put_step(writer *w, uint64_t step)
{
    put_key(w, EVENT_STEP, VARINT);
    put_varint(w, step);
}

size_t slc_training_event_version(double time_s, char *out)
{
    static const char version[] = "brain.Event:2";
    writer w = begin_record(out, time_s);
    put_bytes(&w, EVENT_VERSION, version, sizeof version - 1);
    return end_record(&w, out);
}

size_t slc_training_event_restart(double time_s, uint64_t step, char *out)
{
    static const char start[] = {SESSION_STATUS << 3 | VARINT, SESSION_START};
    writer w = begin_record(out, time_s);
    put_step(&w, step);
    put_bytes(&w, EVENT_SESSION, start, sizeof start);
    return end_record(&w, out);
}

static void put_scalar(writer *w, const slc_training_event_scalar *scalar)
{
    char room[SLC_TRAINING_EVENT_TAG + 16];
    writer value = {room};
    const float rounded = (float)scalar->value;
    uint32_t bits;
    assert(strlen(scalar->tag) <= SLC_TRAINING_EVENT_TAG);
    memcpy(&bits, &rounded, sizeof bits);
    put_bytes(&value, VALUE_TAG, scalar->tag, strlen(scalar->tag));
    put_key(&value, VALUE_SIMPLE, FOUR_BYTES);
    put_number(&value, bits, 4);
    put_bytes(w, SUMMARY_VALUE, room, (size_t)(value.at - room));
}

size_t slc_training_event_scalars(double time_s, uint64_t step, const slc_training_event_scalar *scalars, size_t count,
                                  char *out)
{
    char room[SLC_TRAINING_EVENT_BYTES];
    writer summary = {room}, w = begin_record(out, time_s);
    assert(count <= SLC_TRAINING_EVENT_SCALARS);
    for (size_t i = 0; i < count; i++) put_scalar(&summary, &scalars[i]);
    put_step(&w, step);
    put_bytes(&w, EVENT_SUMMARY, room, (size_t)(summary.at - room));
    return end_record(&w, out);
}
