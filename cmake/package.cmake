# `find_package(specllama)` after `cmake --install` provides the target specllama::specllama and the
# headers. (Not with LLAMA_SOURCE_DIR, since llama.cpp's libraries would have to be installed, too.)
if(LLAMA_SOURCE_DIR)
  return()
endif()
include(CMakePackageConfigHelpers)
set(specllama_package "${CMAKE_INSTALL_LIBDIR}/cmake/specllama")

set_target_properties(specllama_core PROPERTIES EXPORT_NAME specllama OUTPUT_NAME specllama)
install(TARGETS specllama_core EXPORT specllama-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp)
install(DIRECTORY csrc/include/specllama DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT cpp)
install(EXPORT specllama-targets NAMESPACE specllama:: DESTINATION "${specllama_package}"
        COMPONENT cpp)

configure_package_config_file(cmake/specllama-config.cmake.in specllama-config.cmake
                              INSTALL_DESTINATION "${specllama_package}")
write_basic_package_version_file(specllama-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/specllama-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/specllama-config-version.cmake" cmake/mtmd.cmake
        DESTINATION "${specllama_package}" COMPONENT cpp)
