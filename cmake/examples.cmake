# SPDX-License-Identifier: Apache-2.0
# The examples in C++ (programs.cmake has those with tasks of C). A release build makes them, optimized. In CI Clang's tests
# (ORRERY_BUILT) make and run them, with the tests' precompiled header; GCC, which would take three times as long, only
# reads them (ORRERY_EXAMPLES=tasks).
file(GLOB examples CONFIGURE_DEPENDS examples/*.cpp examples/arrays/*/main.cpp examples/shared/*/main.cpp)
if(ORRERY_EXAMPLES STREQUAL "tasks")
  file(GLOB example_sources CONFIGURE_DEPENDS examples/*.cpp examples/arrays/*/*.cpp examples/shared/*/*.cpp)
  list(FILTER example_sources EXCLUDE REGEX "\\.test\\.cpp$")
  add_library(examples_check OBJECT ${example_sources})
  orrery_program_options(examples_check)
  set_target_properties(examples_check PROPERTIES CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tests/run/reads_only)
elseif(ORRERY_EXAMPLES)
  find_package(PNG REQUIRED)
  foreach(example IN LISTS examples)
    cmake_path(GET example STEM name)
    cmake_path(GET example PARENT_PATH folder)
    set(example_sources ${example})
    if(name STREQUAL main)  # arrays/x/*.cpp is one program, x, and so is shared/x/*.cpp
      cmake_path(GET folder FILENAME name)
      file(GLOB example_sources CONFIGURE_DEPENDS ${folder}/*.cpp)
      list(FILTER example_sources EXCLUDE REGEX "\\.test\\.cpp$")
    endif()
    orrery_program(example_${name} examples ${example_sources})
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name})
    orrery_runs_only(example_${name})
    if(NOT folder STREQUAL "${PROJECT_SOURCE_DIR}/examples")
      # They compute: what -O2 of GCC 12 leaves as scalar loops is to be vectorized.
      target_link_libraries(example_${name} PRIVATE PNG::PNG)
      target_compile_options(example_${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<NOT:$<BOOL:${ORRERY_BUILT}>>>:-O3>)
    endif()
  endforeach()
endif()
