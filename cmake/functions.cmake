# SPDX-License-Identifier: Apache-2.0
# How programs are made.

# What the library is asked for with -O1 the programs, which are mostly templates, are not: that is a third of their time.
# Nor is each access to a member of theirs checked for null and alignment; cmake/library.cmake asks for that in the library.
set(sanitizer_address -fsanitize=address,undefined -fno-sanitize=null,alignment -fno-sanitize-recover=all
    -fno-omit-frame-pointer ${lines})
set(sanitizer_thread -fsanitize=thread -fno-omit-frame-pointer ${lines})
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Clang's check of a type opens a pipe, and takes an object for a wrong one where no descriptor is left.
  # A use of the stack of a function that has returned is not looked for: processes have stacks of their own.
  list(APPEND sanitizer_address -fno-sanitize=vptr -fsanitize-address-use-after-return=never
       -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/undefined_behaviour.ignore -D_GLIBCXX_ASSERTIONS)
endif()

# What each program is compiled with and links.
function(orrery_program_options name)
  target_link_libraries(${name} PRIVATE orrery::orrery fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json
                        PkgConfig::orrery_system)
  target_compile_options(${name} PRIVATE $<$<NOT:$<STREQUAL:${ORRERY_SANITIZE},off>>:-O0>)
endfunction()

# In what is shipped, and with sanitizers, eight sources of the target are compiled as one.
function(orrery_compile_together name)
  if(CMAKE_BUILD_TYPE STREQUAL Release OR NOT ORRERY_SANITIZE STREQUAL off)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# Half of what GCC does for a small program that reads its options is to optimize CLI11 (2.1 is headers only): 7 s of a
# processor at -O2. In the programs of a release build it is not optimized.
function(orrery_quick_options)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU OR NOT CMAKE_BUILD_TYPE STREQUAL Release)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source)
    if(source MATCHES "\\.cpp$" AND EXISTS ${source})
      file(STRINGS ${source} reads_options REGEX "^#include <(CLI/CLI|apps/run_command)\\.hpp>" LIMIT_COUNT 1)
      if(reads_options)
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -include ${PROJECT_SOURCE_DIR}/cmake/options.hpp)
      endif()
    endif()
  endforeach()
endfunction()

# A program of the given sources, built into <build>/<folder>. Nothing is made when there are no sources.
function(orrery_program name folder)
  if(ARGN)
    add_executable(${name} ${ARGN})
    orrery_program_options(${name})
    orrery_quick_options(${ARGN})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    # Examples and benchmarks run in the optimized build alone; another is there to see that its compiler takes them.
    if(NOT ORRERY_SANITIZE STREQUAL off AND name MATCHES "^(example|bench)_")
      target_compile_options(${name} PRIVATE -fno-sanitize=all -g0)
    endif()
  endif()
endfunction()

# A program of C sources with tasks, built into <build>/<folder>. <name>_libraries: what it links beside the runtime.
set(sanitizer_of_c ${sanitizer_${ORRERY_SANITIZE}})
list(FILTER sanitizer_of_c EXCLUDE REGEX "ignorelist|GLIBCXX|^-g[01]")
if(ORRERY_LLD)
  list(APPEND sanitizer_of_c -fuse-ld=lld -Wno-unused-command-line-argument)
endif()
if(NOT ORRERY_SANITIZE STREQUAL off)
  list(APPEND sanitizer_of_c -no-pie)
endif()
list(JOIN sanitizer_of_c " " orrery_cc_flags)
function(orrery_c_program name folder)
  set(program ${PROJECT_BINARY_DIR}/${folder}/${name})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
  set(sources "")
  set(headers "")
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source)
    list(APPEND sources ${source})
    cmake_path(GET source PARENT_PATH beside)
    file(GLOB more CONFIGURE_DEPENDS ${beside}/*.h)
    list(APPEND headers ${more})
  endforeach()
  list(REMOVE_DUPLICATES headers)
  file(GLOB runtime CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/orrery/task/*.h)
  add_custom_command(OUTPUT ${program}
    COMMAND ${CMAKE_COMMAND} -E env ORRERY_CC=${CMAKE_C_COMPILER} "ORRERY_CC_FLAGS=${orrery_cc_flags}"
            $<TARGET_FILE:orrery_cc> -std=gnu11 -O1 -g1 -Wall -Wextra $<$<BOOL:${ORRERY_WERROR}>:-Werror> ${sources} -o ${program} ${${name}_libraries}
    DEPENDS ${sources} ${headers} ${runtime} orrery_cc orrery COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${name}_c ALL DEPENDS ${program})
endfunction()

# What a program of C++ and of C with tasks is made of, into <build>/<folder>: of x.c an object, of x.h a header x.hpp for C++.
function(orrery_made_of_c result folder)
  set(made ${PROJECT_BINARY_DIR}/${folder})
  file(MAKE_DIRECTORY ${made})
  set(headers ${ARGN})
  list(FILTER headers INCLUDE REGEX "\\.h$")
  list(TRANSFORM headers PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  file(GLOB runtime CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/orrery/task/*.h)
  set(cc ${CMAKE_COMMAND} -E env ORRERY_CC=${CMAKE_C_COMPILER} "ORRERY_CC_FLAGS=${orrery_cc_flags}" $<TARGET_FILE:orrery_cc>)
  set(all "")
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(GET source STEM stem)
    if(source MATCHES "\\.h$")
      add_custom_command(OUTPUT ${made}/${stem}.hpp COMMAND ${cc} --emit-cpp-header ${source} -o ${made}/${stem}.hpp
                         DEPENDS ${headers} ${runtime} orrery_cc VERBATIM)
      list(APPEND all ${made}/${stem}.hpp)
    elseif(source MATCHES "\\.c$")
      add_custom_command(OUTPUT ${made}/${stem}.o
                         COMMAND ${cc} -std=gnu11 -O1 -g1 -Wall -Wextra $<$<BOOL:${ORRERY_WERROR}>:-Werror> -c ${source} -o ${made}/${stem}.o
                         DEPENDS ${source} ${headers} ${runtime} orrery_cc COMMAND_EXPAND_LISTS VERBATIM)
      list(APPEND all ${made}/${stem}.o)
    endif()
  endforeach()
  set(${result} ${all} PARENT_SCOPE)
endfunction()

# A program that Clang's tests (ORRERY_BUILT) make to see that Clang takes it, and that it runs: not optimized, with the tests'
# precompiled header, in a third of the time of GCC.
function(orrery_runs_only name)
  if(ORRERY_BUILT)
    target_compile_options(${name} PRIVATE ${common_options})
    target_precompile_headers(${name} REUSE_FROM orrery_test_common)
    target_link_libraries(${name} PRIVATE orrery_test_common_code ${of_tests})
  endif()
endfunction()
