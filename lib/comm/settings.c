/* The table of communication settings, one row for each. lib/comm/world/world_settings_test.c covers this file. */
#include "lib/comm/settings.h"

static const slc_setting rows[] = {
    {"SLUICE_COMM_TRANSPORT", "ucx", SLC_SETTING_TEXT, "plugin that carries messages between hosts"},
    {"SLUICE_COMM_THROTTLE", "", SLC_SETTING_TEXT, "BANDWIDTH[,LATENCY] to imitate, as 1gbit,50us; empty: off"},
    {"SLUICE_COMM_DIRECT", "on", SLC_SETTING_SWITCH, "ranks of one host use each other's memory"},
    {"SLUICE_COMM_TIMEOUT", "", SLC_SETTING_SECONDS,
     "how long a rank that others wait for may be silent or absent before that is an error; not set: silent 60 s, "
     "absent 600 s"},
    {"SLUICE_COMM_JOIN_TIMEOUT", "60", SLC_SETTING_SECONDS, "how long to wait for all ranks to join"},
    {"SLUICE_COMM_DEPTH", "4", SLC_SETTING_COUNT,
     "blocks whose messages are received ahead; half as many are sent ahead"},
    {"SLUICE_COMM_SPIN_US", "20", SLC_SETTING_COUNT, "microseconds to look for work before sleeping"},
    {"SLUICE_COMM_PACE_US", "500", SLC_SETTING_COUNT,
     "maximum polling interval in microseconds while several transfers are in flight; 0: wake for each piece"},
    {"SLUICE_COMM_HOST_ID", "", SLC_SETTING_TEXT, "ranks with different values treat each other as other hosts"},
    {"SLUICE_COMM_NCCL", "", SLC_SETTING_TEXT,
     "the libnccl.so.2 that the transport nccl loads; empty: the one that the loader finds"},
    {"SLUICE_TRANSPORT_PATH", "", SLC_SETTING_TEXT,
     "directories, separated by colons, to look for transports in first"},
};
const slc_settings slc_comm_settings = {"communication", rows, sizeof rows / sizeof *rows};
