# What memfit's own tests, examples and benchmarks are built with. Users of the library never read this file.

# Everything of our own links this: a warning stops the build.
add_library(memfit_warnings INTERFACE)
target_compile_options(memfit_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Wshadow,-Werror>)

find_program(MEMFIT_CCACHE ccache)
mark_as_advanced(MEMFIT_CCACHE)
if(MEMFIT_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # What a precompiled header holds is part of what ccache looks at; it wants to be told that this suffices.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${MEMFIT_CCACHE})
endif()

# Build the programs of the tests that `bash tests/run.sh` runs, and of those labelled gpu. The default target has both,
# and the benchmarks.
add_custom_target(plain_tests)
add_custom_target(gpu_tests)

# memfit_built_for_tests(<target> [<label>...])
#
# Has the target built with the tests that carry these labels.
function(memfit_built_for_tests target)
  if("gpu" IN_LIST ARGN)
    add_dependencies(gpu_tests ${target})
  elseif(NOT "large" IN_LIST ARGN)
    add_dependencies(plain_tests ${target})
  endif()
endfunction()

# memfit_test(<name> SOURCES <file>... [OPTIMIZED] [LABELS <label>...] [LIBRARIES <target>...])
#
# A GoogleTest program that is one entry of ctest. Most instantiate much and run it little, so a release builds them at
# -O1 and with GoogleTest and the library read from one precompiled header; OPTIMIZED is for those that compute long. Label `large` keeps a test that wants much memory or time, and
# label `gpu` one that wants a GPU, out of `bash tests/run.sh`. A program without a single test fails.
function(memfit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMIZED" "" "SOURCES;LABELS;LIBRARIES")
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "memfit_test(${name}): no SOURCES")
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE
    memfit::memfit memfit_warnings ${arg_LIBRARIES} GTest::gtest_main)
  if(arg_OPTIMIZED)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  else()
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    if(TARGET memfit_test_headers)
      target_precompile_headers(${name} REUSE_FROM memfit_test_headers)
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}"
    FAIL_REGULAR_EXPRESSION "0 tests from 0 test suites ran")
  memfit_built_for_tests(${name} ${arg_LABELS})
endfunction()

# memfit_cuda_test(<name> SOURCES <file>... [LIBRARIES <target>...])
#
# The same for a program that wants a GPU: label `gpu`, skipped with a printed reason where no device answers.
function(memfit_cuda_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES} ${memfit_SOURCE_DIR}/tests/cuda/main.cpp)
  target_link_libraries(${name} PRIVATE memfit::memfit memfit_warnings memfit_test_support ${arg_LIBRARIES}
    CUDA::cudart GTest::gtest)
  set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES "${memfit_test_architectures}")
  memfit_built_for_tests(${name} gpu)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES
    LABELS gpu
    SKIP_RETURN_CODE 77
    FAIL_REGULAR_EXPRESSION "0 tests from 0 test suites ran")
endfunction()

# memfit_example(<name> SOURCES <file>... [LABELS <label>...] [LIBRARIES <target>...])
#
# A small program without arguments that also runs as a test.
function(memfit_example name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LABELS;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE memfit::memfit memfit_warnings ${arg_LIBRARIES})
  if(MEMFIT_BUILD_TESTS)
    add_test(NAME example.${name} COMMAND ${name})
    set_tests_properties(example.${name} PROPERTIES LABELS "${arg_LABELS}")
    memfit_built_for_tests(${name} ${arg_LABELS})
  endif()
endfunction()
