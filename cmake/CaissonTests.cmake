# caisson_test(NAME name SOURCES ... [LIBS ...] [LABELS unit|functional|security|degraded ...]
#              [TIMEOUT seconds] [COST seconds] [PROCESSORS count] [AS_USER] [SERIAL])
#   A GoogleTest program, registered as one ctest entry. `make test` counts its test cases from
#   test-results/<entry>.xml.
#   AS_USER: when root runs the suite, the entry <name>.user also runs the program as an ordinary user.
#   Only ctest knows the user who runs the suite, so these entries are written to a file that ctest reads.
#   SERIAL: runs while no other test runs (timing, machine-wide state).
#   COST: approximate duration. The longest tests start first, so that the suite does not wait for them at the end.
#   PROCESSORS: how many parallel tests it counts as.
#   LIBS: layers or other libraries, in addition to the black-box support library.
#
# caisson_script_test(NAME name COMMAND ... [LABELS ...] [TIMEOUT seconds])
#   A script as one ctest entry; exit status 77 means skipped, and the first line of output is the reason.
set(CAISSON_TEST_RESULTS ${PROJECT_BINARY_DIR}/test-results)
set(CAISSON_USER_TESTS ${PROJECT_BINARY_DIR}/user_tests.cmake)
file(MAKE_DIRECTORY ${CAISSON_TEST_RESULTS})
file(WRITE ${CAISSON_USER_TESTS} [[
execute_process(COMMAND id -u OUTPUT_VARIABLE caisson_uid OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT caisson_uid STREQUAL "0")
  return()
endif()
]])

set(CAISSON_TEST_ENVIRONMENT
  CAISSON_BIN=${PROJECT_BINARY_DIR}/caisson
  CAISSON_PAYLOAD=${PROJECT_BINARY_DIR}/tests/payloads/payload
  CAISSON_WEAKENED=${PROJECT_BINARY_DIR}/tests/security/caisson-weakened
  CAISSON_SOURCE_DIR=${PROJECT_SOURCE_DIR})

# Test code runs once, and optimising it would take most of the build time.
set(CAISSON_TEST_FLAGS -O0)
if(CAISSON_SANITIZE)
  set(CAISSON_TEST_FLAGS)
endif()
caisson_precompiled(caisson_test_headers
  <algorithm> <chrono> <filesystem> <fstream> <functional> <map> <memory> <optional> <sstream> <string> <string_view>
  <thread> <vector> <gtest/gtest.h> <nlohmann/json.hpp>)
if(TARGET caisson_test_headers)
  target_compile_options(caisson_test_headers PRIVATE ${CAISSON_TEST_FLAGS})
  target_link_libraries(caisson_test_headers PRIVATE GTest::gtest nlohmann_json::nlohmann_json)
endif()

# caisson_only_drives(target): its code only starts the built binary and checks it from outside. Sanitizer builds do not
# instrument it: it contains no product code, and instrumenting it would be a third of the work.
function(caisson_only_drives target)
  if(NOT CAISSON_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE -O0 -fno-sanitize=all)
  if(CAISSON_SANITIZE MATCHES "thread")
    target_compile_definitions(${target} PRIVATE CAISSON_DRIVES_THREAD_SANITIZER)
  endif()
endfunction()

function(caisson_test)
  cmake_parse_arguments(ARG "AS_USER;SERIAL" "NAME;TIMEOUT;COST;PROCESSORS" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 10)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  if(CAISSON_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 3")
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE caisson_flags caisson_test_support ${ARG_LIBS} caisson_test_main GTest::gtest)
  target_compile_options(${ARG_NAME} PRIVATE ${CAISSON_TEST_FLAGS})
  # Not for the unit tests: they are in many namespaces, and names from different namespaces would conflict.
  if(CAISSON_PRECOMPILE AND NOT ARG_NAME STREQUAL unit_tests)
    set_target_properties(${ARG_NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  endif()
  get_property(layers GLOBAL PROPERTY CAISSON_LAYERS)
  set(drives_only ON)
  foreach(library IN LISTS ARG_LIBS)
    if(library IN_LIST layers)
      set(drives_only OFF)
    endif()
  endforeach()
  if(CAISSON_SANITIZE AND drives_only)
    caisson_only_drives(${ARG_NAME})
  else()
    caisson_precompile(${ARG_NAME} caisson_test_headers)
  endif()

  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} --gtest_output=xml:${CAISSON_TEST_RESULTS}/${ARG_NAME}.xml)
  set_tests_properties(${ARG_NAME} PROPERTIES
    TIMEOUT ${ARG_TIMEOUT} COST ${ARG_COST} PROCESSORS ${ARG_PROCESSORS} LABELS "${ARG_LABELS}"
    ENVIRONMENT "${CAISSON_TEST_ENVIRONMENT}")
  if(ARG_SERIAL)
    set_tests_properties(${ARG_NAME} PROPERTIES RUN_SERIAL TRUE)
  endif()
  if(NOT ARG_AS_USER)
    return()
  endif()

  set(serial "FALSE")
  if(ARG_SERIAL)
    set(serial "TRUE")
  endif()
  file(APPEND ${CAISSON_USER_TESTS} "
add_test([[${ARG_NAME}.user]] sh [[${PROJECT_SOURCE_DIR}/scripts/as_user.sh]] [[${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}]]
  [[${CAISSON_TEST_RESULTS}/${ARG_NAME}.user.xml]])
set_tests_properties([[${ARG_NAME}.user]] PROPERTIES TIMEOUT ${ARG_TIMEOUT} COST ${ARG_COST} PROCESSORS ${ARG_PROCESSORS} LABELS [[${ARG_LABELS};user]]
  RUN_SERIAL ${serial} ENVIRONMENT [[${CAISSON_TEST_ENVIRONMENT}]])
")
endfunction()

function(caisson_script_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "COMMAND;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_COMMAND})
  set_tests_properties(${ARG_NAME} PROPERTIES
    TIMEOUT ${ARG_TIMEOUT} COST 30 LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 ENVIRONMENT "${CAISSON_TEST_ENVIRONMENT}")
endfunction()

# caisson_fuzzer(NAME name SOURCES ... LIBS ...)
#   A libFuzzer program build-fuzz/tests/fuzz/<name>; seeds, if any, in tests/fuzz/corpus/<name>/.
#   scripts/fuzz_smoke.sh runs all of them. Defines no target without CAISSON_FUZZ.
function(caisson_fuzzer)
  if(NOT CAISSON_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LIBS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE caisson_flags ${ARG_LIBS} -fsanitize=fuzzer)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fuzz)
  add_dependencies(fuzzers ${ARG_NAME})
endfunction()
