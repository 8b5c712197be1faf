# Build options, and the compiler flags of all targets.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# A launch consists mostly of system calls: -O2 does not make it faster, and the build takes a third longer. Only loops
# over much data are compiled with -O2 (caisson_optimize).
option(CAISSON_SMALL "Optimise for size, as for packages (slower to compile)" OFF)
if(CAISSON_SMALL)
  set(CMAKE_CXX_FLAGS_RELEASE "-Os -DNDEBUG")
else()
  set(CMAKE_CXX_FLAGS_RELEASE "-Og -DNDEBUG")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # By default, garbage collection takes a tenth of the compiler's time. These settings use about 100 MB more per job.
  string(APPEND CMAKE_CXX_FLAGS_RELEASE " --param ggc-min-heapsize=1048576 --param ggc-min-expand=300")
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

option(CAISSON_TESTS "Build the test suites" ON)
option(CAISSON_BENCH "Build the benchmark programs" OFF)
option(CAISSON_FUZZ "Build the fuzzers (needs Clang)" OFF)
option(CAISSON_INSTALL "Define the install rules" ON)
option(CAISSON_BUNDLE "Put the code of RE2 and libyaml into libcaisson.a, as packages do (needs CAISSON_STATIC)" OFF)
option(CAISSON_STATIC "Link the caisson binary statically (start-up cost: no relocations, no loader)" ON)
# A compiler cache works better without the two options below. Builds without them also detect missing includes.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(CAISSON_PRECOMPILE "Parse the headers of the standard library once" ${precompile})
option(CAISSON_UNITY "Compile several sources of a folder together, so that templates are instantiated once" ${precompile})
set(CAISSON_SANITIZE "" CACHE STRING "Sanitizers for everything, e.g. address,undefined or thread")

add_library(caisson_flags INTERFACE)
target_compile_options(caisson_flags INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wno-missing-field-initializers -fvisibility=hidden -fno-plt -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(caisson_flags INTERFACE -Wno-restrict)  # false positives on "literal" + std::string (GCC bug 105651)
  # False positives where std::function and std::expected are inlined, when several sources are compiled together.
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
    # The vptr check of UBSan creates a pipe, which the broker's seccomp filter denies.
    target_compile_options(caisson_flags INTERFACE -fno-sanitize=vptr)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False positives: in instrumented code GCC cannot tell which alternative of a variant is active.
    target_compile_options(caisson_flags INTERFACE -Wno-free-nonheap-object -Wno-maybe-uninitialized)
  endif()
endif()
if(CAISSON_FUZZ)
  # All layers need coverage instrumentation, not only the fuzzer's own file.
  target_compile_options(caisson_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(caisson_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
