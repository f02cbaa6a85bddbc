#!/bin/sh
# check_isa_symbols.sh NM OBJECT...: fails when an object defines a weak or unique symbol, i.e. one that the linker may keep
# in place of another object's copy although it was compiled for another instruction set.
nm="$1"
shift
shared=$("$nm" -C "$@" | grep -E ' [VWu] ')
if [ -n "$shared" ]; then
  echo "symbols that objects for one instruction set share with others:"
  echo "$shared"
  exit 1
fi
