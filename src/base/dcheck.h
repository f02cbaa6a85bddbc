// LLM_DCHECK: states an invariant. Fatal in debug builds and tests, nothing in release: the library never aborts there.
#pragma once

#include <cassert>

#ifdef NDEBUG
#define LLM_DCHECK(condition) ((void)sizeof(condition))
#else
#define LLM_DCHECK(condition) assert(condition)
#endif
