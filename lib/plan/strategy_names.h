/* The names of the strategies, in the order of slc_strategy (lib/plan/job.h), as literals for tables and messages:
 * SLC_EXACT_NAMES(", ") is "dp, oss, sdp, fsdp". The text between the names may be a comma of the language too. */
#pragma once

/* SLC_EXACT_NAMES has the strategies that all give the same weights to the bit; SLC_STRATEGY_NAMES has all strategies.
 */
#define SLC_EXACT_NAMES(...) "dp" __VA_ARGS__ "oss" __VA_ARGS__ "sdp" __VA_ARGS__ "fsdp"
#define SLC_STRATEGY_NAMES(...) SLC_EXACT_NAMES(__VA_ARGS__) __VA_ARGS__ "onebit"
