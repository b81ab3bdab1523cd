/* A runtime's memory on the device cuda, between steps: parameters and states come and go to the bit, checkpoints move
 * between host and device, plans change under them, and what the device cannot do is refused with a line. The tests are
 * skipped if this build or machine lacks the device; under SLUICE_EMULATED_GUARD the host cannot touch its memory.
 */
#include "lib/base/numbers/random.h"
#include "lib/device/device.h"
#include "lib/optim/optimizers.h"
#include "tests/support/base/folder.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <sluice/sluice.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>

/* The largest is more than both halves of the block that copies go through, and ends in the middle of one. */
enum { LAYERS = 3, PARAMS = 2 * LAYERS, STATES = 2, ARRAYS = 1 + STATES, LONGEST = 1300001 };
static const uint64_t counts[PARAMS] = {1000, 17, 33, LONGEST, 4097, 640};
static const char *const states[STATES] = {"first", "second"};
static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};

static bool is_frozen(uint32_t param)
{
    return param == 4;
}

static float *values, *again;

static sluice_status no_update(const sluice_update *update, void *context)
{
    (void)update, (void)context;
    return SLUICE_OK;
}

static const sluice_optimizer keeper = {.struct_size = sizeof(sluice_optimizer),
                                        .name = "keeper",
                                        .state_count = STATES,
                                        .state_name = {"first", "second"},
                                        .update = no_update,
                                        .mixed_precision = true,
                                        .on_stream = true};

/* ---- A model ---- */

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_param *param[PARAMS];
} model;

static sluice_config config_of(const char *device, const char *strategy, sluice_dtype precision)
{
    sluice_config config;
    sluice_config_init(&config);
    config.device = device;
    config.strategy = strategy;
    config.schedule = "serial";
    config.precision = precision;
    config.optimizer = &keeper;
    config.block_bytes = 1 << 16;
    return config;
}

static sluice_status add_layer(model *m, uint32_t l)
{
    char name[16];
    sluice_layer *layer;
    sluice_activation *activation;
    snprintf(name, sizeof name, "h.%u", l);
    sluice_status status = sluice_layer_add(m->rt, name, &layer);
    if (!status)
        status = sluice_activation_add(
            layer, &SLUICE_INIT(sluice_activation_desc, .name = "a", .bytes = 10000 * (l + 1), .last = SLUICE_BACKWARD),
            &activation);
    for (uint32_t p = 2 * l; !status && p < 2 * l + 2; p++)
        status = sluice_param_add(layer,
                                  &SLUICE_INIT(sluice_param_desc, .name = p % 2 ? "bias" : "weight", .count = counts[p],
                                               .frozen = is_frozen(p)),
                                  &m->param[p]);
    return status;
}

static void destroy(model *m)
{
    sluice_runtime_destroy(m->rt);
    sluice_world_destroy(m->world);
    *m = (model){0};
}

static sluice_status build(model *m, const sluice_config *config)
{
    *m = (model){0};
    sluice_status status = sluice_world_create(NULL, &m->world);
    if (!status) status = sluice_runtime_create(m->world, config, &m->rt);
    for (uint32_t l = 0; !status && l < LAYERS; l++) status = add_layer(m, l);
    return status ? status : sluice_runtime_commit(m->rt);
}

static void make(model *m, const char *device, const char *strategy, sluice_dtype precision)
{
    const sluice_config config = config_of(device, strategy, precision);
    if (build(m, &config)) fail_msg("%s", sluice_last_error());
}

/* A frozen parameter may lie in bf16 alone, so its content has few bits. */
static float content(uint64_t seed, uint32_t param, uint32_t array, uint64_t element)
{
    uint32_t x = (uint32_t)(element * 40503 + seed * 97 + param * ARRAYS + array) * 2654435761u;
    x ^= x >> 15;
    return is_frozen(param) ? (float)(x >> 25) : (float)(int32_t)(x * 2246822519u) * 0x1p-31f;
}

static sluice_status transfer(model *m, uint32_t p, uint32_t array, uint64_t first, uint64_t count, float *data,
                              bool write)
{
    if (!array)
        return write ? sluice_param_write(m->param[p], first, count, data)
                     : sluice_param_read(m->param[p], first, count, data);
    return write ? sluice_param_state_write(m->param[p], states[array - 1], first, count, data)
                 : sluice_param_state_read(m->param[p], states[array - 1], first, count, data);
}

#define EACH_ARRAY(p, a)                                                                                               \
    for (uint32_t p = 0; p < PARAMS; p++)                                                                              \
        for (uint32_t a = 0; a < (is_frozen(p) ? 1 : ARRAYS); a++)

static void fill(model *m, uint64_t seed)
{
    EACH_ARRAY(p, a)
    {
        for (uint64_t i = 0; i < counts[p]; i++) values[i] = content(seed, p, a, i);
        assert_int_equal(transfer(m, p, a, 0, counts[p], values, true), SLUICE_OK);
    }
}

static void check(model *m, uint64_t seed)
{
    EACH_ARRAY(p, a)
    {
        for (uint64_t i = 0; i < counts[p]; i++) values[i] = content(seed, p, a, i);
        memset(again, 0xff, counts[p] * sizeof *again);
        assert_int_equal(transfer(m, p, a, 0, counts[p], again, false), SLUICE_OK);
        assert_memory_equal(again, values, counts[p] * sizeof *values);
    }
}

/* Every test but that of ranks begins with this: threads of a device do not survive a fork. */
static void need_gpu(void)
{
    slc_device *device;
    if (!slc_device_describe("cuda")) {
        puts("SKIP: built without the device cuda");
        skip();
    }
    if (slc_device_open("cuda", &device)) {
        printf("SKIP: %s\n", sluice_last_error());
        skip();
    }
    print_message("device %s\n", slc_device_describe("cuda"));
    slc_device_close(device);
}

/* ---- Parameters and states ---- */

static void ranges_are_written(model *m, uint64_t seed)
{
    for (uint32_t round = 0; round < test_rounds(8); round++) {
        uint32_t block[4];
        slc_random_block(test_seed(seed), 77, round, block);
        const uint32_t p = block[0] % PARAMS, array = is_frozen(p) ? 0 : block[1] % ARRAYS;
        const uint64_t first = block[2] % counts[p], count = block[3] % (counts[p] - first) + 1;
        assert_int_equal(transfer(m, p, array, 0, counts[p], values, false), SLUICE_OK);
        for (uint64_t i = first; i < first + count; i++) values[i] = content(seed + 1, p, array, i);
        assert_int_equal(transfer(m, p, array, first, count, values + first, true), SLUICE_OK);
        assert_int_equal(transfer(m, p, array, 0, counts[p], again, false), SLUICE_OK);
        assert_memory_equal(again, values, counts[p] * sizeof *values);
        assert_int_equal(transfer(m, p, array, first, count, again, false), SLUICE_OK);
        assert_memory_equal(again, values + first, count * sizeof *values);
    }
}

static void arrays_come_back_to_the_bit(void **state)
{
    (void)state;
    need_gpu();
    for (uint32_t s = 0; s < 4; s++)
        for (sluice_dtype precision = SLUICE_FP32; precision <= SLUICE_BF16; precision++) {
            if (test_brief() && (s + precision) % 2) continue;
            model gpu, host;
            char of_gpu[65], of_host[65];
            make(&gpu, "cuda", strategies[s], precision);
            make(&host, "cpu", strategies[s], precision);
            for (uint32_t p = 0; p < PARAMS; p++) { /* states begin as zeros */
                if (is_frozen(p)) continue;
                assert_int_equal(transfer(&gpu, p, 2, 0, counts[p], again, false), SLUICE_OK);
                for (uint64_t i = 0; i < counts[p]; i++) assert_true(again[i] == 0 && !signbit(again[i]));
            }
            fill(&gpu, 3 + s);
            fill(&host, 3 + s);
            check(&gpu, 3 + s);
            ranges_are_written(&gpu, 3 + s);
            ranges_are_written(&host, 3 + s);
            assert_int_equal(sluice_runtime_weights_sha256(gpu.rt, of_gpu), SLUICE_OK);
            assert_int_equal(sluice_runtime_weights_sha256(host.rt, of_host), SLUICE_OK);
            assert_string_equal(of_gpu, of_host);
            destroy(&gpu);
            destroy(&host);
        }
}

/* A frozen parameter in bf16 has no master: it is rounded as the host rounds it, with NaN and infinities. */
static void rounding_is_the_hosts(void **state)
{
    (void)state;
    need_gpu();
    static const uint32_t odd[] = {0x7f800000, 0xff800000, 0x7fc00001, 0x7f800001, 0x80000000,
                                   0x00000001, 0x7f7fffff, 0x3f808000, 0x3f818000, 0x3f807fff};
    model m;
    const uint32_t p = 4;
    make(&m, "cuda", "dp", SLUICE_BF16);
    for (uint64_t i = 0; i < counts[p]; i++) {
        uint32_t block[4];
        slc_random_block(test_seed(5), 5, i, block);
        memcpy(&values[i], i < sizeof odd / sizeof *odd ? &odd[i] : block, 4);
    }
    assert_int_equal(sluice_param_write(m.param[p], 0, counts[p], values), SLUICE_OK);
    assert_int_equal(sluice_param_read(m.param[p], 0, counts[p], again), SLUICE_OK);
    for (uint64_t i = 0; i < counts[p]; i++) values[i] = sluice_bf16_to_float(sluice_bf16_from_float(values[i]));
    assert_memory_equal(again, values, counts[p] * sizeof *values);
    destroy(&m);
}

/* ---- Checkpoints ---- */

static void assert_equal_files(const char *a, const char *b)
{
    FILE *files[2] = {fopen(a, "rb"), fopen(b, "rb")};
    assert_true(files[0] && files[1]);
    for (int x = 0, y; x != EOF;) {
        x = fgetc(files[0]), y = fgetc(files[1]);
        if (x != y) fail_msg("%s and %s differ at byte %ld", a, b, ftell(files[0]) - 1);
    }
    fclose(files[0]);
    fclose(files[1]);
}

/* Checkpoints must go from the host to the device and back, under another strategy each time. */
static void checkpoints_go_both_ways(void **state)
{
    (void)state;
    need_gpu();
    for (sluice_dtype precision = test_brief() ? SLUICE_BF16 : SLUICE_FP32; precision <= SLUICE_BF16; precision++) {
        char dir[64], host_dir[80], gpu_dir[80], a[128], b[128];
        model m;
        make_own_folder(dir);
        snprintf(host_dir, sizeof host_dir, "%s/host", dir);
        snprintf(gpu_dir, sizeof gpu_dir, "%s/gpu", dir);
        make(&m, "cpu", "oss", precision);
        fill(&m, 21);
        assert_int_equal(sluice_runtime_step_set(m.rt, 40), SLUICE_OK);
        assert_int_equal(sluice_checkpoint_save(m.rt, host_dir, NULL, 0), SLUICE_OK);
        destroy(&m);

        make(&m, "cuda", "fsdp", precision);
        fill(&m, 22);
        if (sluice_checkpoint_load(m.rt, host_dir, NULL, NULL)) fail_msg("%s", sluice_last_error());
        assert_int_equal(sluice_runtime_step(m.rt), 40);
        check(&m, 21);
        assert_int_equal(sluice_checkpoint_save(m.rt, gpu_dir, NULL, 0), SLUICE_OK);
        destroy(&m);
        snprintf(a, sizeof a, "%s/step-000040/rank-0000.slc", host_dir);
        snprintf(b, sizeof b, "%s/step-000040/rank-0000.slc", gpu_dir);
        assert_equal_files(a, b);

        make(&m, "cpu", "dp", precision);
        if (sluice_checkpoint_load(m.rt, gpu_dir, NULL, NULL)) fail_msg("%s", sluice_last_error());
        check(&m, 21);
        destroy(&m);
        remove_tree(dir);
    }
}

/* ---- Plans ---- */

static sluice_memory_report memory_of(const model *m)
{
    sluice_memory_report report = SLUICE_INIT(sluice_memory_report);
    assert_int_equal(sluice_runtime_memory(m->rt, &report), SLUICE_OK);
    return report;
}

/* Without a budget the arena is as large as the plan, so that some plans need a larger one. */
static void plans_change_under_the_arrays(void **state)
{
    (void)state;
    need_gpu();
    static const char *const schedules[] = {"serial", "one_ahead", "bucketed", "random"};
    const uint32_t scaled = test_rounds(8), rounds = scaled < 4 ? 4 : scaled; /* some of four plans grow */
    model m;
    uint32_t grown = 0;
    make(&m, "cuda", "fsdp", SLUICE_BF16);
    fill(&m, 9);
    for (uint32_t i = 0; i < rounds; i++) {
        const uint64_t before = memory_of(&m).planned_bytes;
        char strategy[32];
        snprintf(strategy, sizeof strategy, "random:%u", i);
        if (sluice_runtime_replan(m.rt, i == 0 ? "dp" : strategy, schedules[i % 4], 0))
            fail_msg("%s", sluice_last_error());
        check(&m, 9);
        const sluice_memory_report report = memory_of(&m);
        assert_true(report.peak_bytes <= report.planned_bytes);
        grown += report.planned_bytes > before;
    }
    assert_true(grown > 0);
    destroy(&m);
}

/* With a budget there is room from the start for all plans that stay in it. */
static void a_budget_is_room_for_all_plans(void **state)
{
    (void)state;
    need_gpu();
    sluice_config config = config_of("cuda", "dp", SLUICE_FP32);
    model m;
    config.budget_of_dp = 1.5;
    assert_int_equal(build(&m, &config), SLUICE_OK);
    fill(&m, 30);
    for (uint32_t s = 0; s < 4; s++) {
        if (sluice_runtime_replan(m.rt, strategies[3 - s], "one_ahead", 0)) fail_msg("%s", sluice_last_error());
        check(&m, 30);
    }
    const sluice_memory_report report = memory_of(&m);
    assert_true(report.peak_bytes <= report.budget_bytes);
    destroy(&m);
}

static void what_is_pinned_is_reported(void **state)
{
    (void)state;
    need_gpu();
    model m;
    make(&m, "cuda", "dp", SLUICE_FP32);
    const uint64_t pinned = memory_of(&m).pinned_bytes; /* the block for copies, and a page or so of words */
    assert_in_range(pinned, (8 << 20) + 1, (8 << 20) + 4096);
    slc_device *device;
    slc_pinned more;
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_OK);
    assert_int_equal(slc_pinned_create(device, 12345, &more), SLUICE_OK); /* as a model's inputs are */
    assert_int_equal(memory_of(&m).pinned_bytes, pinned + 12345);
    slc_pinned_destroy(&more);
    slc_device_close(device);
    assert_int_equal(memory_of(&m).pinned_bytes, pinned);
    assert_string_equal(sluice_runtime_device(m.rt), slc_device_describe("cuda"));
    destroy(&m);
    make(&m, "cpu", "dp", SLUICE_FP32);
    assert_int_equal(memory_of(&m).pinned_bytes, 0);
    assert_string_equal(sluice_runtime_device(m.rt), "cpu");
    destroy(&m);
}

/* ---- What is refused ---- */

static void assert_refused(const sluice_config *config, sluice_status expected, const char *line)
{
    model m;
    assert_int_equal(build(&m, config), expected);
    if (!strstr(sluice_last_error(), line)) fail_msg("\"%s\" is not in \"%s\"", line, sluice_last_error());
    destroy(&m);
}

static int two_ranks(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    const sluice_config config = config_of("cuda", "dp", SLUICE_FP32);
    sluice_world *world;
    sluice_runtime *rt;
    RANK_CHECK(!sluice_world_create(NULL, &world));
    RANK_CHECK(sluice_runtime_create(world, &config, &rt) == SLUICE_ERR_UNSUPPORTED);
    const char *line =
        !slc_device_describe("cuda") ? "device \"cuda\" is not in this build; use \"cpu\""
        : strstr(slc_device_describe("cuda"), "emulated")
            ? "device \"cuda\": 2 ranks with memory of GPUs need a transport with collectives there, and this "
              "world's is \"ucx\": set SLUICE_COMM_TRANSPORT=nccl"
            : "device \"cuda\": ";
    RANK_CHECK(strstr(sluice_last_error(), line));
    sluice_world_destroy(world);
    return 0;
}

static void two_ranks_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, two_ranks, NULL, 60), 0);
}

static void what_looks_at_host_memory_is_refused(void **state)
{
    (void)state;
    need_gpu();
    sluice_config config = config_of("cuda", "dp", SLUICE_FP32);
    config.tied = SLUICE_TIED_SPLIT;
    assert_refused(&config, SLUICE_ERR_UNSUPPORTED, "device \"cuda\": tied split gathers rows on the host");
    sluice_optimizer of_host = keeper;
    of_host.on_stream = false;
    config = config_of("cuda", "dp", SLUICE_FP32);
    config.optimizer = &of_host;
    assert_refused(&config, SLUICE_ERR_UNSUPPORTED,
                   "device \"cuda\": optimizer keeper works on host memory; give one whose on_stream is set");
    setenv("SLUICE_ENGINE_CHECK", "on", 1);
    config = config_of("cuda", "dp", SLUICE_FP32);
    assert_refused(&config, SLUICE_ERR_UNSUPPORTED, "SLUICE_ENGINE_CHECK is for the device cpu alone");
    unsetenv("SLUICE_ENGINE_CHECK");
}

static void what_the_machine_lacks_is_said(void **state)
{
    (void)state;
    need_gpu();
    if (!strstr(slc_device_describe("cuda"), "emulated")) {
        puts("SKIP: a machine that lacks a GPU or memory: only the emulated device can be one");
        skip();
    }
    sluice_config config = config_of("cuda", "dp", SLUICE_FP32);
    setenv("SLUICE_EMULATED_DEVICES", "0", 1);
    assert_refused(&config, SLUICE_ERR_UNSUPPORTED, "device \"cuda\": no GPU on this machine");
    unsetenv("SLUICE_EMULATED_DEVICES");
    setenv("SLUICE_EMULATED_CAPABILITY", "75", 1);
    assert_refused(&config, SLUICE_ERR_UNSUPPORTED, "emulated has compute capability 7.5; 8.0 or more is needed");
    unsetenv("SLUICE_EMULATED_CAPABILITY");
    setenv("SLUICE_EMULATED_MEMORY", "1000000", 1);
    setenv("SLUICE_CUDA_DEVICE", "0", 1);
    assert_refused(
        &config, SLUICE_ERR_MEMORY,
        "1000000 of 1000000 are free on GPU 0 (chosen by SLUICE_CUDA_DEVICE); give a smaller config.budget_bytes");
    unsetenv("SLUICE_CUDA_DEVICE");
    unsetenv("SLUICE_EMULATED_MEMORY");
}

/* A plan for which there is no room next to the one that runs is refused, and that one goes on. */
static void a_plan_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    need_gpu();
    if (!strstr(slc_device_describe("cuda"), "emulated")) {
        puts("SKIP: a machine with too little memory: only the emulated device can be one");
        skip();
    }
    model m;
    char bytes[32];
    make(&m, "cuda", "dp", SLUICE_FP32);
    fill(&m, 11);
    const uint64_t before = memory_of(&m).planned_bytes;
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)(before + (1 << 16)));
    setenv("SLUICE_EMULATED_MEMORY", bytes, 1);
    assert_int_equal(sluice_runtime_replan(m.rt, "fsdp", "one_ahead", 0), SLUICE_ERR_MEMORY);
    if (!strstr(sluice_last_error(), "the new plan's arena, next to the old one's"))
        fail_msg("%s", sluice_last_error());
    unsetenv("SLUICE_EMULATED_MEMORY");
    check(&m, 11);
    if (sluice_runtime_replan(m.rt, "fsdp", "one_ahead", 0)) fail_msg("%s", sluice_last_error());
    assert_true(memory_of(&m).planned_bytes > before);
    check(&m, 11);
    destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ranks_are_refused), /* the first: it forks */
        cmocka_unit_test(arrays_come_back_to_the_bit),
        cmocka_unit_test(rounding_is_the_hosts),
        cmocka_unit_test(checkpoints_go_both_ways),
        cmocka_unit_test(plans_change_under_the_arrays),
        cmocka_unit_test(a_budget_is_room_for_all_plans),
        cmocka_unit_test(what_is_pinned_is_reported),
        cmocka_unit_test(what_looks_at_host_memory_is_refused),
        cmocka_unit_test(what_the_machine_lacks_is_said),
        cmocka_unit_test(a_plan_that_does_not_fit_is_refused),
    };
    values = malloc(LONGEST * sizeof *values);
    again = malloc(LONGEST * sizeof *again);
    if (!values || !again) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(values);
    free(again);
    return failed;
}
