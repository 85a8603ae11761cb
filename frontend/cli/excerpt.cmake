# cmake -D INPUT=<file> -D OUTPUT=<file> -P excerpt.cmake writes the lines between "[begin excerpt]" and
# "[end excerpt]" as a raw string literal.
file(READ "${INPUT}" text)
string(FIND "${text}" "// [begin excerpt]\n" begin)
string(REGEX MATCH "^(.*\n) *// \\[end excerpt\\]\n" whole "${text}")
string(LENGTH "${CMAKE_MATCH_1}" end)
if(begin EQUAL -1 OR end EQUAL 0)
  message(FATAL_ERROR "${INPUT}: needs lines '// [begin excerpt]' and '// [end excerpt]'")
endif()
math(EXPR begin "${begin} + 19")
math(EXPR length "${end} - ${begin}")
string(SUBSTRING "${text}" ${begin} ${length} text)
file(WRITE "${OUTPUT}" "R\"excerpt(${text})excerpt\"\n")
