# Installs the headers and a package that find_package(memfit) finds.
include(CMakePackageConfigHelpers)

set(memfit_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/memfit)

install(TARGETS memfit EXPORT memfitTargets)
install(EXPORT memfitTargets NAMESPACE memfit:: DESTINATION ${memfit_package_dir})
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include/memfit
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")

configure_package_config_file(cmake/memfitConfig.cmake.in memfitConfig.cmake
  INSTALL_DESTINATION ${memfit_package_dir})
write_basic_package_version_file(memfitConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/memfitConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/memfitConfigVersion.cmake
  DESTINATION ${memfit_package_dir})
