#include "tests/support/bench/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void scene_begin(scene *s, int size)
{
    memset(s, 0, sizeof *s);
    s->size = size;
    s->now_ns = 100 * (int64_t)SECONDS;
    for (int i = 0; i < size; i++) {
        slc_nccl_process *p = &s->processes[i];
        p->state = SLC_NCCL_RUNNING;
        p->header.state = SLC_RECORD_RUNNING;
        p->header.pid = 100 + i;
        snprintf(p->header.host, sizeof p->header.host, "a");
        p->communicators = s->rows[i];
    }
}

void scene_end(scene *s)
{
    for (int i = 0; i < s->size; i++) free(s->processes[i].entries);
    slc_nccl_findings_free(&s->found);
}

unsigned scene_join(scene *s, int i, uint64_t key, int rank, int size)
{
    slc_nccl_process *p = &s->processes[i];
    unsigned row = p->header.communicators++;
    assert_true(row < MOST_ROWS);
    s->rows[i][row] =
        (slc_record_communicator){.state = SLC_RECORD_ROW_READY, .rank = rank, .size = size, .key = key, .hash = key};
    return row;
}

void scene_join_all(scene *s, uint64_t key)
{
    for (int i = 0; i < s->size; i++) scene_join(s, i, key, i, s->size);
}

static bool is_exchange(const call *c)
{
    return c->operation == SLC_RECORD_SEND || c->operation == SLC_RECORD_RECEIVE;
}

bool is_empty_call(unsigned operation, uint64_t count)
{
    return operation < SLC_RECORD_SPLIT && !count;
}

void scene_call(scene *s, int i, unsigned row_number, call c)
{
    slc_nccl_process *p = &s->processes[i];
    slc_record_communicator *row = &s->rows[i][row_number];
    p->entries = realloc(p->entries, (p->entry_count + 1) * sizeof *p->entries);
    assert_non_null(p->entries);
    slc_nccl_entry *e = &p->entries[p->entry_count++];
    bool split = c.operation == SLC_RECORD_SPLIT, empty = is_empty_call(c.operation, c.count);
    row->calls += !empty;
    *e = (slc_nccl_entry){.index = p->header.entries++,
                          .number = row->calls,
                          .time_ns = s->now_ns += 1000,
                          .count = c.count,
                          .stream = c.stream,
                          .operation = c.operation,
                          .dtype = c.dtype,
                          .redop = c.redop,
                          .group = c.group,
                          .flags = c.flags,
                          .communicator = row_number,
                          .module = SLC_RECORD_NO_MODULE,
                          .peer = c.peer};
    row->returned = row->calls;
    if (is_exchange(&c)) {
        bool sends = c.operation == SLC_RECORD_SEND;
        uint64_t ordinal = ++s->peers[i][row_number][!sends][c.peer];
        *(sends ? &e->receive : &e->send) = ordinal;
        return;
    }
    if (empty) return;
    row->collectives++;
    row->hash = row->hash * SLC_RECORD_HASH_STEP +
                slc_record_hash_term(c.operation, split ? 0 : c.count, c.dtype, c.redop, split ? -1 : c.peer);
}

void scene_all_call(scene *s, unsigned row, call c)
{
    for (int i = 0; i < s->size; i++) scene_call(s, i, row, c);
}

void scene_all_call_times(scene *s, unsigned row, int times)
{
    for (int i = 0; i < times; i++) scene_all_call(s, row, sum_of_64);
}

void scene_lose(scene *s, int i, size_t count)
{
    slc_nccl_process *p = &s->processes[i];
    if (count > p->entry_count) count = p->entry_count;
    if (!count) return;
    p->entry_count -= count;
    p->entries_gone += count;
    memmove(p->entries, p->entries + count, p->entry_count * sizeof *p->entries);
}

void scene_all_quiet(scene *s, double seconds)
{
    for (int i = 0; i < s->size; i++) s->quiet_s[i] = seconds;
}

size_t scene_look(scene *s)
{
    slc_nccl_records records = {.processes = s->processes, .count = (size_t)s->size};
    slc_nccl_findings_free(&s->found);
    assert_int_equal(slc_nccl_compare(&records, s->quiet_s, 10, &s->found), SLUICE_OK);
    return s->found.count;
}

void scene_expect(scene *s, slc_nccl_finding_kind kind, const char *text)
{
    size_t count = scene_look(s);
    if (count != 1 || s->found.rows[0].kind != kind || !strstr(s->found.rows[0].text, text)) {
        for (size_t i = 0; i < count; i++)
            print_error("%s: %s\n", slc_nccl_finding_kind_name(s->found.rows[i].kind), s->found.rows[i].text);
        fail_msg("%zu findings instead of one, \"%s\": %s", count, slc_nccl_finding_kind_name(kind), text);
    }
    json_t *json = slc_nccl_findings_json(&s->found);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json, 0), "text")), s->found.rows[0].text);
    json_decref(json);
}

void scene_expect_nothing(scene *s)
{
    size_t count = scene_look(s);
    for (size_t i = 0; i < count; i++)
        print_error("%s: %s\n", slc_nccl_finding_kind_name(s->found.rows[i].kind), s->found.rows[i].text);
    assert_int_equal(count, 0);
}

void scene_begin_with_three(scene *s)
{
    scene_begin(s, 4);
    scene_join_all(s, 0x3f2a000000000001);
    scene_all_call_times(s, 0, 3);
}
