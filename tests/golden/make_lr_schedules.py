#!/usr/bin/env python3
"""Makes lr_schedules.json next to this file: the rates of transformers' schedules, as the truth for tests.

    python3 make_lr_schedules.py            writes it (the committed file came from transformers 5.23.0, torch 2.15.0)
    python3 make_lr_schedules.py --compare  exit code 1 if the file differs from this machine's transformers

Each case has options of `sluice train`, the tokens of a step (0: the clock counts steps), step numbers from 1 and the
rate of each. Step s stands at index s - 1 of transformers' schedule once the warm-up is over, and at index s in it, so
that the first step's rate is above 0. The schedule falls at an index, so after the warm-up the two are the same.
"""
import json
import math
import pathlib
import sys

import torch
import transformers.optimization as hf

FILE = pathlib.Path(__file__).parent / "lr_schedules.json"


def factors(schedule, peak, **settings):
    """The factor on the rate as a function of the index, taken from the scheduler that transformers makes."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    return schedule(optimizer, **settings).lr_lambdas[0]


def case(schedule, hf_schedule, options, peak=1e-3, warmup=0, steps=(), stride=0, **settings):
    at = factors(hf_schedule, peak, num_warmup_steps=warmup, **settings)
    rates = []
    for step in steps:
        before, after = ((step - 1) * stride, step * stride) if stride else (step - 1, step)
        rates.append(peak * at(min(after, warmup) if before < warmup else before))
    return {"options": {"lr-schedule": schedule, "lr": repr(peak), "warmup": str(warmup), **options},
            "tokens_per_step": stride, "steps": list(steps), "rates": rates}


def steps_to(last, every=1):
    return list(range(1, last + 1, every))


def cases():
    linear, cosine, wsd = hf.get_linear_schedule_with_warmup, hf.get_cosine_schedule_with_warmup, hf.get_wsd_schedule
    floor, polynomial = hf.get_cosine_with_min_lr_schedule_with_warmup, hf.get_polynomial_decay_schedule_with_warmup
    root = hf.get_inverse_sqrt_schedule
    yield case("constant", hf.get_constant_schedule_with_warmup, {"steps": "30"}, steps=steps_to(30))
    yield case("constant", hf.get_constant_schedule_with_warmup, {"steps": "30"}, 3e-4, 7, steps_to(30))
    yield case("linear", linear, {"steps": "50"}, steps=steps_to(50), num_training_steps=50)
    yield case("linear", linear, {"steps": "50"}, 6e-4, 9, steps_to(50), num_training_steps=50)
    yield case("linear", polynomial, {"steps": "60", "lr-horizon": "50", "lr-min": "1e-05"}, 6e-4, 9, steps_to(60),
               num_training_steps=50, lr_end=1e-5)
    yield case("cosine", cosine, {"steps": "50"}, steps=steps_to(50), num_training_steps=50)
    yield case("cosine", cosine, {"steps": "50"}, 6e-4, 9, steps_to(50), num_training_steps=50)
    yield case("cosine", floor, {"steps": "50", "lr-min": "6e-05"}, 6e-4, 9, steps_to(50), num_training_steps=50,
               min_lr=6e-5)
    yield case("cosine", cosine, {"steps": "600000"}, 6e-4, 2000, steps_to(600000, 4999), num_training_steps=600000)
    yield case("inverse_sqrt", root, {"steps": "50"}, steps=steps_to(50))
    yield case("inverse_sqrt", root, {"steps": "50"}, 2e-3, 8, steps_to(50))
    yield case("inverse_sqrt", root, {"steps": "50", "lr-timescale": "5"}, 2e-3, 8, steps_to(50), timescale=5)
    yield case("inverse_sqrt", root, {"steps": "300000"}, 2e-3, 4000, steps_to(300000, 2999))
    yield case("wsd", wsd, {"steps": "50"}, 1e-2, 8, steps_to(50), num_training_steps=50, num_decay_steps=5)
    yield case("wsd", wsd, {"steps": "50", "lr-decay": "20"}, 1e-2, 8, steps_to(50), num_training_steps=50,
               num_decay_steps=20)
    yield case("wsd", wsd, {"steps": "60", "lr-horizon": "50", "lr-decay": "20", "lr-min": "0.001"}, 1e-2, 0,
               steps_to(60), num_training_steps=50, num_decay_steps=20, min_lr_ratio=0.1)
    tokens = dict(stride=96, steps=steps_to(50))
    yield case("linear", linear, {"steps": "50", "lr-over": "tokens", "lr-horizon": "4801"}, 6e-4, 700, **tokens,
               num_training_steps=4801)
    yield case("cosine", cosine, {"steps": "50", "lr-over": "tokens", "lr-horizon": "9000"}, 6e-4, 960, **tokens,
               num_training_steps=9000)
    yield case("inverse_sqrt", root, {"steps": "50", "lr-over": "tokens"}, 6e-4, 960, **tokens)
    yield case("wsd", wsd, {"steps": "50", "lr-over": "tokens", "lr-horizon": "4900", "lr-decay": "1000"}, 6e-4, 960,
               **tokens, num_training_steps=4900, num_decay_steps=1000)


def main():
    made = list(cases())
    if sys.argv[1:] != ["--compare"]:
        FILE.write_text("[\n" + ",\n".join(json.dumps(c) for c in made) + "\n]\n")
        return
    kept = json.loads(FILE.read_text())
    assert [c["options"] for c in kept] == [c["options"] for c in made], "other cases"
    for old, new in zip(kept, made):
        peak = float(new["options"]["lr"])
        for step, was, now in zip(new["steps"], old["rates"], new["rates"], strict=True):
            if not math.isclose(was, now, rel_tol=0, abs_tol=1e-12 * peak):
                sys.exit(f"{new['options']}: step {step} has {was} in {FILE.name}, transformers computes {now}")


main()
