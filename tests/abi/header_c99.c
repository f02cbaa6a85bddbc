/* The header as C99. */
#include "header_check.inc"
