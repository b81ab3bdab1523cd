/* Every public function is called at every moment of a program's life at which it does not belong there, and with NULL
 * for every pointer. The table says what comes back, as the headers promise it; nothing crashes, and afterwards the
 * runtime goes on, or what follows it does. A function of the headers without a row fails the test. */
#include "tests/calls/public_calls.h"
#include "tests/support/base/folder.h"
#include "tests/support/public_functions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/stat.h>

enum { LIMIT_S = 120 };

static char work[] = "/tmp/sluice-every-call-XXXXXX";

/* ---- The table ---- */

/* `nulls` has a letter for each pointer of the function, which says what comes back if it is NULL, at the first
 * moment of the row at which the call belongs there: a letter of the columns, or "." for one that may be NULL and whose
 * effect the programs (every_moment.h) have. The columns are the moments in their order:
 *   k  it belongs there: SLUICE_OK, or an answer       -  the same, with an effect that they have
 *   N  no answer: 0, false, NULL, "none"
 *   O  ORDER, and everything goes on                   X  ORDER, and the runtime has failed
 *   A  ARGUMENT                                        U  UNSUPPORTED
 *   F  the failure of the runtime                      P  PEER
 *   (blank) such a program has no such moment */
typedef struct {
    kind kind;
    const char *name;
    int (*call)(program *p, int null);
    const char *nulls, *cells;
} row;

#define ALWAYS "kkkkkkkkkkkkk"
#define IN_A_HEALTHY_WORLD "kkkkkkkkkkkkP"
#define BEFORE_COMMIT "kOOOOOOOOOFFO"
#define BETWEEN_STEPS "OkOOOOOOOOFFP"
#define AFTER_COMMIT "OkkkkkkkkkkOk"
#define ANSWERS_AFTER_COMMIT "NkkkkkkkkkkNk"

static const row table[] = {
    /*                                                                     RCSfrdbEevFGP */
    {HOOKS, "sluice_version", version, "", ALWAYS},
    {HOOKS, "sluice_status_name", status_name, "", ALWAYS},
    {HOOKS, "sluice_last_error", last_error, "", ALWAYS},
    {HOOKS, "sluice_dtype_bytes", dtype_bytes, "", ALWAYS},
    {HOOKS, "sluice_dtype_name", dtype_name, "", ALWAYS},
    {HOOKS, "sluice_bf16_from_float", bf16_from_float, "", ALWAYS},
    {HOOKS, "sluice_bf16_to_float", bf16_to_float, "", ALWAYS},

    {HOOKS, "sluice_world_config_init", world_config_init, "A", ALWAYS},
    {HOOKS, "sluice_world_config_init_sized", world_config_init_sized, "A", ALWAYS},
    {HOOKS, "sluice_world_config_init_sized", world_config_of_no_size, "A", "AAAAAAAAAAAAA"},
    {HOOKS, "sluice_launcher_name", launcher_name, "", ALWAYS},
    {HOOKS, "sluice_world_create", world_create, ".A", "kkkkkkkkkkkk-"},
    {HOOKS, "sluice_world_destroy", world_destroy, "k", "-------------"},
    {HOOKS, "sluice_world_rank", world_rank, "N", ALWAYS},
    {HOOKS, "sluice_world_size", world_size, "N", ALWAYS},
    {HOOKS, "sluice_world_local_rank", world_local_rank, "N", ALWAYS},
    {HOOKS, "sluice_world_local_size", world_local_size, "N", ALWAYS},
    {HOOKS, "sluice_world_path", world_path, "N", ALWAYS},
    {HOOKS, "sluice_world_transport", world_transport, "N", "NNNNNNNNNNNNN"},
    {HOOKS, "sluice_world_barrier", world_barrier, "A", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_broadcast", world_broadcast, "AA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_share", world_share, "AA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_all_gather", world_all_gather, "AAA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_all_reduce", world_all_reduce, "AA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_same", world_same, "AA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_check", world_check, "A", IN_A_HEALTHY_WORLD},

    {HOOKS, "sluice_config_init", config_init, "k", ALWAYS},
    {HOOKS, "sluice_config_init_sized", config_init_sized, "k", ALWAYS},
    {HOOKS, "sluice_runtime_create", runtime_create, "AAA", ALWAYS},
    {HOOKS, "sluice_runtime_destroy", runtime_destroy, "k", "-------------"},
    {HOOKS, "sluice_layer_add", layer_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_layer_strategy", layer_strategy, "AA", BEFORE_COMMIT},
    {HOOKS, "sluice_layer_can_recompute", layer_can_recompute, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_layer_precision", layer_precision, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_param_add", param_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_layer_precision", layer_precision, "A", "OOOOOOOOOOFFO"}, /* the layer has a parameter */
    {HOOKS, "sluice_param_use", param_use, "AA", BEFORE_COMMIT},
    {HOOKS, "sluice_activation_add", activation_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_activations_add", activations_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_workspace_add", workspace_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_activation_shape", activation_shape, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_workspace_shape", workspace_shape, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_activation_add", activation_aside, "AAA", "AOOOOOOOOOFFO"}, /* a direction that is none */
    {HOOKS, "sluice_workspace_add", workspace_nowhere, "AAA", "AOOOOOOOOOFFO"},
    {HOOKS, "sluice_runtime_reserve", reserve, "Ak", BEFORE_COMMIT},
    {HOOKS, "sluice_runtime_commit", runtime_commit, "A", "-OOOOOOOOOFFP"},

    {HOOKS, "sluice_runtime_replan", replan, "Akk", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_shape", runtime_shape, "k", ALWAYS},
    {HOOKS, "sluice_layer_here", layer_here, "N", ALWAYS},
    {HOOKS, "sluice_layer_runs", layer_runs, "N", ALWAYS},
    {HOOKS, "sluice_layer_recomputes", recomputes, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_param_dtype", param_dtype, "N", ALWAYS},
    {HOOKS, "sluice_param_gradient_dtype", gradient_dtype, "N", ALWAYS},
    {HOOKS, "sluice_param_value", param_value, "N", "NNNkkNkNNkNNN"},
    {HOOKS, "sluice_param_gradient", param_gradient, "N", "NNNNNNkNNNNNN"},
    {HOOKS, "sluice_param_gradient_fresh", gradient_fresh, "NN", "NNNNNNkNNNNNN"},
    {HOOKS, "sluice_activation_data", activation_data, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_workspace_data", workspace_data, "N", "NNNkkNNNNkNNN"},
    {HOOKS, "sluice_step_begin", step_begin, "AA", "O-OOOOOOOOFFP"},
    {HOOKS, "sluice_rows_set", rows_set, "AAA", "OO-OOOOO-OFFP"},
    {HOOKS, "sluice_forward_begin", forward_begin, "A", "OXXXXXXXXXFFP"}, /* without rows too */
    {HOOKS, "sluice_forward_end", forward_end, "A", "OXX-XXXXX-FFP"},
    {HOOKS, "sluice_recompute_begin", recompute_begin, "A", "OXXXXXXXXXFFP"},
    {HOOKS, "sluice_recompute_end", recompute_end, "A", "OXXX-XXXXXFFP"},
    {HOOKS, "sluice_backward_begin", backward_begin, "A", "OXXXX-XXXXFFP"},
    {HOOKS, "sluice_backward_end", backward_end, "A", "OXXXXX-XXXFFP"},
    {HOOKS, "sluice_step_next", step_next, "AA", "OOkOOkOkOOFFP"},
    {HOOKS, "sluice_runtime_expect_launches", expect_launches, "A", "OOkkkkkkkkFFP"},
    {HOOKS, "sluice_step_end", step_end, "A.", "OOXXXXX-OOFFP"},
    {HOOKS, "sluice_runtime_sync", runtime_sync, "A", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_replicas_equal", replicas_equal, "Nk", ALWAYS},
    {HOOKS, "sluice_evaluate_begin", evaluate_begin, "A", "O-OOOOOOOOFFP"},
    {HOOKS, "sluice_evaluate_end", evaluate_end, "A", "OOOOOOOO-XFFP"},

    {HOOKS, "sluice_param_write", param_write, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_read", param_read, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_state_write", state_write, "AAA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_state_read", state_read, "AAA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_state_extent", state_extent, "AAAA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_state_count", state_count, "NN", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_runtime_progress_read", progress_read, "AkAA", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_progress_write", progress_write, "AkA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_updates", param_updates, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_runtime_step", runtime_step, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_runtime_step_set", step_set, "A", BETWEEN_STEPS},
    {HOOKS, "sluice_param_name", param_name, "N", ALWAYS},
    {HOOKS, "sluice_param_count", param_count, "N", ALWAYS},
    {HOOKS, "sluice_runtime_param_count", runtime_param_count, "N", ALWAYS},
    {HOOKS, "sluice_runtime_param", runtime_param, "N", ALWAYS},
    {HOOKS, "sluice_runtime_weights_sha256", weights_sha256, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_memory", runtime_memory, "AA", AFTER_COMMIT},
    {HOOKS, "sluice_layer_strategy_name", strategy_name, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_runtime_replicas", replicas, "N", ALWAYS},
    {HOOKS, "sluice_runtime_replica", replica, "N", "NNNNNNNNNNNNN"}, /* the only rank is number 0 */
    {HOOKS, "sluice_runtime_world", runtime_world, "N", ALWAYS},
    {HOOKS, "sluice_runtime_stream", runtime_stream, "N", ALWAYS},
    {HOOKS, "sluice_stream_native", stream_native, "N", "NNNNNNNNNNNNN"},
    {HOOKS, "sluice_runtime_device", runtime_device, "N", ALWAYS},
    {HOOKS, "sluice_runtime_fail", fail_with_success, "AA", "AAAAAAAAAAAAA"},
    {HOOKS, "sluice_runtime_fail", runtime_fail, "A.", "----------FF-"},
    {HOOKS, "sluice_runtime_profile_write", profile_write, "AAA", "O-OOOOOOOOFFP"},
    {HOOKS, "sluice_runtime_dp_bytes", dp_bytes, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_instruction_set", instruction_set, "", ALWAYS},

    {HOOKS, "sluice_runtime_plan", runtime_plan, "AA", AFTER_COMMIT},
    {HOOKS, "sluice_runtime_plan_json", plan_json, "AAAA", AFTER_COMMIT},
    {HOOKS, "sluice_runtime_trial_count", trial_count, "N", "NNNNNNNNNNNNN"},
    {HOOKS, "sluice_runtime_stage", runtime_stage, "AA", AFTER_COMMIT},
    {HOOKS, "sluice_runtime_piece", runtime_piece, "AAA", "OAAAAAAAAAAOA"}, /* there is no pipeline */
    {HOOKS, "sluice_runtime_layer_times", layer_times, "AAA", AFTER_COMMIT},
    {HOOKS, "sluice_runtime_layer_times_set", layer_times_set, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_runtime_stage_times", stage_times, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_stage_times_set", stage_times_set, "AA", BEFORE_COMMIT},
    {HOOKS, "sluice_runtime_trial", runtime_trial, "AA", "AAAAAAAAAAAAA"}, /* no plan was tried */
    {HOOKS, "sluice_runtime_prediction", runtime_prediction, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_trace", runtime_trace, "AA", "OOOOOOOOOOFFP"}, /* nothing is recorded */
    {HOOKS, "sluice_runtime_record", runtime_record, "A", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_record", runtime_record, "A", BETWEEN_STEPS}, /* once more */
    {HOOKS, "sluice_runtime_trace", runtime_trace, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_checkpoint_lock", checkpoint_lock, "AA", "kkkkkkkkkkFFP"},
    {HOOKS, "sluice_checkpoint_save", checkpoint_save, "AAk", BETWEEN_STEPS},
    {HOOKS, "sluice_checkpoint_begin", checkpoint_begin, "AAk", BETWEEN_STEPS},
    {HOOKS, "sluice_checkpoint_end", checkpoint_end, "Ak", BETWEEN_STEPS}, /* nothing is under way */
    {HOOKS, "sluice_checkpoint_load", checkpoint_load, "AAkk", BETWEEN_STEPS},
    {HOOKS, "sluice_checkpoint_load_list", checkpoint_load_list, "AAAUU", "OUOOOOOOOOFFP"}, /* compressed */
    {HOOKS, "sluice_checkpoint_latest", checkpoint_latest, "AAA", ALWAYS},
    {HOOKS, "sluice_checkpoint_extra", checkpoint_extra, "AAA", ALWAYS},

    {HOOKS, "sluice_model_config_named", config_named, "AAA", ALWAYS},
    {HOOKS, "sluice_model_family_name", family_name, "", ALWAYS},
    {HOOKS, "sluice_model_size_name", size_name, "", ALWAYS},
    {HOOKS, "sluice_model_config_check", config_check, "A", ALWAYS},
    {HOOKS, "sluice_model_param_count", model_param_count, "N", ALWAYS},
    {HOOKS, "sluice_model_tokens", model_tokens, "N", ALWAYS},
    {HOOKS, "sluice_model_targets", model_targets, "N", ALWAYS},
    {HOOKS, "sluice_model_create", model_create, "AAAA", "-OOOOOOOOOFFO"},
    {HOOKS, "sluice_model_destroy", model_destroy, "k", "-------------"},
    /*                                                                     RCSf   Ee FGP */
    {MODEL, "sluice_model_config_read", config_read, "AA", "kkkk   kk kkk"},
    {MODEL, "sluice_model_shape", model_shape, "k", "kkkk   kk kkk"},
    {MODEL, "sluice_model_get_config", get_config, "N", "kkkk   kk kkk"},
    {MODEL, "sluice_model_init", model_init, "A", "OkOO   OO FFP"},
    {MODEL, "sluice_model_load", model_load, "AA", "OkOO   OO FFP"},
    {MODEL, "sluice_model_init_new", model_init_new, "A", "kkkk   kk kkk"}, /* no parameter is new */
    {MODEL, "sluice_model_new_param", model_new_param, "N", "NNNN   NN NNN"},
    {MODEL, "sluice_model_save", model_save, "AA", "OkOO   OO FFP"},
    {MODEL, "sluice_model_forward", model_forward, "AA", "OO-O   O- FFP"},
    {MODEL, "sluice_model_backward", model_backward, "A.", "OXX-   XX FFP"},
    {MODEL, "sluice_model_loss", model_loss, "AA", "OkkO   kk kOk"},
    {MODEL, "sluice_model_observe", model_observe, "A", "UUUU   UU UUU"}, /* it was made without */
    {MODEL, "sluice_model_observed", model_observed, "AAA", "UUUU   UU UUU"},
    {MODEL, "sluice_model_step", model_step, "AAA", "UUUU   UU UUU"}, /* it was made for one micro-batch */
    {MODEL, "sluice_model_block", model_block, "N", "kkkk   kk kkk"},
    {MODEL, "sluice_model_scale_branches", scale_branches, "A", "UUUU   UU UUU"}, /* it was made without */
    {MODEL, "sluice_model_evaluate", model_evaluate, "AAAk", "OkOO   OO FFP"},
    {MODEL, "sluice_model_extend", model_extend, "AUU", "UUUU   UU UUU"},
    {MODEL, "sluice_model_cached", model_cached, "N", "NNNN   NN NNN"},
    {MODEL, "sluice_model_rewind", model_rewind, "A", "UUUU   UU UUU"},
    {MODEL, "sluice_model_check", model_check, "kkk", "kkkk   kk kkk"},
    {CACHE, "sluice_model_extend", model_extend, "AAk", "Ok      O FFP"},
    {CACHE, "sluice_model_cached", model_cached, "N", "Nk      N NNN"},
    {CACHE, "sluice_model_rewind", model_rewind, "A", "kk      k kkk"},
    {CACHE, "sluice_model_cached", model_cached, "N", "NN      N NNN"},
    {CACHE, "sluice_model_forward", model_forward, "AA", "UU      U UUU"},
    {CACHE, "sluice_model_evaluate", model_evaluate, "AAAU", "UU      U UUU"},
};
enum { TABLE_ROWS = sizeof table / sizeof *table };

/* ---- Going through it ---- */

static bool is_outcome(char wanted, int got)
{
    switch (wanted) {
    case 'k': return got == ANSWER;
    case 'N': return got == NOTHING;
    case 'O':
    case 'X': return got == SLUICE_ERR_ORDER;
    case 'A': return got == SLUICE_ERR_ARGUMENT;
    case 'U': return got == SLUICE_ERR_UNSUPPORTED;
    case 'F': return got == SLUICE_ERR_SYSTEM && strstr(sluice_last_error(), planted);
    case 'P': return got == SLUICE_ERR_PEER;
    default: return false;
    }
}

/* A crash ends the rank, not the test program's copy in it, and names the call. */
static const char *now_called = "";

static void crash(int signal)
{
    char line[128];
    const int length = snprintf(line, sizeof line, "%s crashes\n", now_called);
    (void)!write(STDERR_FILENO, line, (size_t)length);
    _exit(128 + signal);
}

/* Makes a row's call; returns 1 if something else comes back than is promised. */
static int makes(program *p, const row *r, int null, char wanted)
{
    now_called = r->name;
    const int got = r->call(p, null);
    if (is_outcome(wanted, got)) return 0;
    const char *name = got == NOTHING ? "nothing" : sluice_status_name((sluice_status)got);
    fprintf(stderr, "%s %s, pointer %d NULL (0: none): %s where '%c' is promised; last error: %s\n", r->name,
            moment_names[p->now], null, name, wanted, sluice_last_error());
    return 1;
}

static moment moment_of_nulls(const row *r)
{
    const size_t at = strcspn(r->cells, "kA-");
    return at < MOMENTS ? (moment)at : IDLE;
}

/* Makes the calls of a moment that leave the program able to go on. */
static int makes_calls(program *p)
{
    int failed = 0;
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        const row *r = &table[i];
        if (r->kind != p->kind) continue;
        if (!strchr("- X", r->cells[p->now])) failed += makes(p, r, 0, r->cells[p->now]);
        for (int n = 0; moment_of_nulls(r) == p->now && r->nulls[n]; n++)
            if (r->nulls[n] != '.') failed += makes(p, r, n + 1, r->nulls[n]);
    }
    return failed;
}

/* A call that makes the runtime fail: later ones say the same, and a new runtime can be made. */
static int makes_last_call(program *p, const row *r)
{
    char line[2048];
    int failed = makes(p, r, 0, 'X');
    snprintf(line, sizeof line, "%s", sluice_last_error());
    if (failed) return failed;
    RANK_CHECK(sluice_runtime_sync(p->rt) == SLUICE_ERR_ORDER);
    RANK_CHECK(!strcmp(line, sluice_last_error()));
    return 0;
}

static bool has_models(void)
{
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/config.json", weights);
    return !access(path, R_OK);
}

static int at_moment(sluice_world **world, kind of, moment at)
{
    program p = {.kind = of, .world = *world};
    if (!there_is(of, at) || (of != HOOKS && !has_models())) return 0;
    RANK_CHECK(!reach(&p, at));
    int failed = makes_calls(&p);
    failed += goes_on(&p);
    RANK_CHECK(!end(&p));
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (table[i].kind != of || table[i].cells[at] != 'X') continue;
        RANK_CHECK(!reach(&p, at));
        failed += makes_last_call(&p, &table[i]);
        RANK_CHECK(!end(&p));
    }
    *world = p.world;
    return failed;
}

static int alone(int rank, int size, void *context)
{
    sluice_world *world;
    int failed = 0;
    (void)rank, (void)size, (void)context;
    signal(SIGSEGV, crash);
    RANK_CHECK(!sluice_world_create(NULL, &world));
    for (int k = HOOKS; k <= CACHE; k++)
        for (int m = 0; m < PEER_FAILED; m++) failed += at_moment(&world, (kind)k, (moment)m);
    sluice_world_destroy(world);
    return failed > 100 ? 100 : failed;
}

/* Rank 1 fails, and each call of rank 0 says so. */
static int beside_a_peer(int rank, int size, void *context)
{
    program p = {.kind = *(const kind *)context};
    (void)size;
    signal(SIGSEGV, crash);
    RANK_CHECK(!sluice_world_create(NULL, &p.world));
    sluice_world *world = p.world;
    RANK_CHECK(!reach(&p, PEER_FAILED));
    int failed = rank ? 0 : makes_calls(&p);
    (void)end(&p);
    sluice_world_destroy(world);
    return failed > 100 ? 100 : failed;
}

static void what_is_promised_comes_back(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, alone, NULL, LIMIT_S), 0);
}

static void after_the_failure_of_a_rank_too(void **state)
{
    (void)state;
    for (int k = HOOKS; k <= MODEL; k++) {
        kind of = (kind)k;
        if (of == HOOKS || has_models()) assert_int_equal(run_ranks(2, beside_a_peer, &of, LIMIT_S), 0);
    }
}

/* ---- The table is whole ---- */

static int rows_of(const public_function *function)
{
    int count = 0;
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (strcmp(table[i].name, function->name)) continue;
        count++;
        if ((int)strlen(table[i].nulls) == function->pointers && strlen(table[i].cells) == MOMENTS) continue;
        fail_msg("%s takes %d pointers; its row has \"%s\" for them, and \"%s\" for %d moments", function->name,
                 function->pointers, table[i].nulls, table[i].cells, MOMENTS);
    }
    return count;
}

static void each_public_function_has_a_row(void **state)
{
    static public_function functions[PUBLIC_FUNCTIONS_MAX];
    const int count = read_public_functions(SLUICE_HEADERS, functions);
    int rows = 0;
    (void)state;
    assert_in_range(count, 100, PUBLIC_FUNCTIONS_MAX - 1);
    for (int i = 0; i < count; i++) {
        const int own = rows_of(&functions[i]);
        if (!own) fail_msg("%s of include/sluice has no row in this test's table: add one", functions[i].name);
        rows += own;
    }
    assert_int_equal(rows, TABLE_ROWS); /* each row is of a function that there is */
}

/* ---- Files to read ---- */

static int write_files(int rank, int size, void *context)
{
    program p = {.kind = HOOKS}, m = {.kind = MODEL};
    (void)rank, (void)size, (void)context;
    RANK_CHECK(!sluice_world_create(NULL, &p.world));
    sluice_world *world = m.world = p.world;
    RANK_CHECK(!reach(&p, IDLE) && !sluice_checkpoint_save(p.rt, saved, "extra", 5) && !end(&p));
    sluice_status status = begin(&m);
    if (status == SLUICE_ERR_UNSUPPORTED) printf("SKIP: models in the table: %s\n", sluice_last_error());
    if (!status) RANK_CHECK(!commit(&m) && !sluice_model_init(m.model, 1) && !sluice_model_save(m.model, weights));
    RANK_CHECK(!status || status == SLUICE_ERR_UNSUPPORTED);
    RANK_CHECK(!end(&m));
    sluice_world_destroy(world);
    return 0;
}

static int make_files(void **state)
{
    (void)state;
    if (!mkdtemp(work)) return -1;
    snprintf(saved, sizeof saved, "%s/saved", work);
    snprintf(saves, sizeof saves, "%s/saves", work);
    snprintf(weights, sizeof weights, "%s/weights", work);
    snprintf(profile, sizeof profile, "%s/profile.json", work);
    if (mkdir(saves, 0700) || mkdir(weights, 0700)) return -1;
    setenv("SLUICE_LOG_LEVEL", "error", 1);
    return run_ranks(1, write_files, NULL, LIMIT_S);
}

static int remove_files(void **state)
{
    (void)state;
    remove_tree(work);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_public_function_has_a_row),
                                       cmocka_unit_test(what_is_promised_comes_back),
                                       cmocka_unit_test(after_the_failure_of_a_rank_too)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
