/* Ranks that read other files under one path, as on hosts without a shared disk, are refused with rank and file before
 * anything is changed, under dp (whose replicas would differ) and fsdp (whose model would be of two halves), with and
 * without SLUICE_ENGINE_CHECK. With it each rank also verifies every file of a checkpoint, and what loading puts into
 * parameters and states is counted as what a program writes, whoever keeps it. */
#include "lib/base/file/file.h"
#include "tests/support/ranks.h"

#include <sluice/model.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <limits.h>
#include <sys/stat.h>

enum { LIMIT_S = 60, LAYERS = 2, ELEMENTS = 1000, TOKENS = 8, READS_MAX = 64 };

static char work[] = "/tmp/sluice-other-files-XXXXXX";

/* ---- A disk that reads differently the second time ---- */

static const char *turns_at_second; /* the end of the file's path; NULL: none does */

sluice_status __real_slc_file_read(const slc_file *file, uint64_t first, size_t count, void *out);
sluice_status __wrap_slc_file_read(const slc_file *file, uint64_t first, size_t count, void *out);
sluice_status __wrap_slc_file_read(const slc_file *file, uint64_t first, size_t count, void *out)
{
    static uint64_t seen[READS_MAX];
    static int seen_count;
    sluice_status status = __real_slc_file_read(file, first, count, out);
    if (status || !first || !count || !turns_at_second || !strstr(file->path, turns_at_second)) return status;
    int i = 0;
    while (i < seen_count && seen[i] != first) i++;
    if (i < seen_count)
        *(unsigned char *)out ^= 1;
    else if (seen_count < READS_MAX)
        seen[seen_count++] = first;
    return status;
}

/* ---- The programs ---- */

typedef struct {
    const char *strategy;
    bool checked;
    bool turns; /* rank 1's disk reads rank 0's file of the checkpoint differently the second time */
    sluice_status status;
    const char *line[2]; /* words of the error */
} trial;

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[LAYERS];
    sluice_param *w[LAYERS];
} program;

static sluice_status open_runtime(program *p, const char *strategy)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = strategy;
    config.schedule = "one_ahead";
    config.fuse = "off"; /* each rank owns a half of each parameter */
    sluice_status status = sluice_world_create(NULL, &p->world);
    return status ? status : sluice_runtime_create(p->world, &config, &p->rt);
}

static sluice_status create(program *p, const char *strategy)
{
    sluice_status status = open_runtime(p, strategy);
    for (int l = 0; !status && l < LAYERS; l++) {
        status = sluice_layer_add(p->rt, l ? "second" : "first", &p->layer[l]);
        if (!status)
            status = sluice_param_add(p->layer[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS),
                                      &p->w[l]);
    }
    return status ? status : sluice_runtime_commit(p->rt);
}

static sluice_status one_step(program *p)
{
    sluice_status status = sluice_step_begin(p->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1));
    for (int l = 0; !status && l < LAYERS; l++) {
        status = sluice_forward_begin(p->layer[l]);
        if (!status) status = sluice_forward_end(p->layer[l]);
    }
    for (int l = LAYERS; !status && l-- > 0;) {
        status = sluice_backward_begin(p->layer[l]);
        float *gradient = status ? NULL : sluice_param_gradient(p->w[l]);
        for (int i = 0; gradient && i < ELEMENTS; i++) gradient[i] += (float)i;
        if (!status) status = sluice_backward_end(p->layer[l]);
    }
    return status ? status : sluice_step_end(p->rt, NULL);
}

static void leave(program *p)
{
    sluice_runtime_destroy(p->rt);
    sluice_world_destroy(p->world);
}

/* Each rank works in a folder of its own. */
static int enter(int rank, const trial *t)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/rank%d", work, rank);
    setenv("SLUICE_ENGINE_CHECK", t->checked ? "on" : "off", 1);
    setenv("SLUICE_LOG_LEVEL", "error", 1);
    return chdir(folder);
}

/* A rank that is told of another's finding has its words. */
static int check_found(const trial *t, sluice_status status)
{
    const bool told = t->turns && status == SLUICE_ERR_PEER && strstr(sluice_last_error(), " failed: ");
    RANK_CHECK(status == t->status || told);
    for (int i = 0; i < 2 && t->line[i]; i++) RANK_CHECK(strstr(sluice_last_error(), t->line[i]));
    return 0;
}

/* Loads; what was refused before it changed anything leaves a runtime that trains. */
static int load_checkpoint(int rank, int size, void *context)
{
    const trial *t = context;
    program p = {0};
    (void)size;
    RANK_CHECK(!enter(rank, t));
    RANK_CHECK(!create(&p, t->strategy));
    if (t->turns && rank == 1) turns_at_second = "rank-0000.slc";
    if (check_found(t, sluice_checkpoint_load(p.rt, "run", NULL, NULL))) return 1;
    RANK_CHECK(sluice_runtime_step(p.rt) == (t->status && !t->turns ? 0 : 2));
    if (t->turns) (void)sluice_world_barrier(p.world); /* a rank that left now would be what others hear of */
    if (!t->turns) RANK_CHECK(!one_step(&p) && !sluice_runtime_sync(p.rt));
    leave(&p);
    return 0;
}

static sluice_status create_model(program *p, const char *strategy, sluice_model **out)
{
    const sluice_model_config config =
        SLUICE_INIT(sluice_model_config, .family = SLUICE_GPT2, .layers = 1, .channels = 16, .heads = 2, .hidden = 32,
                    .vocabulary = 32, .context = TOKENS, .epsilon = 1e-5, .gelu_tanh = true);
    const sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = 1, .length = TOKENS);
    sluice_status status = open_runtime(p, strategy);
    if (!status) status = sluice_model_create(p->rt, &config, &options, out);
    return status ? status : sluice_runtime_commit(p->rt);
}

static int load_weights(int rank, int size, void *context)
{
    const trial *t = context;
    program p = {0};
    sluice_model *model = NULL;
    const int32_t tokens[TOKENS] = {1, 2, 3, 4, 5, 6, 7, 8};
    double loss;
    (void)size;
    RANK_CHECK(!enter(rank, t));
    RANK_CHECK(!create_model(&p, t->strategy, &model));
    if (check_found(t, sluice_model_load(model, "weights", false))) return 1;
    RANK_CHECK(!sluice_model_init(model, 1)); /* nothing had been changed */
    RANK_CHECK(!sluice_model_evaluate(model, &SLUICE_INIT(sluice_batch, .tokens = tokens), &loss, NULL));
    sluice_model_destroy(model);
    leave(&p);
    return 0;
}

/* ---- Files ---- */

static int write_checkpoint(int rank, int size, void *context)
{
    program p = {0};
    float values[ELEMENTS];
    char folder[PATH_MAX];
    const int seed = *(const int *)context;
    (void)rank, (void)size;
    RANK_CHECK(!create(&p, "fsdp"));
    for (int i = 0; i < ELEMENTS; i++) values[i] = (float)(i * seed % 97);
    for (int l = 0; l < LAYERS; l++) RANK_CHECK(!sluice_param_write(p.w[l], 0, ELEMENTS, values));
    RANK_CHECK(!one_step(&p) && !one_step(&p));
    snprintf(folder, sizeof folder, "%s/run%d", work, seed);
    RANK_CHECK(!sluice_checkpoint_save(p.rt, folder, NULL, 0));
    leave(&p);
    return 0;
}

static int write_weights(int rank, int size, void *context)
{
    program p = {0};
    sluice_model *model = NULL;
    (void)rank, (void)size, (void)context;
    sluice_status status = create_model(&p, "dp", &model);
    if (status == SLUICE_ERR_UNSUPPORTED) printf("SKIP: weights of models: %s\n", sluice_last_error());
    RANK_CHECK(!status || status == SLUICE_ERR_UNSUPPORTED);
    if (!status) RANK_CHECK(!sluice_model_init(model, 1) && !chdir(work) && !mkdir("weights", 0700));
    if (!status) RANK_CHECK(!sluice_model_save(model, "weights"));
    sluice_model_destroy(model);
    leave(&p);
    return 0;
}

static int shell(const char *command)
{
    char line[2 * PATH_MAX];
    snprintf(line, sizeof line, "cd %s && %s", work, command);
    return system(line);
}

static int make_files(void **state)
{
    int seeds[] = {3, 5};
    (void)state;
    if (!mkdtemp(work)) return -1;
    for (int i = 0; i < 2; i++)
        if (run_ranks(2, write_checkpoint, &seeds[i], LIMIT_S)) return -1;
    return run_ranks(1, write_weights, NULL, LIMIT_S);
}

static int remove_files(void **state)
{
    (void)state;
    return shell("rm -r \"$PWD\"");
}

static bool has_weights(void)
{
    return !shell("test -d weights");
}

/* Both ranks get the same files. */
static void same_files(void)
{
    assert_int_equal(shell("rm -rf rank0 rank1 && mkdir rank0 && cp -r run3 rank0/run"), 0);
    if (has_weights()) assert_int_equal(shell("cp -r weights rank0"), 0);
    assert_int_equal(shell("cp -r rank0 rank1"), 0);
}

/* Flips the lowest bit of the fp32 that ends `from_end` bytes before the file of rank 1 does. */
static void flip_bit(const char *name, long from_end)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/rank1/%s", work, name);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -4 - from_end, SEEK_END), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

/* ---- The tests ---- */

/* Tries the loading under both strategies, with the check and, if `unchecked`, without it. */
static void tries(rank_function load, trial t, bool unchecked)
{
    for (int i = 0; i < 4; i++) {
        t.strategy = i % 2 ? "fsdp" : "dp";
        t.checked = i < 2;
        if (t.checked || unchecked) assert_int_equal(run_ranks(2, load, &t, LIMIT_S), 0);
    }
}

static void equal_checkpoints_go_on(void **state)
{
    (void)state;
    same_files();
    tries(load_checkpoint, (trial){.status = SLUICE_OK}, true);
}

static void a_checkpoint_of_another_seed_is_refused(void **state)
{
    (void)state;
    same_files();
    assert_int_equal(shell("rm -r rank1/run && cp -r run5 rank1/run"), 0);
    tries(load_checkpoint,
          (trial){.status = SLUICE_ERR_MISMATCH, .line = {"rank 1 has another checkpoint run/step-000002", "manifest"}},
          true);
}

/* A rank verifies its share of the files, and with the check all of them: a bit of a value, of a state. */
static void a_bit_of_a_checkpoint_is_named(void **state)
{
    (void)state;
    same_files();
    flip_bit("run/step-000002/rank-0001.slc", 0);
    tries(load_checkpoint,
          (trial){.status = SLUICE_ERR_FORMAT, .line = {"run/step-000002/rank-0001.slc: damaged", "as rank 1 reads"}},
          true);
    for (int value = 0; value < 2; value++) {
        same_files();
        flip_bit("run/step-000002/rank-0000.slc", value ? 4 * LAYERS * 3 * ELEMENTS / 2 : 0);
        tries(load_checkpoint,
              (trial){.status = SLUICE_ERR_FORMAT,
                      .line = {"run/step-000002/rank-0000.slc: damaged",
                               value ? "of \"first.w\" do" : "of \"second.w\", state exp_avg_sq do"}},
              false);
    }
}

/* The check counts what has been put, and not what had its checksum before: rank 0's part under fsdp too. */
static void what_loading_puts_is_compared(void **state)
{
    (void)state;
    same_files();
    tries(load_checkpoint,
          (trial){.turns = true,
                  .status = SLUICE_ERR_MISMATCH,
                  .line = {"parameter \"first.w\": rank 1 has written other data than rank 0", NULL}},
          false);
}

static void other_weights_are_refused(void **state)
{
    (void)state;
    if (!has_weights()) {
        puts("SKIP: ranks with other weights: no pretrained weights are at hand");
        skip();
    }
    same_files();
    flip_bit("weights/model.safetensors", 0);
    tries(load_weights,
          (trial){.status = SLUICE_ERR_MISMATCH, .line = {"rank 1 has another weights/model.safetensors than rank 0"}},
          true);
    same_files();
    assert_int_equal(shell("sed -i 's/\"layer_norm_epsilon\": [^,]*/\"layer_norm_epsilon\": 1e-06/' "
                           "rank1/weights/config.json && ! cmp -s rank0/weights/config.json rank1/weights/config.json"),
                     0);
    tries(load_weights,
          (trial){.status = SLUICE_ERR_MISMATCH, .line = {"rank 1 has another configuration in weights (config.json)"}},
          true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_checkpoints_go_on),        cmocka_unit_test(a_checkpoint_of_another_seed_is_refused),
        cmocka_unit_test(a_bit_of_a_checkpoint_is_named), cmocka_unit_test(what_loading_puts_is_compared),
        cmocka_unit_test(other_weights_are_refused),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
