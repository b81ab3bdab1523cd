# The licence of what is built, which is not that of the sources alone: SLUICE_LICENSE, in SPDX's words, from
# SLUICE_HAVE_GLPK and SLUICE_CUDA. LICENSE-NOTES.md explains it. cmake -DSLUICE_HAVE_GLPK=ON -DSLUICE_CUDA=ON -P
# SluiceLicense.cmake says it of one combination.
set(SLUICE_LICENSE "Apache-2.0")
set(terms "")
if(SLUICE_HAVE_GLPK)
    string(APPEND SLUICE_LICENSE " AND GPL-3.0-or-later")
    set(terms ": who passes it on does so under the GPL, or builds with -DSLUICE_GLPK=OFF (LICENSE-NOTES.md)")
endif()
if(SLUICE_CUDA AND NOT SLUICE_CUDA STREQUAL "EMULATED") # whose runtime is of this project
    string(APPEND SLUICE_LICENSE " AND LicenseRef-NVIDIA-CUDA-EULA")
    set(terms ": who passes it on does so under NVIDIA's terms too (LICENSE-NOTES.md)")
    if(SLUICE_HAVE_GLPK)
        set(terms ": it holds GLPK and NVIDIA's runtime, so it may be used and not passed on; build what is passed on \
with -DSLUICE_GLPK=OFF or -DSLUICE_CUDA=OFF (LICENSE-NOTES.md)")
    endif()
endif()
message(STATUS "licence of this build: ${SLUICE_LICENSE}${terms}")
