/* Bytes on their way to a descriptor whose reader may be slow, stopped or gone. A thread of its own writes them, so
 * that the caller never waits. The descriptor stays as it is: O_NONBLOCK would change it for the shell and everyone
 * else who holds it too. One thread calls all of this. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct slc_output_queue slc_output_queue;

/* `to` stays the caller's. `wake`, an eventfd that outlives the queue, is raised when room is made, when all is written
 * and when writing has failed. Nothing is written before slc_output_queue_start, which starts the thread, so that
 * processes can be forked between the two. Errors: MEMORY; SYSTEM (start): bytes are then thrown away. */
sluice_status slc_output_queue_create(int to, int wake, slc_output_queue **out);
sluice_status slc_output_queue_start(slc_output_queue *queue);
/* Ends the thread, in the middle of a write if need be; NULL is allowed. */
void slc_output_queue_destroy(slc_output_queue *queue);

/* Returns how many bytes slc_output_queue_put_line takes now; there is no limit once bytes are thrown away. */
size_t slc_output_queue_room(slc_output_queue *queue);
/* Puts `prefix`, `length` bytes of text and the end of the line. A line that there is no room for is thrown away. */
void slc_output_queue_put_line(slc_output_queue *queue, const char *prefix, const char *text, size_t length);
/* Puts a line as slc_output_queue_put_line does, but a few such lines find room even when the queue is full. */
void slc_output_queue_put_urgent_line(slc_output_queue *queue, const char *prefix, const char *text, size_t length);
/* Makes the queue have room from now on: lines that do not fit are thrown away. */
void slc_output_queue_let_go(slc_output_queue *queue);

bool slc_output_queue_is_empty(slc_output_queue *queue);
/* Bytes written so far: if the number grows, there is a reader. */
uint64_t slc_output_queue_written(slc_output_queue *queue);
/* Returns 0, the errno of the first write that failed, or ETIMEDOUT if bytes were thrown away for want of a reader. */
int slc_output_queue_lost(slc_output_queue *queue);
