// LLM_DCHECK: states an invariant. Fatal in tests (-DINLAY_DCHECK=ON), nothing in the library that
// users build: that one never aborts.
#pragma once

#ifdef INLAY_DCHECK
#include <cassert>
#define LLM_DCHECK(condition) assert(condition)
#else
#define LLM_DCHECK(condition) ((void)sizeof(condition))
#endif
