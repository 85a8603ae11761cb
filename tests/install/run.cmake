# cmake -D build= -D consumer= -D work= -D compiler= -D flags= -P run.cmake
file(REMOVE_RECURSE "${work}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(code)
    message(FATAL_ERROR "${ARGN}\nfailed with ${code}:\n${output}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${build}" --prefix "${work}/prefix")

# Every public header stands by itself.
file(GLOB headers RELATIVE "${work}/prefix/include/heddle"
     "${work}/prefix/include/heddle/frontend/*.h")
foreach(header IN LISTS headers)
  string(MAKE_C_IDENTIFIER "${header}" name)
  file(WRITE "${work}/headers/${name}.cpp" "#include \"${header}\"\n#include \"${header}\"\n")
endforeach()

run("${CMAKE_COMMAND}" -G Ninja -S "${consumer}" -B "${work}/build"
    "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DCMAKE_CXX_COMPILER=${compiler}"
    "-DCMAKE_CXX_FLAGS=${flags}" "-DHEADER_TESTS=${work}/headers")
run("${CMAKE_COMMAND}" --build "${work}/build")
run("${work}/build/consumer")
