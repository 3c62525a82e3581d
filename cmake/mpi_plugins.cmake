# SPDX-License-Identifier: Apache-2.0
# The plug-ins through which the library uses MPI: one for each kind of MPI whose headers are here. Nothing is linked with
# MPI; a program without plug-ins runs on one machine.
include(GNUInstallDirs)
find_path(ORRERY_OPENMPI_INCLUDE mpi.h PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include /usr/include/openmpi-x86_64
          NO_DEFAULT_PATH)
find_path(ORRERY_MPICH_INCLUDE mpi.h PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich /usr/include/mpich-x86_64
          NO_DEFAULT_PATH)
set(plugin_dir ${PROJECT_BINARY_DIR}/mpi)
foreach(kind openmpi mpich)
  string(TOUPPER ${kind} upper)
  if(ORRERY_${upper}_INCLUDE)
    add_library(orrery_mpi_${kind} MODULE orrery/transport/mpi/plugin/plugin.cpp)
    target_include_directories(orrery_mpi_${kind} PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(orrery_mpi_${kind} SYSTEM PRIVATE ${ORRERY_${upper}_INCLUDE})
    set_target_properties(orrery_mpi_${kind} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${plugin_dir})
    add_dependencies(orrery orrery_mpi_${kind})  # so that each program that is built can be started by mpirun
    install(TARGETS orrery_mpi_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/orrery)
  endif()
endforeach()
set_source_files_properties(orrery/transport/mpi/library.cpp PROPERTIES COMPILE_DEFINITIONS
                            "ORRERY_PLUGIN_DIRS=\"${plugin_dir}:${CMAKE_INSTALL_FULL_LIBDIR}/orrery\"")
