/* Settings of communication: the rows are in settings.c. */
#ifndef SLC_COMM_SETTINGS_H
#define SLC_COMM_SETTINGS_H

#include "lib/base/settings.h"

extern const slc_settings slc_comm_settings;

#endif
