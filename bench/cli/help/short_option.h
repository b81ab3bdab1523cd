/* The options of the short help. */
#pragma once

/* A flag of argp_option, which argp ignores: a newcomer needs this option. */
enum { SLC_OPTION_SHORT = 0x10000 };
