# SPDX-License-Identifier: Apache-2.0
# One set of compiler options for every target of the project. NDEBUG is never set: asserts stay on in release.
option(TIDEGATE_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(TIDEGATE_FUZZ "libFuzzer targets instead of their corpora as tests; clang only" OFF)
option(TIDEGATE_FAILPOINTS "named instants at which a daemon can be made to fail (lib/io/failpoint.h); for tests only" OFF)
if(TIDEGATE_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID STREQUAL Clang)
        message(FATAL_ERROR "TIDEGATE_FUZZ needs clang")
    endif()
    set(TIDEGATE_SANITIZE ON)
    # Everything is watched, also what is generated or comes from packages as source.
    add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
endif()

add_library(tidegate_options INTERFACE)
target_include_directories(tidegate_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/proto)
target_compile_definitions(tidegate_options INTERFACE _GNU_SOURCE TG_VERSION="${PROJECT_VERSION}")
if(TIDEGATE_FAILPOINTS)
    target_compile_definitions(tidegate_options INTERFACE TIDEGATE_FAILPOINTS)
endif()
target_compile_options(tidegate_options INTERFACE
    -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla
    -Wformat=2 -Wundef -Wimplicit-fallthrough -Wno-unused-parameter -fstack-protector-strong -fno-common)
if(TIDEGATE_SANITIZE)
    target_compile_options(tidegate_options INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    if(CMAKE_C_COMPILER_ID STREQUAL GNU) # instrumented code hides the ranges that this warning reasons with
        target_compile_options(tidegate_options INTERFACE -Wno-format-truncation)
    endif()
    target_link_options(tidegate_options INTERFACE -fsanitize=address,undefined)
else()
    target_compile_options(tidegate_options INTERFACE -fstack-clash-protection -fcf-protection=full -fPIE
        $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(tidegate_options INTERFACE -ftrivial-auto-var-init=zero)
    endif()
    target_link_options(tidegate_options INTERFACE -pie -Wl,-z,relro,-z,now -Wl,--as-needed)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
