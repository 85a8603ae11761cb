# heddle_tablegen(<kind> <file.td> [mlir-tblgen options...]) makes <folder>/<stem>.h.inc (and
# .cpp.inc) in the build tree, to be included as "ir/ops.h.inc". It does nothing while the .td file
# is not there. The outputs belong to the target heddle_tablegen_all, on which everything that
# uses MLIR depends.
add_custom_target(heddle_tablegen_all)

function(heddle_tablegen kind file)
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  file(GLOB found CONFIGURE_DEPENDS "${source}")
  if(NOT found)
    return()
  endif()
  if(kind STREQUAL "pass")
    set(actions h -gen-pass-decls)
  else()
    set(actions h -gen-${kind}-decls cpp -gen-${kind}-defs)
  endif()

  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}"
             OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "\\.td$" "" stem "${file}")
  set(outputs "")
  while(actions)
    list(POP_FRONT actions extension action)
    set(output "${PROJECT_BINARY_DIR}/generated/${folder}/${stem}.${extension}.inc")
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${HEDDLE_MLIR_TBLGEN}" ${action} ${ARGN} -I "${PROJECT_SOURCE_DIR}"
              -I "${CMAKE_CURRENT_SOURCE_DIR}" -I "${MLIR_INCLUDE_DIRS}" "${source}"
              -o "${output}" -d "${output}.d" --write-if-changed
      DEPENDS "${source}" "${HEDDLE_MLIR_TBLGEN}"
      DEPFILE "${output}.d"
      COMMENT "mlir-tblgen ${folder}/${stem}.${extension}.inc"
      VERBATIM)
    list(APPEND outputs "${output}")
  endwhile()
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/generated/${folder}")
  string(MAKE_C_IDENTIFIER "heddle_tablegen_${folder}_${stem}" target)
  add_custom_target(${target} DEPENDS ${outputs})
  add_dependencies(heddle_tablegen_all ${target})
endfunction()
