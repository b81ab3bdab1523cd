# `cmake --install` installs, by component: `library` (the library with its transports, the NCCL shim, the licences),
# `development` (headers, a pkg-config file, a CMake package: find_package(Sluice), target Sluice::sluice), `command`
# (the command with its manual pages and its completion for bash) and `documentation`.
include(CMakePackageConfigHelpers)

if(SLUICE_CUDA STREQUAL "EMULATED")
    set(refusal "the GPU of this build is emulated, for tests: to install, configure with -DSLUICE_CUDA=ON or OFF")
    install(CODE "message(FATAL_ERROR \"${refusal}\")" ALL_COMPONENTS)
    return()
endif()

set(plugin_dir "${CMAKE_INSTALL_LIBDIR}/sluice")
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Sluice")

install(TARGETS sluice EXPORT SluiceTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library NAMELINK_COMPONENT development)
if(TARGET sluice_command)
    install(TARGETS sluice_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT command)
endif()

# The command prints its pages, so they are made where it can run.
if(TARGET sluice_command AND NOT CMAKE_CROSSCOMPILING)
    set(pages "${PROJECT_BINARY_DIR}/pages")
    add_custom_command(OUTPUT "${pages}.made" DEPENDS sluice_command "${PROJECT_SOURCE_DIR}/cmake/SluicePages.cmake"
                       COMMAND "${CMAKE_COMMAND}" "-DSLUICE=$<TARGET_FILE:sluice_command>" "-DFOLDER=${pages}"
                               -P "${PROJECT_SOURCE_DIR}/cmake/SluicePages.cmake"
                       COMMAND "${CMAKE_COMMAND}" -E touch "${pages}.made" COMMENT "Manual pages and completion" VERBATIM)
    add_custom_target(sluice_pages ALL DEPENDS "${pages}.made")
    install(DIRECTORY "${pages}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT command)
    install(DIRECTORY "${pages}/completions" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion" COMPONENT command)
endif()
install(TARGETS sluice_transport_ucx sluice_transport_throttle sluice_transport_nccl LIBRARY DESTINATION "${plugin_dir}" COMPONENT library)
install(TARGETS sluice_nccl LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/LICENSE-NOTES.md"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT library)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/sluice" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT development FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_SOURCE_DIR}/README.md" # its links lead into docs/
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documentation)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documentation
        PATTERN CMakeLists.txt EXCLUDE)

if(SLUICE_CUDA)
    set(SLUICE_CUDA_WORD yes)
    set(SLUICE_CUBLASLT "looked for when the first product is computed: among what the process has loaded, in the \
folder SLUICE_CUDA_LIBRARIES, and if that is not set in the path of the loader")
else()
    set(SLUICE_CUDA_WORD no)
    set(SLUICE_CUBLASLT "not needed")
endif()

# There are two forms of sluice.pc: one that may be moved with its tree, and that of a system's prefix, whose paths are
# plain, so that pkg-config leaves them out, and whose programs need no run path. The prefix is known when it is installed.
foreach(dir LIBDIR INCLUDEDIR)
    set(pc_${dir} "${CMAKE_INSTALL_${dir}}")
    if(NOT IS_ABSOLUTE "${pc_${dir}}")
        string(REGEX REPLACE "^usr/" "" pc_${dir} "${pc_${dir}}")
        string(PREPEND pc_${dir} "\${prefix}/")
    endif()
endforeach()
set(pc_prefix /usr)
set(pc_rpath "")
configure_file("${PROJECT_SOURCE_DIR}/cmake/sluice.pc.in" "${PROJECT_BINARY_DIR}/pkgconfig/system/sluice.pc" @ONLY)
file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "^(.*[^/])/?$" "\${pcfiledir}/\\1" pc_prefix "${pc_prefix}")
set(pc_rpath "-Wl,-rpath,\${libdir}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/sluice.pc.in" "${PROJECT_BINARY_DIR}/pkgconfig/moved/sluice.pc" @ONLY)
set(place "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(NOT IS_ABSOLUTE "${place}")
    string(PREPEND place "\${CMAKE_INSTALL_PREFIX}/")
endif()
install(CODE "
    set(form moved)
    if(CMAKE_INSTALL_PREFIX MATCHES \"^(/usr)?/?$\")
        set(form system)
    endif()
    file(INSTALL DESTINATION \"${place}\" TYPE FILE FILES \"${PROJECT_BINARY_DIR}/pkgconfig/\${form}/sluice.pc\")
" COMPONENT development)

install(EXPORT SluiceTargets NAMESPACE Sluice:: DESTINATION "${package_dir}" COMPONENT development)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/SluiceConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/SluiceConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/SluiceConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/SluiceConfig.cmake" "${PROJECT_BINARY_DIR}/SluiceConfigVersion.cmake"
        DESTINATION "${package_dir}" COMPONENT development)
