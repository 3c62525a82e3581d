# SPDX-License-Identifier: Apache-2.0
# The tests of a program, as tests of ctest; or, where there are many and each is short, in parts of some forty, a process for each.
# FILTER and ENVIRONMENT: which, and in which environment.
function(orrery_ctest name label prefix limit)
  cmake_parse_arguments(with "" "FILTER" "ENVIRONMENT" ${ARGN})
  set(properties LABELS ${label})
  if(ORRERY_SANITIZE STREQUAL thread AND NOT with_FILTER)
    set(with_FILTER "-*simulat*:array_loss*:list_chaos*")  # a simulation has one thread
  endif()
  if(with_ENVIRONMENT)
    list(JOIN with_ENVIRONMENT "\\;" environment)  # one value, a list
    list(APPEND properties ENVIRONMENT "${environment}")
  endif()
  if(NOT ORRERY_TEST_BATCHES)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${prefix}"
                         TEST_FILTER "${with_FILTER}" PROPERTIES TIMEOUT ${limit} ${properties})
    return()
  endif()
  get_target_property(sources ${name} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.test\\.cpp$")
  set(count 0)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} tests REGEX "^ *(TEST|TEST_F|TEST_P|RC_GTEST_PROP|INSTANTIATE_TEST_SUITE_P)\\(")
    list(LENGTH tests more)
    math(EXPR count "${count} + ${more}")
  endforeach()
  math(EXPR parts "(${count} + 39) / 40")
  list(LENGTH sources files)
  if(parts LESS files AND NOT name MATCHES "^tests_")  # each of these starts programs, and waits for them
    set(parts ${files})
  endif()
  if(label MATCHES "^(fft|machines)$")  # few, and each is long
    set(parts 4)
  endif()
  foreach(part RANGE 1 ${parts})
    math(EXPR number "${part} - 1")
    add_test(NAME ${prefix}${name}.${part}
             COMMAND ${PROJECT_SOURCE_DIR}/tests/run/batch $<TARGET_FILE:${name}> ${number} ${parts} ${limit}
                     $<$<BOOL:${with_FILTER}>:--gtest_filter=${with_FILTER}>)
    set_tests_properties(${prefix}${name}.${part} PROPERTIES TIMEOUT 3600 ${properties})
  endforeach()
endfunction()
