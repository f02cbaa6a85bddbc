// One mutex makes the two bounds one decision: a request is never half in.
#include "src/engine/queue_place.h"

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {

absl::Status QueueUsage::Take(int64_t requests, int64_t tokens) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (requests_ + requests > bounds_.max_requests) {
    return absl::ResourceExhaustedError(
        absl::StrCat("submit: the engine holds ", requests_, " of at most ", bounds_.max_requests,
                     " requests (max_queued_requests); submit again after one finished"));
  }
  if (tokens > 0 && tokens_ + tokens > bounds_.max_tokens) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "submit: ", tokens, " more prompt tokens beside ", tokens_, " exceed ", bounds_.max_tokens,
        " (max_queued_tokens); submit again after a request finished"));
  }
  requests_ += requests;
  tokens_ += tokens;
  return absl::OkStatus();
}

void QueueUsage::GiveBack(int64_t requests, int64_t tokens) {
  std::lock_guard<std::mutex> lock(mutex_);
  requests_ -= requests;
  tokens_ -= tokens;
}

absl::Status QueuePlace::Reserve(std::shared_ptr<QueueUsage> usage, int64_t requests,
                                 int64_t tokens, QueuePlace* place) {
  LLM_RETURN_IF_ERROR(usage->Take(requests, tokens));
  place->Release();
  place->usage_ = std::move(usage);
  place->requests_ = requests;
  place->tokens_ = tokens;
  return absl::OkStatus();
}

absl::Status QueuePlace::Resize(int64_t tokens) {
  if (tokens <= tokens_) {
    usage_->GiveBack(0, tokens_ - tokens);
  } else {
    LLM_RETURN_IF_ERROR(usage_->Take(0, tokens - tokens_));
  }
  tokens_ = tokens;
  return absl::OkStatus();
}

void QueuePlace::Release() {
  if (usage_ == nullptr) return;
  usage_->GiveBack(requests_, tokens_);
  usage_.reset();
  tokens_ = 0;
}

}  // namespace llm
