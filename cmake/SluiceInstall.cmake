# What `cmake --install` gives: the headers, the library, the command with its manual pages and its completion for bash,
# the transports, the documents, a pkg-config file (sluice.pc) and a CMake package (find_package(Sluice), target
# Sluice::sluice).
include(CMakePackageConfigHelpers)

if(SLUICE_CUDA STREQUAL "EMULATED")
    set(refusal "the GPU of this build is emulated, for tests: to install, configure with -DSLUICE_CUDA=ON or OFF")
    install(CODE "message(FATAL_ERROR \"${refusal}\")")
    return()
endif()

set(plugin_dir "${CMAKE_INSTALL_LIBDIR}/sluice")
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Sluice")

# A transport is looked up by its bare name, which finds it through the run path of whoever asks.
file(RELATIVE_PATH from_command "/${CMAKE_INSTALL_BINDIR}" "/${plugin_dir}")
set_target_properties(sluice PROPERTIES INSTALL_RPATH "$ORIGIN/sluice")
install(TARGETS sluice EXPORT SluiceTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET sluice_command)
    set_target_properties(sluice_command PROPERTIES INSTALL_RPATH "$ORIGIN/${from_command}")
    install(TARGETS sluice_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# The command prints its pages, so they are made where it can run.
if(TARGET sluice_command AND NOT CMAKE_CROSSCOMPILING)
    set(pages "${PROJECT_BINARY_DIR}/pages")
    add_custom_command(OUTPUT "${pages}.made" DEPENDS sluice_command "${PROJECT_SOURCE_DIR}/cmake/SluicePages.cmake"
                       COMMAND "${CMAKE_COMMAND}" "-DSLUICE=$<TARGET_FILE:sluice_command>" "-DFOLDER=${pages}"
                               -P "${PROJECT_SOURCE_DIR}/cmake/SluicePages.cmake"
                       COMMAND "${CMAKE_COMMAND}" -E touch "${pages}.made" COMMENT "Manual pages and completion" VERBATIM)
    add_custom_target(sluice_pages ALL DEPENDS "${pages}.made")
    install(DIRECTORY "${pages}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}")
    install(DIRECTORY "${pages}/completions" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion")
endif()
foreach(transport ucx throttle)
    if(TARGET sluice_transport_${transport})
        install(TARGETS sluice_transport_${transport} LIBRARY DESTINATION "${plugin_dir}")
    endif()
endforeach()
install(TARGETS sluice_nccl LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/sluice" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/LICENSE-NOTES.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}") # its links lead into docs/
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}" PATTERN CMakeLists.txt EXCLUDE)

if(SLUICE_CUDA)
    set(SLUICE_CUDA_WORD yes)
    set(SLUICE_CUBLASLT "looked for when the first product is computed: among what the process has loaded, in the \
folder SLUICE_CUDA_LIBRARIES, and if that is not set in the path of the loader")
else()
    set(SLUICE_CUDA_WORD no)
    set(SLUICE_CUBLASLT "not needed")
endif()
file(RELATIVE_PATH from_pkgconfig "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/") # so that it may be moved
configure_file("${PROJECT_SOURCE_DIR}/cmake/sluice.pc.in" "${PROJECT_BINARY_DIR}/sluice.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/sluice.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(EXPORT SluiceTargets NAMESPACE Sluice:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/SluiceConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/SluiceConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/SluiceConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/SluiceConfig.cmake" "${PROJECT_BINARY_DIR}/SluiceConfigVersion.cmake"
        DESTINATION "${package_dir}")
