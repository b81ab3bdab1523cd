"""The stages of `./dev test` in each of its forms, and what each takes from the tests that there are.

`forms.py PRESET` prints what `./dev test` does with a preset: the scale of long tests, CMake's options, ctest's."""
import os
import secrets
import sys

# The tests that use the device cuda.
ON_CUDA = (r"^(cuda_emulated|device|kernels)\.|^model\.golden_models_test$|^tests\.(cuda_test"
           r"|several_gpus_((faults|matrix|link|perf)_)?test"
           r"|gpu_losses_test|gpu_checkpoint_test|onebit_cuda_test|models_cuda_test|gpu_memory_test|gpu_memory_guarded"
           r"|gpu_check_test|info_test|kernels_test|install_check)$|^examples\.digits_mlp_cuda$")
# The tests that plan, run in a build without GLPK, and those that say that there is no device cuda. The build has the
# release's flags, so that a compiler cache has nearly all objects.
NO_GLPK = r"^(sched|ilp|device)\.|^tests\.(plan_tools_test|engine_test|info_test|validate(_faults)?_test)$"
NO_GLPK_TARGETS = ["sluice_command", "sluice_lab", "tests_engine_test", "tests_validate_test",
                   "tests_validate_faults_test", "sched/all", "ilp/all", "lib/device/all", "plugins/transport/all"]
EMULATED_TARGETS = ["sluice_command", "sluice_lab", "tests/cuda_emulated/all", "lib/device/all", "lib/kernels/all",
                    "docs/examples/all", "plugins/transport/all", "plugins/nccl/shim/all", "tests/nccl/bed/hostcuda/all",
                    "tests/nccl/bed/hostnccl/all", "tests/nccl/all", "model_golden_models_test", "tests_models_cuda_test",
                    "tests_gpu_memory_test", "tests_gpu_checkpoint_test", "tests_onebit_cuda_test"]
OF_PIPELINES = r"^tests\.((lab|bench)_)?pipeline|^sched\.(pipeline|stage|partition|deadlock)|^comm\.(channel|lines)_"
STRICT, LENIENT = ["-DSLUICE_WERROR=ON"], ["-DSLUICE_WERROR=OFF"]  # sanitizers make gcc warn of what is not so


SEED = "SLUICE_TEST_SEED"  # the number that changes the seeds of all tests, as tests/support/seed.h says


class Stage:
    origin = ""  # the form that it was of when it failed
    asked = ()  # the tests that --failed wants again


class Command(Stage):
    """A stage that counts as one test."""

    def __init__(self, name, part, argv, env=None, limit_s=900, needs=None, by_change=False):
        self.name, self.part, self.argv, self.env, self.limit_s = name, part, argv, env or {}, limit_s
        self.needs = needs  # the preset whose build it runs
        self.by_change = by_change  # runs only if what it reads has changed


class Preset(Stage):
    """A build and those of its tests that `select`, ctest's options, takes; with None it is built alone."""

    def __init__(self, name, scale, options, select=(), targets=(), env=None):
        self.name, self.scale, self.options = name, scale, list(options)
        self.select, self.targets, self.env = select, list(targets), env or {}


class Form:
    def __init__(self, name, stages, judged=False, by_change=False, gate_stops=False, few=False):
        self.name, self.stages = name, stages
        self.judged = judged          # against tests/budget.txt
        self.by_change = by_change    # tests of this label run only if what they read has changed
        self.gate_stops = gate_stops  # nothing is built if the style is wrong
        self.few = few                # a preset without a test that was asked for is left out

    def seeds(self):
        """The numbers that were drawn for its tests."""
        return sorted({stage.env[SEED] for stage in self.stages if SEED in stage.env})


def program(preset, name, pattern, rounds):
    env = {"SLUICE_TRANSPORT_PATH": f"build/{preset}/plugins/transport", "UCX_MEM_EVENTS": "n",
           "TSAN_OPTIONS": f"suppressions={os.getcwd()}/tests/support/race_suppressions.txt"
                           ":ignore_noninstrumented_modules=1:halt_on_error=1"}
    return [f"build/{preset}/tests/tests_{name}", pattern, str(rounds)], env


def stress(steps, plans, kills, worlds, seeds=None):
    """Many steps, many plans; the presets release and tsan are built before."""
    for name, preset, test, pattern, rounds in (
            (f"{plans} random plans", "release", "engine_test", "random_plans*", plans),
            (f"{steps} steps of changing plans, tsan", "tsan", "engine_test", "changing_plans*", steps),
            (f"{steps // 4} steps of split parameters, tsan", "tsan", "engine_split_test", "changing_plans*",
             steps // 4),
            (f"{kills} kills while saving", "release", "checkpoint_test", "kills*", kills),
            (f"{worlds} worlds reading each other", "release", "checkpoint_test", "every*", worlds)):
        argv, env = program(preset, test, pattern, rounds)
        yield Command(name, "stress", argv, {**env, **(seeds or {})}, limit_s=900 + rounds, needs=preset)


def stress_pipelines(steps):
    """So many steps of pipelines; the preset tsan is built before."""
    argv, env = program("tsan", "pipeline_test", "many_steps", steps)
    return Command(f"{steps} steps of pipelines, tsan", "stress", argv, env, limit_s=900 + steps, needs="tsan")


def gate():
    return Command("lint", "style", ["./dev", "lint"])


def fuzz(seconds, by_change=False):
    return Command(f"fuzz, {seconds} s a reader", "fuzz", ["./dev", "fuzz", f"{seconds}s"], limit_s=1800,
                   by_change=by_change)


def usual():
    return Form("test", [
        gate(),
        Preset("release", 0.2, STRICT, ["-LE", "^all_only$"]),
        Preset("asan", 0.1, LENIENT, ["-LE", "^(release_only|all_only)$"]),
        Preset("tsan", 0.15, LENIENT, ["-L", "^threads$", "-LE", "^all_only$"]),
        Preset("noglpk", 0.1, STRICT, ["-R", NO_GLPK, "-LE", "^all_only$"], NO_GLPK_TARGETS),
        *stress(300, 60, 10, 1),
        fuzz(3, by_change=True),
    ], judged=True, by_change=True)


def drawn():
    """One number for all programs of a run, since some compare what others of them have drawn: the number that the
    environment has, which repeats an earlier run, or a new one."""
    return {SEED: os.environ.get(SEED) or str(secrets.randbits(32) | 1)}


def everything(part=""):
    """All tests, with seeds that are drawn; with a part, its tests alone, wherever it has some."""
    seeds = drawn()
    env = {**seeds, "SLUICE_TEST_STEPS": "50"}
    one = ["-L", f"^{part}$"] if part else []
    presets = [
        Preset("release", 1, STRICT, one, env=env),
        Preset("asan", 0.1, LENIENT, ["-LE", "^release_only$", *one], env=env),
        Preset("tsan", 0.5, LENIENT, ["-L", "^threads$", *one], env=env),
        Preset("noglpk", 1, STRICT, ["-R", NO_GLPK, *one], NO_GLPK_TARGETS, env=env),
        Preset("emulated", 1, STRICT, ["-R", ON_CUDA, *one], EMULATED_TARGETS, env=env),
    ]
    if part:
        return Form(f"all {part}", presets, few=True)
    return Form("all", [gate(), *presets, *stress(1000, 200, 30, 3, seeds), fuzz(10)])


def quick():
    brief = {"SLUICE_TEST_BRIEF": "1"}  # tests/support/scale.h
    return Form("quick", [gate(), Preset("release", 0.2, STRICT, ["-LE", "^(all_only|by_change|script|slow)$"], env=brief)],
                gate_stops=True)


def named(pattern):
    return Form(f"pattern {pattern}", [Preset("release", 1, STRICT, ["-R", pattern])])


def stressed(steps, plans):
    return Form(f"stress {steps} {plans}", [Preset("release", 1, STRICT, None), Preset("tsan", 1, LENIENT, None),
                           *stress(steps, plans, 100, 20)])


def stressed_pipelines(steps):
    """All that holds of pipelines, the long tests among them, and many steps with random pauses."""
    return Form(f"stress pipelines {steps}", [Preset("release", 1, STRICT, ["-R", OF_PIPELINES]),
                                              Preset("tsan", 1, LENIENT, None), stress_pipelines(steps)])


def stress_of(words):
    if words[:1] == ["pipelines"]:
        return stressed_pipelines(*map(int, words[1:]))
    return stressed(*map(int, words))


def form_of(name):
    """Returns the form of this name."""
    word, _, rest = name.partition(" ")
    return {"test": usual, "quick": quick, "all": lambda: everything(rest), "pattern": lambda: named(rest),
            "stress": lambda: stress_of(rest.split())}[word]()


if __name__ == "__main__":
    for stage in usual().stages:
        if isinstance(stage, Preset) and stage.name == sys.argv[1]:
            print(stage.scale, *stage.options, *stage.select)
