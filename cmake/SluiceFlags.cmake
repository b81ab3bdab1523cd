# The compilers' flags for each type of build, where none are given: to be included before project(), which would put
# CMake's own into the cache. Flags that are given (-DCMAKE_C_FLAGS_RELEASE=...) stay, and where another tree has added
# this one, its flags are given.
if(NOT CMAKE_CURRENT_SOURCE_DIR STREQUAL CMAKE_SOURCE_DIR)
    return()
endif()

# Sanitizers print files and lines, for which -g1 is enough.
set(debug_information -g)
if(SLUICE_SANITIZE)
    set(debug_information -g1)
endif()
set(flags_C_RELEASE "-O3 -g")
set(flags_C_DEBUG "-O1 ${debug_information} -DSLUICE_DEBUG=1")
set(flags_CUDA_RELEASE "-O3 -lineinfo")
set(flags_CUDA_DEBUG "-O1 -g -lineinfo")
foreach(kind C_RELEASE C_DEBUG CUDA_RELEASE CUDA_DEBUG)
    string(REPLACE "_" "_FLAGS_" name "${kind}")
    string(PREPEND name "CMAKE_")
    # A tree that was configured when flags were not obeyed has CMake's own, which nobody gave.
    if(DEFINED CACHE{CMAKE_C_COMPILER} AND NOT SLUICE_FLAGS_OBEYED)
        unset(${name} CACHE)
    endif()
    set(${name} "${flags_${kind}}" CACHE STRING "Flags of this type of build")
endforeach()
set(SLUICE_FLAGS_OBEYED ON CACHE INTERNAL "Flags in the cache are this project's, or were given")
