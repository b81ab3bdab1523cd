/* One control connection: what is still to be written, and how it ends. */
#pragma once

#include "lib/comm/control/state.h"

/* Queues a frame and frame.bytes of data on a link, and writes as much as the network takes. */
void slc_socket_send(slc_control *control, slc_socket *link, slc_frame frame, const void *data);
void slc_socket_flush(slc_control *control, slc_socket *link);
void slc_socket_close(slc_socket *link);
/* Closes a connection that has ended, with errno's `error` or 0; without a goodbye before, that fails the world. */
void slc_socket_lose(slc_control *control, slc_socket *link, int error);
bool slc_bytes_add(slc_bytes *bytes, const void *data, size_t count); /* false: no memory */
bool slc_bytes_reserve(slc_bytes *bytes, size_t capacity);            /* likewise */
