// The moments at which keys and values are copied out of the engine's blocks, or into them.
#include <cstring>
#include <new>

#include "src/base/dcheck.h"
#include "src/base/status_macros.h"
#include "src/engine/step_loop.h"

namespace llm {

void StepLoop::CommitTransfers(const std::vector<ScheduledChunk>& chunks) {
  for (const ScheduledChunk& chunk : chunks) {
    ActiveRequest* request = RequestOf(chunk.sequence);
    if (request->transfer == nullptr || !request->open() ||
        request->num_computed_tokens < request->num_tokens()) {
      continue;
    }
    const absl::Status copied = CopyOut(*request);
    End(request, copied.ok() ? FinishReason::kLength : FinishReason::kError, copied);
  }
}

// The tables hold what an image does: the last window, where there is one, moved on with the last
// token.
absl::Status StepLoop::CopyOut(const ActiveRequest& request) {
  const KvImage& image = *request.transfer->image;
  for (int32_t index = 0; index < image.num_blocks(); ++index) {
    for (size_t g = 0; g < request.block_tables.size(); ++g) {
      const int group = static_cast<int>(g);
      std::byte* out = image.block(index, group);
      if (out == nullptr) continue;
      const BlockId block = request.block_tables[g][static_cast<size_t>(index)];
      LLM_DCHECK(block != kNullBlock);
      LLM_RETURN_IF_ERROR(runner_->ReadBlock(group, block, out));
    }
  }
  return absl::OkStatus();
}

void StepLoop::RestorePrefix(ActiveRequest* request) {
  const KvImage& image = *request->transfer->image;
  const auto fill = [&](int32_t index, int group, BlockId block) {
    return runner_->WriteBlock(group, block, image.block(index, group)).ok();
  };
  const uint64_t id = request->request.id;
  try {
    const uint64_t pin_id = request->pin != nullptr ? id : 0;
    absl::Status status = scheduler_->AdoptPrefix(request->request, request->tokens, fill, pin_id);
    if (status.ok() && pin_id != 0 && !pins_.Grant(id, *request->pin)) {
      scheduler_->UnpinPrefix(id);
      status = absl::ResourceExhaustedError("prefix: too many pins, or its caller has gone");
    }
    End(request, status.ok() ? FinishReason::kLength : FinishReason::kRejected, status);
  } catch (const std::bad_alloc&) {
    EndOutOfMemory(request);
  }
}

}  // namespace llm
