# `specllama_options`: warnings and sanitizers for our own targets, not for linked libraries.
add_library(specllama_options INTERFACE)
target_compile_options(specllama_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                                   -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 wrongly warns of overlapping copies in std::string's operator+ (PR 105651).
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

# Sets the path of libllama for a target at run time, given the path from its folder to
# site-packages. Outside a wheel: where it was linked.
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
