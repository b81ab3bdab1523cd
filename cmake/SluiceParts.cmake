# slc_part(NAME [DEPENDS part...] [LINK target...] [DIRS dir...]): one part of the house.
# Every .c of the folder (and of DIRS below it) but *_test.c goes into the part; every *_test.c becomes a test named
# NAME.file. Includes are written from the root: "lib/base/log.h", <sluice/status.h>.
set_property(GLOBAL PROPERTY SLUICE_PART_TARGETS "")

function(slc_part name)
    cmake_parse_arguments(PART "" "" "DEPENDS;LINK;DIRS" ${ARGN})
    set(patterns "${CMAKE_CURRENT_SOURCE_DIR}/*.c")
    foreach(dir IN LISTS PART_DIRS)
        list(APPEND patterns "${CMAKE_CURRENT_SOURCE_DIR}/${dir}/*.c")
    endforeach()
    file(GLOB sources CONFIGURE_DEPENDS ${patterns})
    set(tests ${sources})
    list(FILTER sources EXCLUDE REGEX "_test\\.c$|_fuzz\\.c$")
    list(FILTER tests INCLUDE REGEX "_test\\.c$")
    add_library(slc_${name} OBJECT ${sources})
    target_include_directories(slc_${name} PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    set_target_properties(slc_${name} PROPERTIES C_VISIBILITY_PRESET hidden)
    target_link_libraries(slc_${name} PUBLIC Threads::Threads m ${PART_LINK})
    set_property(GLOBAL APPEND PROPERTY SLUICE_PART_TARGETS slc_${name})
    if(SLUICE_TESTS)
        foreach(test IN LISTS tests)
            slc_test("${name}" "${test}")
        endforeach()
    endif()
endfunction()

# One test program; it may look behind the headers, so it links every part (sluice_testing).
function(slc_test part file)
    get_filename_component(stem "${file}" NAME_WE)
    set(target "${part}_${stem}")
    add_executable(${target} "${file}")
    target_link_libraries(${target} PRIVATE sluice_testing PkgConfig::CMOCKA)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    add_test(NAME ${part}.${stem} COMMAND ${target})
    set_tests_properties(${part}.${stem} PROPERTIES TIMEOUT 300
        ENVIRONMENT "SLUICE_TRANSPORT_PATH=${PROJECT_BINARY_DIR}/plugins/transport;SLUICE_COMMAND=${PROJECT_BINARY_DIR}/bench/sluice")
endfunction()
