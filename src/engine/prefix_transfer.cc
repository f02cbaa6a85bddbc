// Prefixes that leave an engine or come into it: each is a request, so that it waits its turn, is
// cancelled by a shutdown, and meets the engine's blocks on the engine's thread alone.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/engine/engine.h"

namespace llm {

absl::Status Engine::CheckTransfer(absl::string_view call) const {
  LLM_RETURN_IF_ERROR(CheckMayWait(call));
  if (!parts_.kv.shape.groups.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(call, ": this device does not show its keys and values"));
}

absl::StatusOr<std::shared_ptr<const KvImage>> Engine::ReadPrefix(RequestSpec prefix) {
  LLM_RETURN_IF_ERROR(CheckTransfer("prefix"));
  prefix.transfer = std::make_shared<PrefixTransfer>();
  uint64_t id = 0;
  LLM_RETURN_IF_ERROR(SubmitAndWait(&prefix, &id));
  return std::shared_ptr<const KvImage>(prefix.transfer->image);
}

absl::StatusOr<uint64_t> Engine::RestorePrefix(std::shared_ptr<KvImage> image,
                                               const std::string& cache_salt, bool pin) {
  LLM_RETURN_IF_ERROR(CheckTransfer("prefix"));
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kIds;
  spec.prompt_ids = image->tokens();
  spec.cache_salt = cache_salt;
  spec.transfer = std::make_shared<PrefixTransfer>();
  spec.transfer->restore = true;
  spec.transfer->image = std::move(image);
  if (pin) spec.pin = std::make_shared<PinTicket>();
  uint64_t id = 0;
  LLM_RETURN_IF_ERROR(SubmitAndWait(&spec, &id));
  return pin ? id : 0;
}

KvIdentity Engine::kv_identity() const {
  KvIdentity identity = parts_.kv;
  if (parts_.model_id) identity.model_id = parts_.model_id();
  return identity;
}

absl::Status Engine::CutToBlocks(std::vector<int32_t>* prompt) const {
  const auto block_size = static_cast<size_t>(parts_.kv.shape.block_size);
  if (prompt->size() < block_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefix: ", prompt->size(), " tokens are less than a block of ", block_size));
  }
  prompt->resize(prompt->size() / block_size * block_size);
  return absl::OkStatus();
}

// On the caller's thread: what is to be saved gets its memory here, not inside a step.
absl::Status Engine::PrepareTransfer(const RequestSpec& spec, Request* request) const {
  PrefixTransfer& transfer = *spec.transfer;
  if (transfer.restore) {
    const auto pinnable =
        parts_.scheduler->PinnableTokens(static_cast<int64_t>(request->prompt.size()));
    if (absl::IsFailedPrecondition(pinnable.status())) return pinnable.status();
    if (request->cache_variant() == transfer.image->variant()) return absl::OkStatus();
    return absl::FailedPreconditionError("prefix: made for other positions (long rope)");
  }
  LLM_ASSIGN_OR_RETURN(transfer.image, KvImage::Create(allocator(), parts_.kv.shape,
                                                       request->prompt, request->cache_variant()));
  return absl::OkStatus();
}

}  // namespace llm
