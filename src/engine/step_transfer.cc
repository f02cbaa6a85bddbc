// Keys and values that are copied out of the engine's blocks, or into them: a slice between two
// steps, so that nobody's tokens wait for the whole.
#include <algorithm>
#include <new>

#include "src/base/dcheck.h"
#include "src/engine/step_loop.h"

namespace llm {

// How many blocks of all groups may still be copied before this step; the first always may.
int32_t StepLoop::BlocksOfSlice() const {
  if (slice_left_ == 0) return 0;
  const uint64_t blocks = slice_left_ / std::max<uint64_t>(1, options_.slice_block_bytes);
  return static_cast<int32_t>(std::clamp<uint64_t>(blocks, 1, INT32_MAX));
}

// Of a prefix that is computed, and whose blocks its sequence holds. The tables hold what an image
// does: the last window, where there is one, moved on with the last token. A preempted one has the
// same bits when it is computed again.
void StepLoop::CopyOut(ActiveRequest* request) {
  PrefixTransfer& transfer = *request->transfer;
  const KvImage& image = *transfer.image;
  for (int32_t left = BlocksOfSlice(); left > 0 && transfer.next_block < image.num_blocks();
       --left, ++transfer.next_block) {
    slice_left_ -= std::min(slice_left_, options_.slice_block_bytes);
    for (size_t g = 0; g < request->block_tables.size(); ++g) {
      const int group = static_cast<int>(g);
      std::byte* out = image.block(transfer.next_block, group);
      if (out == nullptr) continue;
      const BlockId block = request->block_tables[g][static_cast<size_t>(transfer.next_block)];
      LLM_DCHECK(block != kNullBlock);
      const absl::Status copied = runner_->ReadBlock(group, block, out);
      if (!copied.ok()) {
        End(request, FinishReason::kError, copied);
        return;
      }
    }
  }
  if (transfer.next_block == image.num_blocks()) {
    End(request, FinishReason::kLength, absl::OkStatus());
  }
}

void StepLoop::RestorePrefix(ActiveRequest* request) {
  PrefixTransfer& transfer = *request->transfer;
  const KvImage& image = *transfer.image;
  const uint64_t pin_id = request->pin != nullptr ? request->request.id : 0;
  transfer.adoption.request = &request->request;
  transfer.adoption.tokens = request->tokens;
  transfer.adoption.pin_id = pin_id;
  const auto fill = [&](int32_t index, int group, BlockId block) {
    const std::byte* from = image.block(index, group);
    const uint64_t bytes = image.shape().groups[static_cast<size_t>(group)].block_bytes;
    slice_left_ -= std::min(slice_left_, bytes);
    return runner_->WriteBlock(group, block, from).ok();
  };
  try {
    const absl::StatusOr<bool> done = scheduler_->Adopt(&transfer.adoption, fill, BlocksOfSlice());
    if (done.ok() && !*done) return;
    absl::Status status = done.status();
    if (status.ok() && pin_id != 0) status = GrantPin(*request);
    End(request, status.ok() ? FinishReason::kLength : FinishReason::kRejected, status);
  } catch (const std::bad_alloc&) {
    EndOutOfMemory(request);
  }
}

}  // namespace llm
