# cmake -D build= -D consumer= -D work= -D compiler= -D flags= -P run.cmake
file(REMOVE_RECURSE "${work}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(code)
    message(FATAL_ERROR "${ARGN}\nfailed with ${code}:\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The program prints what matches.
function(run_and_check expected)
  run(${ARGN})
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${ARGN}\nprinted\n${output}\nwhich does not match ${expected}")
  endif()
  set(output "${output}" PARENT_SCOPE)
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
run_and_check("^([0-9]+\n)+$" "${work}/build/consumer")
string(REGEX MATCHALL "[0-9]+" ids "${output}")
run_and_check("^([0-9]+\n)+$" "${work}/build/consumer")
string(REGEX MATCHALL "[0-9]+" again "${output}")
list(LENGTH ids count)
if(NOT count EQUAL 8 OR NOT ids STREQUAL again)
  message(FATAL_ERROR "the consumer wrote ${ids}, then ${again}")
endif()
run_and_check("heddle.matmul [^\n]*id = \"logits\"" "${work}/build/command_line" show --emit fused)
run_and_check("usage: .*command_line VERB" "${work}/build/command_line" --help)
