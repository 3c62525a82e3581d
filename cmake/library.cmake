# SPDX-License-Identifier: Apache-2.0
# The library orrery.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS orrery/*.cpp orrery/task/*.c)
list(FILTER sources EXCLUDE REGEX "\\.(test|fuzz)\\.cpp$|/internal/test_[^/]*\\.cpp$|/mpi/plugin/|/files/hdf5/")

# With sanitizers Clang takes what most sources include from a precompiled header, and compiles several sources as one.
set(with_sanitizer OFF)
set(cold "")
if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND NOT ORRERY_SANITIZE STREQUAL off)
  set(with_sanitizer ON)
  # What tests spend little time in: few have arrays by these indices, and most of these layers waits for drives or is asked once.
  set(cold ${sources})
  list(FILTER cold INCLUDE REGEX
       "/(array/detail/index_(bit_path|int64|of_3|text)|process/(option|placement|name|internal/)[^/]*|(files|service|shared|storage|task)/.*)\\.cpp$")
  list(FILTER cold EXCLUDE REGEX "/(storage/detail/strided_copy|task/linear_form)\\.cpp$")  # a loop; frames on small stacks
  list(REMOVE_ITEM sources ${cold})
endif()

add_library(orrery STATIC ${sources})
target_compile_features(orrery PUBLIC cxx_std_23)
target_include_directories(orrery PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_link_libraries(orrery PUBLIC Boost::headers Boost::context Threads::Threads
                      PRIVATE fmt::fmt PkgConfig::orrery_system metis
                      $<BUILD_INTERFACE:CLI11::CLI11> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
set_target_properties(orrery PROPERTIES POSITION_INDEPENDENT_CODE ON)
# Nobody replaces functions of the library, also where it is a part of a shared one: so they can be inlined into each other.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(orrery PRIVATE -fno-semantic-interposition)
endif()
# A function with more on its stack than a guard has touches each page of it, so that it runs into
# the guard of its process, not over it into the stack of another one: programs, too.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag("-Werror -fstack-clash-protection" orrery_has_stack_clash_protection)
if(orrery_has_stack_clash_protection)
  target_compile_options(orrery PUBLIC $<$<COMPILE_LANGUAGE:C,CXX>:-fstack-clash-protection>)
endif()
# The cleanups of C run when a task ends by orrery_exit, which is an exception.
target_compile_options(orrery PUBLIC $<$<COMPILE_LANGUAGE:C>:-fexceptions>)
add_library(orrery::orrery ALIAS orrery)

include(cmake/mpi_plugins.cmake)

# What needs the HDF5 library is a library of its own, orrery::hdf5.
if(orrery_hdf5_FOUND)
  file(GLOB hdf5_sources CONFIGURE_DEPENDS orrery/files/hdf5/*.cpp)
  list(FILTER hdf5_sources EXCLUDE REGEX "\\.test\\.cpp$")
  add_library(orrery_hdf5 STATIC ${hdf5_sources})
  target_link_libraries(orrery_hdf5 PUBLIC orrery::orrery PRIVATE fmt::fmt PkgConfig::orrery_hdf5)
  set_target_properties(orrery_hdf5 PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME hdf5)
  add_library(orrery::hdf5 ALIAS orrery_hdf5)
endif()

# GCC's release compiles several sources of a folder as one, which takes less than half of the time, and takes what most
# include from a precompiled header (a tenth). Sections let a program have only what it uses. Clang without sanitizers (the preset quick) reads each source alone and finds what it
# forgets to include.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release AND ORRERY_SANITIZE STREQUAL off)
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/orrery OUTPUT_VARIABLE folder)
    cmake_path(GET folder PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER ${folder} folder)
    math(EXPR batch "0${sources_of_${folder}} / 8")
    math(EXPR sources_of_${folder} "0${sources_of_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(orrery PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_precompile_headers(orrery PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/common.hpp>)
  target_compile_options(orrery PRIVATE -ffunction-sections -fdata-sections
                         "$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage;-Wno-stringop-overread>")
  target_link_options(orrery PUBLIC -Wl,--gc-sections)
endif()

if(with_sanitizer)
  target_precompile_headers(orrery PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/common.hpp>)
  target_compile_options(orrery PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  set_target_properties(orrery PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  # What is optimized goes through the quick code generator of -O0: the compiler takes a fifth less.
  target_compile_options(orrery PRIVATE "SHELL:-mllvm -fast-isel")
  # -O0 takes half of the time.
  add_library(orrery_cold OBJECT ${cold})
  target_compile_features(orrery_cold PUBLIC cxx_std_23)
  target_link_libraries(orrery_cold PRIVATE Boost::headers Boost::context fmt::fmt PkgConfig::orrery_system metis
                        CLI11::CLI11 nlohmann_json::nlohmann_json)
  target_include_directories(orrery_cold PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(orrery_cold PRIVATE -O0 ${sanitizer_${ORRERY_SANITIZE}})
  target_precompile_headers(orrery_cold PRIVATE ${PROJECT_SOURCE_DIR}/cmake/common.hpp)
  target_compile_options(orrery_cold PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  set_target_properties(orrery_cold PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8 POSITION_INDEPENDENT_CODE ON)
  target_sources(orrery PRIVATE $<TARGET_OBJECTS:orrery_cold>)
endif()

if(NOT ORRERY_SANITIZE STREQUAL off)
  if(NOT DEFINED sanitizer_${ORRERY_SANITIZE})
    message(FATAL_ERROR "ORRERY_SANITIZE is '${ORRERY_SANITIZE}'; it must be off, address or thread")
  endif()
  target_compile_options(orrery PUBLIC ${sanitizer_${ORRERY_SANITIZE}})
  target_link_options(orrery PUBLIC ${sanitizer_${ORRERY_SANITIZE}} -no-pie)  # nothing to relocate where a process starts
  if(ORRERY_SANITIZE STREQUAL address AND CMAKE_CXX_COMPILER_ID MATCHES Clang)  # a third of the time that GCC takes
    target_compile_options(orrery PRIVATE -fsanitize=null,alignment)
    target_compile_options(orrery_cold PRIVATE -fsanitize=null,alignment)
  endif()
endif()
if(ORRERY_FUZZ)  # the fuzz targets see which parts of the library an input reaches
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang OR NOT ORRERY_SANITIZE STREQUAL address)
    message(FATAL_ERROR "ORRERY_FUZZ needs Clang and ORRERY_SANITIZE=address; use the preset 'asan'.")
  endif()
  # Not PUBLIC: that would be a quarter of the time of a program. Nor in all of the library: a tenth of its time.
  foreach(part orrery orrery_cold)
    target_compile_options(${part} PRIVATE -fsanitize=fuzzer-no-link
                           -fsanitize-coverage-allowlist=${PROJECT_SOURCE_DIR}/cmake/fuzzed.list)
  endforeach()
endif()
