/* A group's packets and residues must follow each other without gaps, and each tensor must behave as if it were
 * alone. */
#include "lib/kernels/compress/compress_group.h"
#include "tests/support/kernels/compress_ranks.h"

enum { TENSORS = 40 };

static slc_compress_group draw_group(uint64_t *chance, uint32_t ranks)
{
    const uint64_t limits[] = {2, 20, 1000, 20000};
    slc_compress_shape shapes[TENSORS];
    slc_compress_group group;
    for (uint32_t i = 0; i < TENSORS; i++)
        shapes[i] = (slc_compress_shape){.count = test_random(chance) % limits[test_random(chance) % 4],
                                         .scale_elements = test_random(chance) % 3 ? 0 : 16 * (1 + i),
                                         .ranks = ranks};
    assert_int_equal(slc_compress_group_init(&group, TENSORS, shapes), SLUICE_OK);
    assert_memory_equal(group.shapes, shapes, sizeof shapes);
    return group;
}

static void packets_lie_close(void **state)
{
    (void)state;
    uint64_t chance = 3;
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
        slc_compress_group group = draw_group(&chance, ranks);
        uint64_t at = 0;
        for (uint32_t i = 0; i < group.count; i++) {
            assert_int_equal(group.offsets[i], at);
            if (group.shapes[i].count) at += slc_compress_packet_bytes(&group.shapes[i]);
        }
        assert_int_equal(group.packet_bytes, at);
        assert_true(group.stride >= at && group.stride < at + 64 && group.stride % 64 == 0);
        slc_compress_group_fini(&group);
        slc_compress_group_fini(&group);
    }
}

/* Arrays must be in order, aligned, free of overlap and inside the memory. room: the bytes that bins have. */
static void check_places(const slc_compress_group *group, uint32_t chunks, uint64_t room, const char *memory,
                         uint64_t bytes, const slc_residue *residues)
{
    const char *end = memory;
    for (uint32_t i = 0; i < group->count; i++) {
        const slc_compress_shape *shape = &group->shapes[i];
        const uint64_t lengths[] = {chunks * slc_compress_chunk(shape), chunks * slc_compress_scales(shape)};
        const float *arrays[] = {residues[i].sum, residues[i].scale};
        for (int a = 0; a < 2; a++) {
            assert_true((const char *)arrays[a] >= end && (uintptr_t)arrays[a] % 64 == 0);
            end = (const char *)(arrays[a] + lengths[a]);
        }
        assert_true((const char *)residues[i].bins >= end && (uintptr_t)residues[i].bins % 64 == 0);
        end = (const char *)residues[i].bins + room;
    }
    assert_true(end <= memory + bytes);
}

static void residues_lie_apart(void **state)
{
    (void)state;
    uint64_t chance = 4;
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
        slc_compress_group group = draw_group(&chance, ranks);
        slc_residue workers[TENSORS], servers[TENSORS];
        const uint64_t worker_bytes = slc_compress_group_worker_bytes(&group);
        const uint64_t server_bytes = slc_compress_group_server_bytes(&group);
        char *worker = test_zeroed(worker_bytes), *server = test_zeroed(server_bytes);
        slc_compress_group_residues(&group, worker, NULL, workers, NULL);
        slc_compress_group_residues(&group, NULL, server, NULL, servers);
        check_places(&group, ranks, sizeof(slc_compress_room), worker, worker_bytes, workers);
        check_places(&group, 1, SLC_NORM_BINS * sizeof(int64_t), server, server_bytes, servers);
        assert_ptr_equal(slc_compress_room_of(&workers[0])->bins[0], workers[0].bins);
        test_release(worker), test_release(server);
        slc_compress_group_fini(&group);
    }
}

/* Passes 1 and 2 of a tensor in the group's packets must match those of the same tensor alone. */
static void check_tensor(const slc_compress_group *group, uint32_t i, char *packets, const slc_residue *worker)
{
    const slc_compress_shape *shape = &group->shapes[i];
    exchange e = compress_ranks_create(shape->ranks, shape->count, shape->scale_elements, 1, SLUICE_FP32, SLUICE_FP32);
    parameter alone = frozen_parameter_create(shape->count), together = frozen_parameter_create(shape->count);
    compress_ranks_draw(&e, i);
    compress_rank(&e, 0);
    const slc_compress_input input = {.gradient_dtype = SLUICE_FP32,
                                      .momentum_dtype = SLUICE_FP32,
                                      .gradient = e.gradient[0],
                                      .momentum = e.momentum,
                                      .gradient_factor = clip,
                                      .factor = factor,
                                      .rest = rest};
    char *own = packets + group->offsets[i];
    assert_int_equal(slc_compress_worker(&e.stream, shape, &input, worker, own, group->stride), SLUICE_OK);
    for (uint32_t k = 0; shape->count && k < shape->ranks; k++)
        assert_memory_equal(own + k * group->stride, e.packets[0] + k * e.stride, slc_compress_packet_bytes(shape));

    float *momentum = test_copy(shape->count, e.momentum);
    slc_frozen_range here = frozen_range_of(&e, &together, momentum, true),
                     there = frozen_range_of(&e, &alone, e.momentum, true);
    bool finite = true;
    const slc_compress_results grouped = {shape, own, group->stride, 0, shape->count},
                               single = {shape, e.packets[0], e.stride, 0, shape->count};
    assert_int_equal(slc_compress_apply(&e.stream, &settings, &grouped, &here, &finite), SLUICE_OK);
    assert_int_equal(slc_compress_apply(&e.stream, &settings, &single, &there, &finite), SLUICE_OK);
    assert_memory_equal(together.value, alone.value, shape->count * sizeof(float));
    assert_memory_equal(momentum, e.momentum, shape->count * sizeof(float));
    test_release(momentum), compress_ranks_forget(&e);
    frozen_parameter_destroy(&alone), frozen_parameter_destroy(&together);
    compress_ranks_destroy(&e);
}

static void tensors_are_as_if_alone(void **state)
{
    (void)state;
    uint64_t chance = 5;
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
        slc_compress_group group = draw_group(&chance, ranks);
        slc_residue workers[TENSORS];
        char *worker = test_zeroed(slc_compress_group_worker_bytes(&group)),
             *packets = test_zeroed(ranks * group.stride);
        slc_compress_group_residues(&group, worker, NULL, workers, NULL);
        for (uint32_t i = TENSORS; i-- > 0;) check_tensor(&group, i, packets, &workers[i]);
        test_release(worker), test_release(packets);
        slc_compress_group_fini(&group);
    }
}

static void nothing_to_exchange(void **state)
{
    (void)state;
    slc_compress_group group;
    assert_int_equal(slc_compress_group_init(&group, 2, (slc_compress_shape[]){{0, 0, 3}, {0, 16, 3}}), SLUICE_OK);
    assert_true(group.packet_bytes == 0 && group.stride == 64);
    slc_compress_group_fini(&group);
}

static void wrong_groups(void **state)
{
    (void)state;
    slc_compress_group group;
    const slc_compress_shape shapes[] = {{100, 0, 2}, {100, 0, 3}, {100, 24, 2}};
    assert_int_equal(slc_compress_group_init(&group, 0, shapes), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_compress_group_init(&group, 2, shapes), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_compress_group_init(&group, 1, &shapes[2]), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_compress_group_init(&group, 1, shapes), SLUICE_OK); /* the next one is none of its business */
    slc_compress_group_fini(&group);
    slc_compress_group_fini(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_lie_close),
        cmocka_unit_test(residues_lie_apart),
        cmocka_unit_test(tensors_are_as_if_alone),
        cmocka_unit_test(nothing_to_exchange),
        cmocka_unit_test(wrong_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
