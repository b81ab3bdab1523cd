/* SLUICE_INIT begins a struct that crosses the API. Each such struct starts with `struct_size`, its sizeof when the
 * program was compiled, so that structs can grow at their end: a library that knows more fields takes defaults for
 * those that the program's struct lacks, and writes no more than that struct has; a library that knows fewer fields
 * takes a longer struct if its further fields are 0.
 *
 *   sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = 100), &w);
 *   sluice_step_report report = SLUICE_INIT(sluice_step_report);
 *
 * makes a struct with its size, the fields that are named, and 0 in all others; if a constant of a file is made,
 * write `.struct_size = sizeof(sluice_optimizer)` among its fields instead. sluice_config_init and
 * sluice_world_config_init set the size themselves. A size of 0, or one that cannot be, is ARGUMENT in every function
 * that takes the struct; fields that are set and unknown to the library are UNSUPPORTED.
 *
 * C11, or C++20 (if the result has no address: give it a name first). Other languages set the field. */
#ifndef SLUICE_INIT_H
#define SLUICE_INIT_H

/* Makes a struct of the type that comes first, with its size and the fields that follow. */
#define SLUICE_INIT(...) SLUICE_INIT_FIELDS(__VA_ARGS__, )
/* The inside of SLUICE_INIT. */
#if defined(__cplusplus)
#define SLUICE_INIT_FIELDS(type, ...)                                                                                  \
    type                                                                                                               \
    {                                                                                                                  \
        .struct_size = sizeof(type), __VA_ARGS__                                                                       \
    }
#else
#define SLUICE_INIT_FIELDS(type, ...)                                                                                  \
    (type)                                                                                                             \
    {                                                                                                                  \
        .struct_size = sizeof(type), __VA_ARGS__                                                                       \
    }
#endif

#endif
