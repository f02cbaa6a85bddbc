// The host's tables.
#include "kernels/quant/iq_grids.h"

namespace llm {

#define LLM_GRID const
#include "kernels/quant/iq_grid_tables.def"
#undef LLM_GRID

}  // namespace llm
