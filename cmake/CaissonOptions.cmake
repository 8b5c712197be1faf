# Build choices, and the flags every target of ours is compiled with.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# A launch is system calls: -O2 makes it no faster and the build a third longer. Loops over much data are compiled with
# -O2 (caisson_optimize).
option(CAISSON_SMALL "Compile for size, as packages are; slower to compile" OFF)
if(CAISSON_SMALL)
  set(CMAKE_CXX_FLAGS_RELEASE "-Os -DNDEBUG")
else()
  set(CMAKE_CXX_FLAGS_RELEASE "-Og -DNDEBUG")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The compiler's garbage collection takes a tenth of its time by default; this costs about 100 MB more per job.
  string(APPEND CMAKE_CXX_FLAGS_RELEASE " --param ggc-min-heapsize=1048576 --param ggc-min-expand=300")
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

option(CAISSON_TESTS "Build the test suites" ON)
option(CAISSON_BENCH "Build the benchmark programs" OFF)
option(CAISSON_FUZZ "Build the fuzzers (needs Clang)" OFF)
option(CAISSON_INSTALL "Define the install rules" ON)
option(CAISSON_BUNDLE "Put the code of RE2 and libyaml into libcaisson.a, as packages do (needs CAISSON_STATIC)" OFF)
option(CAISSON_STATIC "Link the caisson binary statically (start-up cost: no relocations, no loader)" ON)
# A compiler cache does better without both, and such a build also finds a missing include.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(CAISSON_PRECOMPILE "Parse the headers of the standard library once" ${precompile})
option(CAISSON_UNITY "Compile several sources of a folder at a time, which instantiates templates once for all" ${precompile})
set(CAISSON_SANITIZE "" CACHE STRING "Sanitizers for everything, e.g. address,undefined or thread")

add_library(caisson_flags INTERFACE)
target_compile_options(caisson_flags INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wno-missing-field-initializers -fvisibility=hidden -fno-plt -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(caisson_flags INTERFACE -Wno-restrict)  # false alarms on "literal" + std::string (GCC bug 105651)
  # False alarms where std::function and std::expected are inlined, seen when several sources are compiled together.
  target_compile_options(caisson_flags INTERFACE -Wno-free-nonheap-object)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(caisson_flags INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(caisson_flags INTERFACE -Wl,--gc-sections)
endif()
if(CAISSON_SANITIZE)
  target_compile_options(caisson_flags INTERFACE -fsanitize=${CAISSON_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(caisson_flags INTERFACE -fsanitize=${CAISSON_SANITIZE})
  if(CAISSON_SANITIZE MATCHES "undefined")
    # UBSan checks the type of an object through a pipe, which the broker's filter refuses.
    target_compile_options(caisson_flags INTERFACE -fno-sanitize=vptr)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Between the instrumentation GCC no longer sees which alternative of a variant is alive.
    target_compile_options(caisson_flags INTERFACE -Wno-free-nonheap-object -Wno-maybe-uninitialized)
  endif()
endif()
if(CAISSON_FUZZ)
  # Coverage in every layer: a fuzzer that sees only its own file finds nothing.
  target_compile_options(caisson_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(caisson_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
