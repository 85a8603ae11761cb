# cmake -D OUTPUT=<file> -P operation_table.cmake <file.td>=<level>... writes {"name", "level",
# "summary"}, for every operation that the files define, in their order.
math(EXPR last "${CMAKE_ARGC} - 1")
set(table "")
foreach(index RANGE 5 ${last})
  string(REGEX MATCH "^(.*)=(.*)$" matched "${CMAKE_ARGV${index}}")
  set(level "${CMAKE_MATCH_2}")
  file(READ "${CMAKE_MATCH_1}" text)
  string(REPLACE ";" "," text "${text}")
  string(REGEX MATCHALL "def Heddle_[A-Za-z]+Op : [^\"]*\"[^{]*{[ \n]*let summary = \"[^\"]*\"" defs
         "${text}")
  foreach(def IN LISTS defs)
    string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*\"([^\"]*)\"$"
           "{\"heddle.\\1\", \"${level}\", \"\\2\"},\n" line "${def}")
    string(APPEND table "${line}")
  endforeach()
endforeach()
file(WRITE "${OUTPUT}" "${table}")
