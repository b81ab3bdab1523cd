/* Rows of a table, gathered and reduced, must agree bit for bit with an oracle that knows no blocks, owners or
 * messages, so that results are equal for every path, block size and layout. Wrong shapes and lists must be refused. */
#include "tests/support/comm/rows_op.h"
#include "tests/support/scale.h"

#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { SEGMENT = 1 << 20, PLACE = 128 << 10 };

typedef struct {
    int size, port;
    test_path path;
    uint64_t seed;
} test_case;

typedef struct {
    sluice_world *world;
    slc_comm *comm;
    slc_device *device;
    slc_segment segment;
    char *table, *compact, *lists, *scratch; /* places in it */
    int rank, size;
} rig;

static void rig_open(rig *all, const test_case *test, int rank)
{
    sluice_world_config config = path_config(rank, test->size, test->port, test->path);
    CHECK(!sluice_world_create(&config, &all->world));
    all->comm = slc_world_comm(all->world);
    CHECK(!slc_device_open("cpu", &all->device) && !slc_segment_create(all->device, SEGMENT, &all->segment));
    all->table = all->segment.base;
    all->compact = all->table + PLACE, all->lists = all->compact + PLACE, all->scratch = all->lists + PLACE;
    all->rank = rank, all->size = test->size;
}

static slc_row_list *own_list(const rig *all, const slc_rows *rows)
{
    return (slc_row_list *)(void *)(all->lists + (uint64_t)all->rank * slc_row_list_bytes(rows->most));
}

/* ---- Elements ---- */

static float value_of(uint64_t seed, int rank, uint64_t index)
{
    uint64_t chance = seed * 1000003 + (uint64_t)rank * 7919 + index * 31;
    float value = (float)((double)pick(&chance, 1 << 24) / (1 << 20) - 7.5) * (index % 7 == 0 ? 1e-6f : 1.0f);
    return value;
}

static float rounded(sluice_dtype dtype, float value)
{
    return dtype == SLUICE_BF16 ? sluice_bf16_to_float(sluice_bf16_from_float(value)) : value;
}

static void put(void *to, sluice_dtype dtype, uint64_t at, float value)
{
    if (dtype == SLUICE_BF16)
        ((uint16_t *)to)[at] = sluice_bf16_from_float(value);
    else
        ((float *)to)[at] = value;
}

static bool is_at(const void *from, sluice_dtype dtype, uint64_t at, float value)
{
    uint8_t wanted[4] = {0};
    put(wanted, dtype, 0, value);
    return !memcmp((const char *)from + at * sluice_dtype_bytes(dtype), wanted, sluice_dtype_bytes(dtype));
}

/* Fills this rank's part of a table; everything else becomes not a number. */
static void fill_table(const rig *all, const slc_op *op, slc_layout layout, sluice_dtype dtype, uint64_t seed)
{
    memset(all->table, 0xff, PLACE);
    for (uint64_t e = 0, at; e < op->elements; e++)
        if (rows_owner(op, layout, all->size, e, &at) == all->rank) put(all->table, dtype, at, value_of(seed, -1, e));
}

/* ---- What must hold ---- */

static void run(const rig *all, const slc_op *op)
{
    uint32_t index;
    CHECK(!sluice_world_barrier(all->world)); /* all ranks have filled their memory */
    CHECK(!slc_comm_submit(all->comm, op, 1, &index) && !slc_comm_wait(all->comm, index + 1));
    CHECK(!sluice_world_barrier(all->world));
}

static void check_gather(const rig *all, slc_op op, uint64_t seed, const rows_lists *lists)
{
    const uint64_t columns = op.rows->row_elements;
    const slc_row_list *own = lists->of[all->rank];
    fill_table(all, &op, op.src_layout, op.dtype, seed);
    memset(all->compact, 0xff, PLACE);
    run(all, &op);
    for (uint64_t i = 0; i < own->count * columns; i++)
        CHECK(is_at(all->compact, op.dtype, i, value_of(seed, -1, own->rows[i / columns] * columns + i % columns)));
    for (uint64_t i = own->count * columns * sluice_dtype_bytes(op.dtype); i < PLACE; i++)
        CHECK(all->compact[i] == (char)0xff);
}

static bool find(const slc_row_list *list, uint64_t row, uint64_t *place)
{
    for (*place = 0; *place < list->count && list->rows[*place] < row;) ++*place;
    return *place < list->count && list->rows[*place] == row;
}

/* Sums an element over the ranks that have its row; false: none has. */
static bool sum_of(const slc_op *op, uint64_t seed, const rows_lists *lists, uint64_t element, float *sum)
{
    const uint64_t columns = op->rows->row_elements;
    bool any = false;
    for (int rank = 0; rank < lists->size; rank++) {
        uint64_t place;
        if (!find(lists->of[rank], element / columns, &place)) continue;
        const float value = rounded(op->dtype, value_of(seed, rank, place * columns + element % columns));
        *sum = any ? *sum + value : value;
        any = true;
    }
    return any;
}

static void check_reduce(const rig *all, slc_op op, uint64_t seed, const rows_lists *lists)
{
    const sluice_dtype to = op.widen ? SLUICE_FP32 : op.dtype;
    fill_table(all, &op, op.dst_layout, to, seed);
    for (uint64_t i = 0; i < op.rows->most * op.rows->row_elements; i++)
        put(all->compact, op.dtype, i, value_of(seed, all->rank, i));
    run(all, &op);
    uint64_t owned = 0, at;
    for (uint64_t e = 0; e < op.elements; e++) {
        if (rows_owner(&op, op.dst_layout, all->size, e, &at) != all->rank) continue;
        const float before = rounded(to, value_of(seed, -1, e));
        float sum = 0;
        const bool any = sum_of(&op, seed, lists, e, &sum);
        CHECK(is_at(all->table, to, at, any ? before + op.scale * sum : before));
        owned++;
    }
    for (uint64_t i = 0; i < PLACE / sluice_dtype_bytes(to); i++) /* only this rank's part was touched */
        owned += !memcmp(all->table + i * sluice_dtype_bytes(to), "\xff\xff\xff\xff", sluice_dtype_bytes(to));
    CHECK(owned == PLACE / sluice_dtype_bytes(to));
}

static void check_both(const rig *all, const slc_rows *rows, uint64_t elements, uint64_t block, uint64_t seed)
{
    rows_lists lists = rows_lists_create(seed, rows, all->size);
    memcpy(own_list(all, rows), lists.of[all->rank], slc_row_list_bytes(rows->most));
    const sluice_dtype types[][2] = {
        {SLUICE_FP32, SLUICE_FP32}, {SLUICE_BF16, SLUICE_BF16}, {SLUICE_BF16, SLUICE_FP32}};
    for (int t = 0; t < 3; t++) {
        const slc_layout layout = (seed + (uint64_t)t) % 2 ? SLC_SHARD : SLC_WHOLE;
        check_gather(all, slc_gather_rows_op(rows, types[t][0], elements, block, all->table, layout, all->compact),
                     seed + 1, &lists);
        check_reduce(all,
                     slc_reduce_rows_op(rows, types[t][0], types[t][1], elements, block, all->compact, all->table,
                                        layout, 1.0f / 3),
                     seed + 2, &lists);
    }
    rows_lists_destroy(&lists);
}

/* The scratch just fits these blocks, down to messages of 32 bytes. */
static void attach(rig *all, uint64_t block)
{
    const uint64_t scratch = slc_comm_scratch_bytes(all->comm, block * 4);
    CHECK(all->scratch + scratch <= (char *)all->segment.base + SEGMENT);
    CHECK(!slc_comm_attach(all->comm, &all->segment, all->scratch, scratch));
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    const slc_rows shapes[] = {
        {.row_elements = 1, .row_count = 300, .most = 100}, {.row_elements = 7, .row_count = 333, .most = 333},
        {.row_elements = 48, .row_count = 200, .most = 60}, {.row_elements = 768, .row_count = 9, .most = 5},
        {.row_elements = 5000, .row_count = 3, .most = 3},  {.row_elements = 16, .row_count = 40, .most = 0}};
    const uint64_t grain = 16 * (uint64_t)test->size, most = sizeof shapes / sizeof *shapes;
    for (uint64_t s = 0; s < most; s++) {
        slc_rows rows = shapes[s];
        rows.lists = all.lists;
        const uint64_t grains = rows.row_elements * rows.row_count / grain + 1 + s % 2, blocks[] = {1, 5, 64, grains};
        for (uint64_t b = 0; b < 4; b++) {
            if (test_brief() && (s + b) % 2) continue;
            attach(&all, blocks[b] * grain);
            check_both(&all, &rows, grains * grain, blocks[b] * grain, test->seed * 100 + s);
        }
    }
    close_rank(all.world, &all.segment, all.device);
    return 0;
}

static void check_case(int size, test_path path)
{
    static uint64_t seed = 1;
    test_case test = {.size = size, .port = free_port(), .path = path, .seed = seed++};
    assert_int_equal(run_ranks(size, body, &test), 0);
}

static void test_direct(void **state)
{
    (void)state;
    for (int size = 1; size <= 5; size++) check_case(size, DIRECT);
}

static void test_messages(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size++) check_case(size, MESSAGES);
}

static void test_mixed(void **state)
{
    (void)state;
    for (int size = 3; size <= 5; size++) check_case(size, MIXED);
}

/* ---- Wrong operations ---- */

static void refuse(const rig *all, slc_op op, sluice_status status, const char *part)
{
    op.what = "wrong rows";
    CHECK(slc_comm_submit(all->comm, &op, 1, NULL) == status);
    if (strstr(sluice_last_error(), part) && strstr(sluice_last_error(), "wrong rows")) return;
    fprintf(stderr, "\"%s\" should say \"%s\"\n", sluice_last_error(), part);
    _exit(1);
}

static int refusals(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    const slc_rows good = {.row_elements = 48, .row_count = 20, .most = 10, .lists = all.lists};
    const slc_op op = slc_gather_rows_op(&good, SLUICE_FP32, 960, 96, all.table, SLC_WHOLE, all.compact);
    refuse(&all, op, SLUICE_ERR_ORDER, "attach memory first");
    attach(&all, 96);
    slc_rows rows = good;
    slc_op wrong = op;
    wrong.rows = NULL;
    refuse(&all, wrong, SLUICE_ERR_ARGUMENT, "slc_gather_rows_op");
    wrong.rows = &rows;
    rows.row_count = 21;
    refuse(&all, wrong, SLUICE_ERR_ARGUMENT, "21 rows of 48 elements in a table of 960");
    rows = good, rows.row_elements = 0;
    refuse(&all, wrong, SLUICE_ERR_ARGUMENT, "rows of 0 elements");
    rows = good, rows.most = UINT64_MAX / 8;
    refuse(&all, wrong, SLUICE_ERR_ARGUMENT, "lists of at most");
    rows = good, rows.lists = all.lists + 4;
    refuse(&all, wrong, SLUICE_ERR_ARGUMENT, "a multiple of 64");
    rows = good, rows.lists = (char *)all.segment.base + SEGMENT - 64;
    refuse(&all, wrong, SLUICE_ERR_ARGUMENT, "not in the attached arena");
    rows = good, rows.lists = all.compact + 64;
    refuse(&all, wrong, SLUICE_ERR_ARGUMENT, "overlap");
    refuse(&all, slc_gather_rows_op(&good, SLUICE_FP32, 960, 96, all.table, SLC_WHOLE, all.table + 64),
           SLUICE_ERR_ARGUMENT, "overlap");
    refuse(&all, slc_gather_rows_op(&good, SLUICE_FP32, 960, 0, all.table, SLC_WHOLE, all.compact), SLUICE_ERR_ARGUMENT,
           "in blocks of 0");
    refuse(&all, slc_reduce_rows_op(&good, SLUICE_INT64, SLUICE_INT64, 960, 96, all.compact, all.table, SLC_WHOLE, 1),
           SLUICE_ERR_UNSUPPORTED, "sums of int64");
    if (test->path == MESSAGES)
        refuse(&all, slc_gather_rows_op(&good, SLUICE_FP32, 960, 192, all.table, SLC_WHOLE, all.compact),
               SLUICE_ERR_ARGUMENT, "of scratch");
    CHECK(!sluice_world_barrier(all.world)); /* none of them harmed the world */
    close_rank(all.world, &all.segment, all.device);
    return 0;
}

static void test_refusals(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MESSAGES; path++) {
        test_case test = {.size = 2, .port = free_port(), .path = (test_path)path};
        assert_int_equal(run_ranks(test.size, refusals, &test), 0);
    }
}

/* Makes rank 1's list wrong in the way that the seed says. */
static int malformed(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    attach(&all, 96);
    const slc_rows rows = {.row_elements = 48, .row_count = 20, .most = 10, .lists = all.lists};
    slc_row_list *own = own_list(&all, &rows);
    own->count = 3;
    for (uint32_t i = 0; i < 10; i++) own->rows[i] = 2 * i;
    if (rank == 1 && test->seed == 0) own->count = 11;
    if (rank == 1 && test->seed == 1) own->rows[2] = 20;
    if (rank == 1 && test->seed == 2) own->rows[2] = own->rows[1];
    const char *lines[] = {"wrong rows: rank 1's list has 11 rows, more than the 10 that it may have",
                           "wrong rows: rank 1's list names row 20 of 20, at place 2",
                           "wrong rows: rank 1's list is not ascending: row 2 after row 2, at place 2"};
    slc_op ops[] = {{.kind = SLC_BARRIER}, /* no rank fails before all have submitted */
                    slc_reduce_rows_op(&rows, SLUICE_FP32, SLUICE_FP32, 960, 96, all.compact, all.table, SLC_SHARD, 1)};
    ops[1].what = "wrong rows";
    ops[1].wait[0] = slc_comm_completed(all.comm), ops[1].wait_value[0] = 1;
    uint32_t index;
    CHECK(!slc_comm_submit(all.comm, ops, 2, &index));
    CHECK(slc_comm_wait(all.comm, index + 2) == (rank == 1 ? SLUICE_ERR_FORMAT : SLUICE_ERR_PEER));
    CHECK(strstr(sluice_last_error(), lines[test->seed]));
    close_rank(all.world, &all.segment, all.device);
    return 0;
}

static void test_malformed(void **state)
{
    (void)state;
    for (uint64_t how = 0; how < 3; how++)
        for (int path = DIRECT; path <= MIXED; path++) {
            test_case test = {.size = 3, .port = free_port(), .path = (test_path)path, .seed = how};
            assert_int_equal(run_ranks(test.size, malformed, &test), 0);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct),   cmocka_unit_test(test_messages),  cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_malformed),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
