// The header as C++17.
#include "header_check.inc"
