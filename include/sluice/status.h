/* Status codes and the error line. Every function that can fail returns a sluice_status; results come through the
 * last parameter. Thread-safe: the error line belongs to the calling thread. */
#ifndef SLUICE_STATUS_H
#define SLUICE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SLUICE_API __attribute__((visibility("default")))
#else
#define SLUICE_API
#endif

/* The outcome of a call: 0 is success, a negative value an error, whose line sluice_last_error gives. */
typedef enum {
    SLUICE_OK = 0,
    SLUICE_IN_PROGRESS = 1,       /* begun and not done: from a transport's slots alone */
    SLUICE_ERR_ARGUMENT = -1,     /* a value the caller gave cannot be used */
    SLUICE_ERR_MEMORY = -2,       /* the system has no memory left */
    SLUICE_ERR_BUDGET = -3,       /* the plan does not fit the budget */
    SLUICE_ERR_IO = -4,           /* reading or writing a file or socket failed, or a file in use has vanished */
    SLUICE_ERR_FORMAT = -5,       /* a file or message is not what it should be */
    SLUICE_ERR_PEER = -6,         /* another rank died or left */
    SLUICE_ERR_TIMEOUT = -7,      /* another rank stalled or never came */
    SLUICE_ERR_MISMATCH = -8,     /* ranks disagree on something that must be equal */
    SLUICE_ERR_ORDER = -9,        /* calls in an order that the contract forbids */
    SLUICE_ERR_NON_FINITE = -10,  /* a reduced gradient holds NaN or infinity */
    SLUICE_ERR_UNSUPPORTED = -11, /* this build, or Sluice, cannot do it */
    SLUICE_ERR_SYSTEM = -12,      /* the operating system refused */
    SLUICE_ERR_INTERRUPTED = -13, /* cancelled before it was done */
    SLUICE_ERR_PATH = -14         /* a path the caller gave cannot be used: not there, no permission */
} sluice_status;

#ifdef __cplusplus
static_assert(sizeof(sluice_status) == 4, "the library's enums have 4 bytes: compile without -fshort-enums");
#else
_Static_assert(sizeof(sluice_status) == 4, "the library's enums have 4 bytes: compile without -fshort-enums");
#endif

/* "ok", "argument", "budget", ..., "unknown" for what is no status: a constant, never NULL. Any thread. */
SLUICE_API const char *sluice_status_name(sluice_status status);

/* The last failure seen by this thread in one line, below 2048 bytes: what, which rank, which layer, which block, what
 * to do. Valid until this thread's next failing call; never NULL, empty before the first failure. */
SLUICE_API const char *sluice_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
