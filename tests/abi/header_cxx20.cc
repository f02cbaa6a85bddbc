// The header as C++20.
#include "header_check.inc"
