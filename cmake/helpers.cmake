# SPDX-License-Identifier: Apache-2.0

# tidegate_daemon(NAME reserve LINK tidegate_kv): every .c of the folder -> bin/tidegate-NAME; its core as a library for tests.
function(tidegate_daemon)
    cmake_parse_arguments(arg "" "NAME" "SOURCES;LINK" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    list(FILTER sources EXCLUDE REGEX "/main\\.c$")
    add_library(tidegate_${arg_NAME} STATIC ${sources} ${arg_SOURCES})
    target_link_libraries(tidegate_${arg_NAME} PUBLIC tidegate_io ${arg_LINK} tidegate_options)
    add_executable(tidegate-${arg_NAME} ${CMAKE_CURRENT_SOURCE_DIR}/main.c)
    target_link_libraries(tidegate-${arg_NAME} PRIVATE tidegate_${arg_NAME})
endfunction()

# tidegate_unit_test(NAME SOURCE LINK...): a cmocka program, run by ctest; CMOCKA_TEST_FILTER=name runs one test of it.
function(tidegate_unit_test name source)
    add_executable(${name} ${source} ${CMAKE_SOURCE_DIR}/tests/unit/named_test.c)
    target_link_libraries(${name} PRIVATE ${ARGN} tidegate_pure tidegate_options PkgConfig::CMOCKA m)
    add_test(NAME ${name} COMMAND ${name})
endfunction()

# tidegate_embed(TARGET SYMBOL FILE): the bytes of FILE as `const char SYMBOL[]` (NUL-terminated), header SYMBOL.h beside it.
function(tidegate_embed target symbol file)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/embed/${symbol}.c)
    add_custom_command(OUTPUT ${out}
        COMMAND python3 ${CMAKE_SOURCE_DIR}/cmake/embed.py ${symbol} ${file} ${out}
        DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/embed.py VERBATIM)
    target_sources(${target} PRIVATE ${out})
endfunction()
