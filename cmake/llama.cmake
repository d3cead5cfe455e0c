# Defines the targets `llama` and `mtmd`, and SPECLLAMA_LLAMA_CPP_PYTHON, the version of their
# llama-cpp-python wheel (empty if llama.cpp is built from LLAMA_SOURCE_DIR).
set(SPECLLAMA_LLAMA_CPP_PYTHON "")

if(LLAMA_SOURCE_DIR)
  set(BUILD_SHARED_LIBS OFF)
  set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)
  set(LLAMA_BUILD_MTMD ON CACHE BOOL "" FORCE)
  add_subdirectory("${LLAMA_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/llama.cpp" EXCLUDE_FROM_ALL SYSTEM)
  return()
endif()

find_package(Python COMPONENTS Interpreter REQUIRED)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c
          "from importlib import metadata, util; \
           print(metadata.version('llama-cpp-python'), \
                 list(util.find_spec('llama_cpp').submodule_search_locations)[0], sep=';')"
  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  message(FATAL_ERROR
          "llama-cpp-python is not installed for ${Python_EXECUTABLE}: install the version that "
          "pyproject.toml pins, or set LLAMA_SOURCE_DIR to a llama.cpp source tree.")
endif()
list(GET found 0 SPECLLAMA_LLAMA_CPP_PYTHON)
list(GET found 1 llama_cpp_package)
message(STATUS "llama.cpp from llama-cpp-python ${SPECLLAMA_LLAMA_CPP_PYTHON}")
cmake_path(GET llama_cpp_package PARENT_PATH site_packages)
find_package(llama CONFIG REQUIRED PATHS "${site_packages}" NO_DEFAULT_PATH)
include(cmake/mtmd.cmake)
