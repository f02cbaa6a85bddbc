# Fails when LIBRARY lost or changed anything of BASELINE, the types and functions of a released version as abidw wrote
# them (tests/abi/README.md). Appended fields and functions pass.
set(flags --no-added-syms --leaf-changes-only ${BASELINE} ${LIBRARY})
execute_process(COMMAND ${ABIDIFF} --suppressions ${SUPPRESSIONS} ${flags} RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(NOT result EQUAL 0)
  # Without the suppressions: Debian's abidiff can crash on them where a field was inserted, and the report says more.
  execute_process(COMMAND ${ABIDIFF} ${flags} OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message(FATAL_ERROR "abidiff (${result}):\n${output}")
endif()
