# SPDX-License-Identifier: Apache-2.0
# What most tests include. Clang reads it once, and what is instantiated there it makes once, in an object of its own:
# that is half of its time. (GCC loads such a file as slowly as it reads the headers, and cannot keep code with it.)

set(common_options $<$<CONFIG:Release>:-g0> -O0 -fpch-codegen -Wno-unused-command-line-argument
                   "SHELL:-Xclang -fno-pch-timestamp")
set(common_options ${common_options} PARENT_SCOPE)  # benchmarks have it, too

# orrery_test_header(NAME HEADER [LIBRARY...]): the precompiled header, as target NAME, and the code of it, NAME_code.
function(orrery_test_header name header)
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "")
  orrery_program_options(${name})
  target_link_libraries(${name} PRIVATE ${ARGN})
  # What is instantiated there is instantiated once, not in each source: a twentieth of their time.
  target_compile_options(${name} PRIVATE ${common_options} -fpch-instantiate-templates)
  target_precompile_headers(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${header})
  set(precompiled ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.pch)
  string(TOUPPER ${CMAKE_BUILD_TYPE} type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  add_custom_command(OUTPUT ${name}.o DEPENDS ${precompiled} ${name} COMMAND_EXPAND_LISTS VERBATIM
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} "$<FILTER:$<TARGET_PROPERTY:${name},COMPILE_OPTIONS>,EXCLUDE,^SHELL:>"
            -ffunction-sections -c ${precompiled} -o ${name}.o)
  add_library(${name}_code STATIC ${name}.o)
  set_target_properties(${name}_code PROPERTIES LINKER_LANGUAGE CXX)
  target_link_options(${name}_code INTERFACE -Wl,--gc-sections)  # all inline functions of all headers are there
endfunction()

set(of_tests orrery_test_support GTest::gtest rapidcheck rapidcheck_gtest)
set(of_tests ${of_tests} PARENT_SCOPE)
orrery_test_header(orrery_test_common support/common.hpp ${of_tests})
if("service" MATCHES "${ORRERY_TEST_LABELS}")
  orrery_test_header(orrery_test_common_service support/common_service.hpp ${of_tests})
endif()
if("guide" MATCHES "${ORRERY_TEST_LABELS}")
  orrery_test_header(orrery_guide_common ../orrery/orrery.hpp)
endif()
