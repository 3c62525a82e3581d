# SPDX-License-Identifier: Apache-2.0
# What is installed.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/orrery)
configure_package_config_file(cmake/orreryConfig.cmake.in orreryConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(orreryConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
pkg_get_variable(hwloc_libdir hwloc libdir)
configure_file(cmake/orrery.pc.in orrery.pc @ONLY)

install(TARGETS orrery EXPORT orrery)
if(TARGET orrery_hdf5)
  install(TARGETS orrery_hdf5 EXPORT orrery)
endif()
install(EXPORT orrery FILE orreryTargets.cmake NAMESPACE orrery:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/orreryConfig.cmake ${PROJECT_BINARY_DIR}/orreryConfigVersion.cmake
        DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/orrery.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY orrery DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN internal EXCLUDE)
