# SPDX-License-Identifier: Apache-2.0
# proto/ -> C (protobuf-c), in the build folder, included as "tidegate/v1/NAME.pb-c.h".
find_program(PROTOC protoc REQUIRED)
file(GLOB TIDEGATE_PROTOS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/proto/tidegate/v1/*.proto)
set(proto_sources)
foreach(proto IN LISTS TIDEGATE_PROTOS)
    get_filename_component(name ${proto} NAME_WE)
    list(APPEND proto_sources ${CMAKE_BINARY_DIR}/proto/tidegate/v1/${name}.pb-c.c)
    list(APPEND proto_headers ${CMAKE_BINARY_DIR}/proto/tidegate/v1/${name}.pb-c.h)
endforeach()
add_custom_command(OUTPUT ${proto_sources} ${proto_headers}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/proto
    COMMAND ${PROTOC} -I ${CMAKE_SOURCE_DIR}/proto --c_out=${CMAKE_BINARY_DIR}/proto ${TIDEGATE_PROTOS}
    DEPENDS ${TIDEGATE_PROTOS} VERBATIM)
add_library(tidegate_proto STATIC ${proto_sources})
target_include_directories(tidegate_proto PUBLIC ${CMAKE_BINARY_DIR}/proto)
target_compile_options(tidegate_proto PRIVATE -fPIE)
target_link_libraries(tidegate_proto PUBLIC PkgConfig::PROTOBUFC)
