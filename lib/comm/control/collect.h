/* The small collectives over the control connections: rank 0 has every part and makes the result. */
#pragma once

#include "lib/comm/control/state.h"

const char *slc_collect_name(slc_collect_kind kind);
void slc_collect_begin(slc_control *control, slc_collect *collect);
/* slc_collect_part is called on rank 0 when a rank's part has come, slc_collect_result on another rank when the result
 * has come. */
void slc_collect_part(slc_control *control, slc_socket *link, const slc_frame *frame, const char *data);
void slc_collect_result(slc_control *control, const slc_frame *frame, const char *data);
