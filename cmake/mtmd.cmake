# Defines the target `mtmd`, llama.cpp's library for images and sounds. The wheel has no CMake
# package for it; it is next to libllama.
if(NOT TARGET mtmd)
  get_filename_component(llama_libraries "${llama_LIBRARY}" DIRECTORY)
  find_library(mtmd_LIBRARY mtmd PATHS "${llama_libraries}" NO_DEFAULT_PATH REQUIRED)
  add_library(mtmd UNKNOWN IMPORTED)
  set_target_properties(mtmd PROPERTIES IMPORTED_LOCATION "${mtmd_LIBRARY}"
                                        INTERFACE_INCLUDE_DIRECTORIES "${LLAMA_INCLUDE_DIR}"
                                        INTERFACE_LINK_LIBRARIES llama)
endif()
