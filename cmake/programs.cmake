# SPDX-License-Identifier: Apache-2.0
# The tools, the examples with tasks of C, and the applications.
if(ORRERY_TOOL)
  file(GLOB tool CONFIGURE_DEPENDS tools/orrery/*.cpp)
  orrery_program(orrery_tool . ${tool})
  orrery_compile_together(orrery_tool)
  target_compile_definitions(orrery_tool PRIVATE ORRERY_VERSION="${PROJECT_VERSION}")
  # the headers of terminals have macros for common words
  set_source_files_properties(tools/orrery/screen.cpp tools/orrery/known_terminal.cpp
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  pkg_check_modules(orrery_terminal REQUIRED IMPORTED_TARGET ncursesw)
  if(NOT TARGET orrery_hdf5)
    message(FATAL_ERROR "The tool needs HDF5 (Debian: libhdf5-dev); or use -D ORRERY_TOOL=OFF")
  endif()
  find_library(ORRERY_NIFTI nifti2 REQUIRED)  # no file for pkg-config either
  find_library(ORRERY_ZNZ znz REQUIRED)
  target_link_libraries(orrery_tool PRIVATE PkgConfig::orrery_terminal orrery::hdf5 PkgConfig::orrery_hdf5 ${ORRERY_NIFTI} ${ORRERY_ZNZ})
  find_path(ORRERY_NIFTI_INCLUDE nifti2_io.h PATH_SUFFIXES nifti REQUIRED)
  target_include_directories(orrery_tool SYSTEM PRIVATE ${ORRERY_NIFTI_INCLUDE})
  set_target_properties(orrery_tool PROPERTIES OUTPUT_NAME orrery)
  install(TARGETS orrery_tool)
endif()

# orrery-cc: re2c makes its lexer; without re2c the one that it made is taken.
if(ORRERY_TOOL)
  find_program(ORRERY_RE2C re2c)
  set(lexer ${PROJECT_BINARY_DIR}/orrery_cc/lexer.cpp)
  if(ORRERY_RE2C)
    add_custom_command(OUTPUT ${lexer} COMMAND ${ORRERY_RE2C} -i --no-generation-date -o ${lexer} ${PROJECT_SOURCE_DIR}/tools/orrery_cc/lexer.re
                       DEPENDS tools/orrery_cc/lexer.re VERBATIM)
  else()
    add_custom_command(OUTPUT ${lexer} COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/tools/orrery_cc/lexer.inc ${lexer}
                       DEPENDS tools/orrery_cc/lexer.inc VERBATIM)
  endif()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/orrery_cc)
  # Its parts are a library, which its fuzz target links, too.
  file(GLOB parts CONFIGURE_DEPENDS tools/orrery_cc/*.cpp)
  list(FILTER parts EXCLUDE REGEX "/main\\.cpp$")
  add_library(orrery_cc_parts STATIC ${parts} ${lexer})
  orrery_compile_together(orrery_cc_parts)
  set_source_files_properties(tools/orrery_cc/driver.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # has names of others
  target_link_libraries(orrery_cc_parts PUBLIC orrery::orrery fmt::fmt PkgConfig::orrery_system)
  include(GNUInstallDirs)
  target_compile_definitions(orrery_cc_parts PRIVATE ORRERY_CC_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             ORRERY_CC_LIBDIR="${CMAKE_INSTALL_LIBDIR}"
                             ORRERY_CC_LIBRARIES="-lfmt -luring -lhwloc -lxxhash -lmetis -lboost_context -pthread -lstdc++ -lm")
  if(ORRERY_FUZZ)
    target_compile_options(orrery_cc_parts PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  orrery_program(orrery_cc . tools/orrery_cc/main.cpp)
  target_link_libraries(orrery_cc PRIVATE orrery_cc_parts)
  set_target_properties(orrery_cc PROPERTIES OUTPUT_NAME orrery-cc)
  install(TARGETS orrery_cc)

  # Manual pages: of orrery-cc, and of the calls of task.h, which are made of its comments.
  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND)
    set(man ${PROJECT_BINARY_DIR}/man/man3)
    add_custom_command(OUTPUT ${man}/orrery_tasks.3
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/man_of_header ${PROJECT_SOURCE_DIR}/orrery/task/task.h ${man}
      DEPENDS orrery/task/task.h tools/man_of_header VERBATIM)
    add_custom_target(man_pages ALL DEPENDS ${man}/orrery_tasks.3)
    install(DIRECTORY ${man} DESTINATION ${CMAKE_INSTALL_MANDIR})
  endif()
  install(FILES docs/man/orrery-cc.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# Examples with tasks of C: examples/tasks/x.c and examples/tasks/x/*.c (examples.cmake has the others)
if(ORRERY_EXAMPLES AND ORRERY_TOOL)
  file(GLOB examples CONFIGURE_DEPENDS examples/tasks/*.c)
  foreach(example IN LISTS examples)
    cmake_path(GET example STEM name)
    orrery_c_program(${name} examples ${example})
  endforeach()
  set(airports_libraries -lncursesw)  # a view in the terminal
  configure_file(examples/tasks/airports/january.csv examples/january.csv COPYONLY)
  file(GLOB examples CONFIGURE_DEPENDS examples/tasks/*/main.c)
  foreach(example IN LISTS examples)
    cmake_path(GET example PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    file(GLOB example_sources CONFIGURE_DEPENDS ${folder}/*.c)
    orrery_c_program(${name} examples ${example_sources})
  endforeach()
  # examples/tasks/x/main.cpp: C++, with tasks of C, and a header for C++ of x/*.h
  file(GLOB examples CONFIGURE_DEPENDS examples/tasks/*/main.cpp)
  foreach(example IN LISTS examples)
    cmake_path(GET example PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    file(GLOB example_sources CONFIGURE_DEPENDS ${folder}/*.cpp)
    file(GLOB of_c CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*.h)
    orrery_made_of_c(made examples/made/${name} ${of_c})
    orrery_program(example_${name} examples ${example_sources} ${made})
    target_include_directories(example_${name} PRIVATE ${PROJECT_BINARY_DIR}/examples/made/${name})
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name})
  endforeach()
endif()

# apps/fft3d: a library, which its tests link, too, and the program
option(ORRERY_APPS "Build the applications" ON)
if(ORRERY_APPS)
  pkg_check_modules(orrery_fftw REQUIRED IMPORTED_TARGET fftw3 fftw3f)
  find_file(ORRERY_CHART_JS chart.js/chart.min.js PATHS /usr/share/javascript REQUIRED)
  file(GLOB fft3d CONFIGURE_DEPENDS apps/fft3d/*.cpp apps/fft3d/command_line/*.cpp)
  list(FILTER fft3d EXCLUDE REGEX "/main\\.cpp$")
  add_library(fft3d STATIC ${fft3d})
  orrery_compile_together(fft3d)
  target_include_directories(fft3d PRIVATE ${PROJECT_BINARY_DIR}/apps)
  target_link_libraries(fft3d PUBLIC orrery::orrery PkgConfig::orrery_fftw
                        PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
  file(READ apps/fft3d/command_line/report.html report_html)
  file(READ ${ORRERY_CHART_JS} chart_js)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS apps/fft3d/command_line/report.html)
  file(CONFIGURE OUTPUT apps/report_parts.hpp @ONLY CONTENT [[#pragma once
#ifdef __clang__
#pragma clang diagnostic ignored "-Woverlength-strings"
#endif
#include <string_view>
inline constexpr std::string_view report_html = R"~~~~(@report_html@)~~~~";
inline constexpr std::string_view chart_js = R"~~~~(@chart_js@)~~~~";
]])
  orrery_program(fft3d_app apps apps/fft3d/command_line/main.cpp tools/orrery/progress.cpp)
  target_link_libraries(fft3d_app PRIVATE fft3d)
  set_target_properties(fft3d_app PROPERTIES OUTPUT_NAME fft3d)
  install(TARGETS fft3d_app)

  # apps/fft_servers: the paper's own program
  file(GLOB fft_servers CONFIGURE_DEPENDS apps/fft_servers/*.cpp)
  orrery_program(fft_servers apps ${fft_servers})
  target_link_libraries(fft_servers PRIVATE PkgConfig::orrery_fftw)

  # apps/mri: what the main job needs beside fft3d; a library and a program, too
  find_package(PNG REQUIRED)
  file(GLOB mri CONFIGURE_DEPENDS apps/mri/*.cpp)
  list(FILTER mri EXCLUDE REGEX "/main\\.cpp$")
  add_library(mri_steps STATIC ${mri})
  target_link_libraries(mri_steps PUBLIC orrery::orrery PRIVATE nlohmann_json::nlohmann_json PNG::PNG)
  orrery_program(mri apps apps/mri/main.cpp)
  target_link_libraries(mri PRIVATE mri_steps)
endif()

# What ORRERY_BUILT of another build tree needs to know of this one.
set(made orrery)
if(TARGET orrery_hdf5)
  list(APPEND made orrery_hdf5)
endif()
foreach(target orrery_tool orrery_cc_parts orrery_cc fft3d fft3d_app fft_servers mri_steps mri)
  if(TARGET ${target})
    list(APPEND made ${target})
  endif()
endforeach()
export(TARGETS ${made} FILE ${PROJECT_BINARY_DIR}/built.cmake)
