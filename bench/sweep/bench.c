/* `sluice bench`: alone it starts the ranks and concludes (as_launcher.h); under a launcher it is one of them
 * (as_rank.h). tests/command/measure/bench_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/rank_report.h"
#include "bench/launch/self_launch.h"
#include "bench/sweep/as_launcher.h"
#include "bench/sweep/as_rank.h"
#include "bench/sweep/conclude.h"
#include "bench/sweep/join.h"
#include "bench/sweep/options/options.h"
#include "bench/sweep/tradeoff/tradeoff.h"
#include "bench/train/options/paths_check.h"

static const char command[] = "sluice bench";

static int run_tradeoff(slc_bench_options *options, char **argv)
{
    int code = EXIT_FAILED;
    sluice_status status = SLUICE_OK;
    if (options->profile) {
        status = slc_bench_tradeoff_predict(options, slc_bench_people(options));
        code = 0;
    } else if (slc_launched()) {
        return slc_bench_tradeoff_as_rank(options);
    } else {
        int ranks = options->training.ranks ? (int)options->training.ranks : 1;
        status = slc_launch_self(ranks, "bench", argv + 1, NULL, &code);
    }
    return status ? slc_fail(command) : code;
}

static int run_bench(int argc, char **argv)
{
    slc_bench_options options;
    int code;
    if (slc_bench_options_parse(argc, argv, &options)) {
        code = slc_rank_refuse(command);
    } else if (options.join) {
        code = slc_bench_join(&options, slc_bench_people(&options)) ? slc_fail(command) : 0;
    } else if (!slc_launched() && slc_training_paths_check(&options.training)) {
        code = slc_fail(command);
    } else if (options.tradeoff) {
        code = run_tradeoff(&options, argv);
    } else {
        code = slc_launched() ? slc_bench_as_rank(&options) : slc_bench_as_launcher(&options, argv);
    }
    slc_bench_options_free(&options);
    return code;
}

const sluice_command slc_command_bench = {"bench", "trains for each budget and strategy: table and picture", run_bench};
