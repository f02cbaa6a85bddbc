// Everything is checked before it is used as an index: the plan comes from code with bugs of its
// own.
#include "src/runner/batch_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

size_t Index(int64_t i) { return static_cast<size_t>(i); }

}  // namespace

size_t BatchBuilder::ArrayBytes(const BatchShape& shape) {
  Arena counting(nullptr);
  BatchBuilder(shape, &counting);
  return counting.peak_bytes();
}

BatchBuilder::BatchBuilder(BatchShape shape, Arena* arena)
    : shape_(std::move(shape)),
      token_ids_(arena->Take<int32_t>(shape_.max_tokens)),
      positions_(arena->Take<int32_t>(shape_.max_tokens)),
      query_start_(arena->Take<int32_t>(shape_.max_sequences + 1)),
      context_lens_(arena->Take<int32_t>(shape_.max_sequences)),
      rope_variants_(arena->Take<int32_t>(shape_.max_sequences)),
      logit_rows_(arena->Take<int32_t>(shape_.max_logit_rows)),
      groups_(shape_.groups.size()),
      group_batches_(shape_.groups.size()) {
  saved_contexts_.reserve(Index(shape_.max_sequences));
  const int64_t max_blocks = CeilDiv<int64_t>(shape_.max_context, shape_.block_size);
  for (Group& group : groups_) {
    group.slot_mapping = arena->Take<int32_t>(shape_.max_tokens);
    group.block_table = arena->Take<int32_t>(shape_.max_sequences * max_blocks);
  }
}

absl::StatusOr<Batch> BatchBuilder::Build(const StepPlan& plan, const BatchPadding* padding,
                                          absl::Span<const int32_t> pending) {
  LLM_RETURN_IF_ERROR(Check(plan, pending.size()));
  if (padding != nullptr) LLM_RETURN_IF_ERROR(CheckPadding(plan, *padding));
  int32_t token = 0;
  int32_t num_logits = 0;
  for (const ScheduledChunk& chunk : plan.chunks) num_logits += chunk.num_logits;
  int32_t* logit_row = logit_rows_;
  int32_t* hidden_row = logit_rows_ + num_logits;
  query_start_[0] = 0;
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const ScheduledChunk& chunk = plan.chunks[i];
    for (int32_t j = 0; j < chunk.length; ++j, ++token) {
      const bool known = chunk.begin + j < chunk.sequence->num_tokens();
      token_ids_[token] = known ? chunk.sequence->tokens[Index(chunk.begin + j)] : pending[i];
      positions_[token] = chunk.begin + j;
    }
    for (int32_t j = chunk.num_logits; j > 0; --j) *logit_row++ = token - j;
    for (int32_t j = chunk.num_hidden; j > 0; --j) *hidden_row++ = token - j;
    query_start_[i + 1] = token;
    context_lens_[i] = chunk.begin + chunk.length;
    rope_variants_[i] = chunk.sequence->request.long_rope ? 1 : 0;
  }
  const int64_t max_blocks = padding != nullptr ? padding->max_blocks : LongestTable(plan);
  for (size_t group = 0; group < groups_.size(); ++group) {
    LLM_RETURN_IF_ERROR(FillGroup(group, plan, max_blocks));
  }
  size_t num_rows = plan.chunks.size();
  if (padding != nullptr) {
    AddRows(token, padding->rows, max_blocks);
    token = num_logits = padding->rows;
    num_rows = Index(padding->rows);
    hidden_row = logit_row = logit_rows_ + num_logits;  // there are none
  }
  for (size_t group = 0; group < groups_.size(); ++group) {
    group_batches_[group] = {
        .slot_mapping = {groups_[group].slot_mapping, Index(token)},
        .block_table = {groups_[group].block_table, num_rows * Index(max_blocks)},
        .max_blocks = max_blocks};
  }
  return Batch{.token_ids = {token_ids_, Index(token)},
               .positions = {positions_, Index(token)},
               .query_start = {query_start_, num_rows + 1},
               .context_lens = {context_lens_, num_rows},
               .logit_rows = {logit_rows_, Index(num_logits)},
               .hidden_rows = {logit_rows_ + num_logits, Index(hidden_row - logit_row)},
               .rope_variants = {rope_variants_, num_rows},
               .groups = group_batches_};
}

absl::Status BatchBuilder::Check(const StepPlan& plan, size_t num_pending) const {
  if (plan.chunks.size() > Index(shape_.max_sequences)) {
    return absl::InternalError(absl::StrCat("batch: ", plan.chunks.size(), " sequences, at most ",
                                            shape_.max_sequences, " were planned for"));
  }
  if (num_pending != 0 && num_pending != plan.chunks.size()) {
    return absl::InternalError(absl::StrCat("batch: ", num_pending, " pending tokens for ",
                                            plan.chunks.size(), " sequences"));
  }
  const int64_t most_pending = num_pending == 0 ? 0 : 1;
  int64_t tokens = 0;
  int64_t logit_rows = 0;
  for (const ScheduledChunk& chunk : plan.chunks) {
    const int64_t end = int64_t{chunk.begin} + chunk.length;
    if (chunk.sequence == nullptr || chunk.begin < 0 || chunk.length < 1 ||
        end > chunk.sequence->num_tokens() + most_pending || end > shape_.max_context ||
        chunk.num_logits < 0 || chunk.num_logits > chunk.length || chunk.num_hidden < 0 ||
        chunk.num_hidden > chunk.length || chunk.sequence->block_tables.size() != groups_.size()) {
      return absl::InternalError(absl::StrCat("batch: bad chunk of ", chunk.length, " tokens at ",
                                              chunk.begin, " with ", chunk.num_logits,
                                              " logit rows"));
    }
    tokens += chunk.length;
    logit_rows += int64_t{chunk.num_logits} + chunk.num_hidden;
  }
  if (tokens > shape_.max_tokens || logit_rows > shape_.max_logit_rows) {
    return absl::InternalError(absl::StrCat("batch: ", tokens, " tokens and ", logit_rows,
                                            " logit rows, at most ", shape_.max_tokens, " and ",
                                            shape_.max_logit_rows, " were planned for"));
  }
  return absl::OkStatus();
}

// As wide as this step needs: a device gets a copy.
int64_t BatchBuilder::LongestTable(const StepPlan& plan) const {
  int32_t longest = 1;
  for (const ScheduledChunk& chunk : plan.chunks) {
    longest = std::max(longest, chunk.begin + chunk.length);
  }
  return CeilDiv(longest, shape_.block_size);
}

absl::Status BatchBuilder::FillGroup(size_t group, const StepPlan& plan, int64_t max_blocks) {
  int32_t* row = groups_[group].block_table;
  int32_t* slots = groups_[group].slot_mapping;
  for (const ScheduledChunk& chunk : plan.chunks) {
    LLM_RETURN_IF_ERROR(FillRow(group, chunk, row, slots));
    row += max_blocks;
    slots += chunk.length;
  }
  return absl::OkStatus();
}

absl::Status BatchBuilder::FillRow(size_t group, const ScheduledChunk& chunk, int32_t* row,
                                   int32_t* slots) const {
  const BlockTable& table = chunk.sequence->block_tables[group];
  const int32_t block_size = shape_.block_size;
  const int32_t num_blocks = CeilDiv(chunk.begin + chunk.length, block_size);
  // The chunk's first query looks back the furthest; blocks before that are never read.
  const int32_t window = shape_.groups[group].window;
  const int32_t oldest_key = window == 0 ? 0 : std::max(0, chunk.begin - window + 1);
  for (int32_t i = 0; i < num_blocks; ++i) {
    const BlockId block = Index(i) < table.size() ? table[Index(i)] : kNullBlock;
    const bool read = i >= oldest_key / block_size;
    if (read && (block < 0 || block >= shape_.num_blocks[group])) {
      return absl::InternalError(absl::StrCat("batch: group ", group, ": entry ", i,
                                              " of a block table of ", table.size(), " is ", block,
                                              ", of ", shape_.num_blocks[group], " blocks"));
    }
    row[i] = read ? block : 0;
  }
  for (int32_t j = 0; j < chunk.length; ++j) {
    const int32_t position = chunk.begin + j;
    slots[j] = row[position / block_size] * block_size + position % block_size;
  }
  return absl::OkStatus();
}

}  // namespace llm
