# These settings hold for the compilation of every file of the project.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

# Equal bits on every instruction set: no contraction, explicit fma only. The two other flags change no
# result; they allow sqrt and comparisons to be vectorised.
set(host $<COMPILE_LANGUAGE:C,CXX>) # nvcc takes other options: lib/kernels/CMakeLists.txt
add_compile_options($<${host}:-ffp-contract=off> $<${host}:-fno-math-errno> $<${host}:-fno-trapping-math>)
foreach(warning all extra shadow pointer-arith vla undef write-strings)
    add_compile_options($<${host}:-W${warning}>)
endforeach()
add_compile_options($<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
add_compile_definitions(_GNU_SOURCE)
if(SLUICE_WERROR)
    add_compile_options($<${host}:-Werror>)
endif()

# With ccache an object that any build of this or another clone has compiled is taken from there. Paths are written
# relative to the clone for that, so that they are the same in all of them.
find_program(SLUICE_CCACHE ccache)
find_program(SLUICE_ENV env) # `cmake -E env` takes six times as long, once for each file
mark_as_advanced(SLUICE_CCACHE SLUICE_ENV)
if(SLUICE_CCACHE AND SLUICE_ENV)
    set(launcher "${SLUICE_ENV}" "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
        CCACHE_DEPEND=1 "${SLUICE_CCACHE}") # it does not preprocess as well, so that an empty cache costs little
    foreach(language C CXX CUDA)
        set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endforeach()
endif()
if(SLUICE_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(SLUICE_SANITIZE)
    add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${SLUICE_SANITIZE})
    # A null pointer is found by the address sanitizer too, and so is an access past an object's end. Without these two
    # checks compiling takes a tenth less.
    if(SLUICE_SANITIZE MATCHES "address.*undefined")
        add_compile_options(-fno-sanitize=null,object-size)
    endif()
endif()
