// llm_score.
#include <algorithm>

#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/text_or_ids.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

int32_t CallHost(void* host, void* user_data, const ScoreRow& row) {
  llm_score_row c;
  c.struct_size = sizeof(c);
  c.reserved = 0;
  c.position = static_cast<uint64_t>(row.position);
  c.id = row.id;
  c.logprob = row.logprob;
  c.logits = row.logits.data();
  c.num_logits = row.logits.size();
  return reinterpret_cast<llm_score_callback>(host)(user_data, &c);
}

absl::Status TranslateScore(const llm_score_request* given, ScoreSpec* spec) {
  llm_score_request c;
  LLM_RETURN_IF_ERROR(ReadStruct("llm_score_request", given, &c));
  if (c.reserved != 0) return absl::UnimplementedError("reserved: reserved for a later version");
  LLM_RETURN_IF_ERROR(ReadTextOrIds("score", c, spec));
  if (c.first != 0) spec->first = static_cast<int64_t>(std::min<uint64_t>(c.first, INT64_MAX));
  if (c.on_row != nullptr) {
    spec->handler = {&CallHost, reinterpret_cast<void*>(c.on_row), c.user_data};
  }
  return absl::OkStatus();
}

absl::Status Score(llm_engine* engine, const llm_score_request* request, float* logprobs,
                   size_t capacity, size_t* count) {
  LLM_RETURN_IF_NULL(engine);
  LLM_RETURN_IF_NULL(request);
  LLM_RETURN_IF_NULL(count);
  LLM_RETURN_IF_ERROR(CheckArray("logprobs", logprobs, capacity));
  ScoreSpec spec;
  LLM_RETURN_IF_ERROR(CountIfRejected(engine, TranslateScore(request, &spec)));
  LLM_ASSIGN_OR_RETURN(const std::vector<float> scored, engine->engine->Score(spec));
  CopyOut(scored.data(), scored.size(), logprobs, capacity, count);
  return absl::OkStatus();
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_score(llm_engine* engine, const llm_score_request* request,
                                float* logprobs, size_t capacity, size_t* count) {
  return llm::Boundary([&] { return llm::Score(engine, request, logprobs, capacity, count); });
}
