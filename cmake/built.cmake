# SPDX-License-Identifier: Apache-2.0
# The library and the programs of another build tree, which another compiler may have made.
pkg_check_modules(orrery_fftw REQUIRED IMPORTED_TARGET fftw3 fftw3f)
find_package(PNG REQUIRED)
find_package(GTest REQUIRED)  # benchmarks have the tests' precompiled header
find_package(rapidcheck REQUIRED)
include(${ORRERY_BUILT}/built.cmake)
set_target_properties(orrery PROPERTIES IMPORTED_NO_SYSTEM ON)  # warnings in its headers count
add_library(orrery::orrery ALIAS orrery)
if(TARGET hdf5)  # as it is exported
  add_library(orrery::hdf5 ALIAS hdf5)
endif()
# Tests start what lies beside their own folder.
foreach(made apps mpi orrery orrery-cc)
  file(CREATE_LINK ${ORRERY_BUILT}/${made} ${PROJECT_BINARY_DIR}/${made} SYMBOLIC)
endforeach()
