/* Seconds as people read them; lib/base/text/size_text.h has bytes. */
#pragma once

/* Writes "1.2 ms"; a time that rounds to nothing has no sign. `text` has room for 24; it is returned. */
char *slc_plan_seconds(double s, char *text);
