# `specllama_options`: warnings and sanitizers for our own targets, not for what we link.
add_library(specllama_options INTERFACE)
target_compile_options(specllama_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                                   -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overlapping copies in std::string's operator+ where there are none (PR 105651).
  target_compile_options(specllama_options INTERFACE -Wno-restrict)
endif()
if(SPECLLAMA_WERROR)
  target_compile_options(specllama_options INTERFACE -Werror)
endif()
if(SPECLLAMA_SANITIZE)
  target_compile_options(specllama_options INTERFACE -fsanitize=${SPECLLAMA_SANITIZE}
                                                     -fno-omit-frame-pointer -g)
  target_link_options(specllama_options INTERFACE -fsanitize=${SPECLLAMA_SANITIZE})
endif()

# Where a target finds libllama at run time, given the way from its folder to site-packages; outside
# a wheel, where it was linked.
function(specllama_rpath target to_site_packages)
  if(LLAMA_SOURCE_DIR)
    return()
  endif()
  if(NOT in_wheel)
    cmake_path(GET llama_LIBRARY PARENT_PATH linked)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${linked}")
    return()
  endif()
  set(origin "$ORIGIN")
  if(APPLE)
    set(origin "@loader_path")
  endif()
  set_target_properties(${target} PROPERTIES INSTALL_RPATH
                                             "${origin}/${to_site_packages}/llama_cpp/lib")
endfunction()
