// Queues, and the order of one plan: decodes, prefill chunks, admissions.
#include "src/scheduler/scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"
#include "src/base/math.h"
#include "src/base/reserve.h"
#include "src/scheduler/scheduler_impl.h"

namespace llm {
namespace {

constexpr int32_t kMaxBlockSize =
    4096;  // tokens; bounds the token copies that the prefix cache keeps
constexpr int kMaxBlocks =
    1 << 26;  // a billion tokens of 16 a block; keeps products within int32 and int64
constexpr int32_t kMaxContext = 1 << 28;
constexpr size_t kMaxGroups = 16;

BlockManagerOptions BlockOptions(const SchedulerOptions& options) {
  BlockManagerOptions blocks;
  blocks.block_size = options.block_size;
  blocks.groups = options.groups;
  blocks.num_blocks = options.num_blocks;
  blocks.max_context_tokens = options.max_context_tokens;
  blocks.prefix_cache = options.prefix_cache;
  blocks.hash_key[0] = options.hash_key[0];
  blocks.hash_key[1] = options.hash_key[1];
  return blocks;
}

// A moment, in microseconds, so that no priority and no clock overflows it: the earlier goes first.
// It never changes, so that queues stay in order while their members age.
// `alone_ns`: what its prompt is predicted to take alone.
int64_t OrderUs(SchedulingPolicy policy, const Request& request, int64_t alone_ns) {
  const int64_t arrival_us = request.arrival_ns / 1000;
  switch (policy) {
    case SchedulingPolicy::kFcfs:
      return 0;
    case SchedulingPolicy::kPriority:
      return arrival_us + int64_t{request.priority} * (kPriorityStepNs / 1000);
    case SchedulingPolicy::kDeadline:
      return request.first_token_deadline_ns != 0
                 ? (request.first_token_deadline_ns - alone_ns) / 1000
                 : arrival_us + kNoDeadlineNs / 1000;
  }
  return 0;
}

absl::Status CheckOptions(const SchedulerOptions& options) {
  if (options.max_sequences < 1 || options.max_context_tokens < 1 ||
      options.max_context_tokens > kMaxContext) {
    return absl::InvalidArgumentError(
        absl::StrCat("scheduler: max_sequences ", options.max_sequences,
                     " must be at least 1, max_context_tokens ", options.max_context_tokens,
                     " in [1, ", kMaxContext, "]"));
  }
  if (!IsPowerOfTwo(options.block_size) || options.block_size > kMaxBlockSize) {
    return absl::InvalidArgumentError(absl::StrCat("scheduler: block_size ", options.block_size,
                                                   " is not a power of two up to ", kMaxBlockSize));
  }
  if (options.groups.empty() || options.groups.size() > kMaxGroups ||
      options.groups.size() != options.num_blocks.size()) {
    return absl::InvalidArgumentError(absl::StrCat("scheduler: ", options.groups.size(),
                                                   " kv groups with ", options.num_blocks.size(),
                                                   " block counts, limit ", kMaxGroups));
  }
  for (size_t g = 0; g < options.groups.size(); ++g) {
    if (options.num_blocks[g] >= 1 && options.num_blocks[g] <= kMaxBlocks &&
        options.groups[g].window >= 0 && options.groups[g].window <= kMaxContext) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("scheduler: kv group ", g, ": ",
                                                   options.num_blocks[g], " blocks, window ",
                                                   options.groups[g].window));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const SchedulerOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  return std::unique_ptr<Scheduler>(new SchedulerImpl(options));
}

SchedulerImpl::SchedulerImpl(const SchedulerOptions& options)
    : options_(options), windows_(options.groups), blocks_(BlockOptions(options)) {
  pins_.reserve(kMaxPins);
}

bool SchedulerImpl::MoreImportant(const Sequence& a, const Sequence& b) const {
  const int64_t a_us = OrderUs(options_.policy, a.request, a.request.first_token_cost_ns);
  const int64_t b_us = OrderUs(options_.policy, b.request, b.request.first_token_cost_ns);
  if (a_us != b_us) return a_us < b_us;
  return a.arrival_index < b.arrival_index;
}

bool SchedulerImpl::GoesBefore(const Sequence& sequence, const Request& request,
                               int64_t alone_ns) const {
  return OrderUs(options_.policy, sequence.request, sequence.request.first_token_cost_ns) <=
         OrderUs(options_.policy, request, alone_ns);
}

void SchedulerImpl::Insert(Queue* queue, Sequence* sequence) {
  const auto place = std::upper_bound(
      queue->begin(), queue->end(), sequence,
      [this](const Sequence* a, const Sequence* b) { return MoreImportant(*a, *b); });
  queue->insert(place, sequence);
}

void SchedulerImpl::Erase(Queue* queue, Sequence* sequence) {
  queue->erase(std::remove(queue->begin(), queue->end(), sequence), queue->end());
}

void SchedulerImpl::Add(Sequence* sequence) {
  LLM_DCHECK(!sequence->tokens.empty());
  // Room first: whatever fails here changes nothing, and moving between the queues never fails.
  const size_t num_sequences = running_.size() + waiting_.size() + 1;
  ReserveTotal(&running_, num_sequences);
  ReserveTotal(&waiting_, num_sequences);
  lengths_.Add(sequence->request.request_class);
  sequence->block_tables.assign(options_.groups.size(), BlockTable());
  if (sequence->arrival_index == 0) sequence->arrival_index = next_arrival_index_++;
  sequence->status = SequenceStatus::kWaiting;
  sequence->num_computed_tokens = 0;
  sequence->planned_tokens = sequence->num_tokens();
  sequence->prefix_node = kNoPrefixNode;
  Insert(&waiting_, sequence);
}

void SchedulerImpl::Remove(Sequence* sequence) {
  LLM_DCHECK(!plan_outstanding_);
  if (sequence->status == SequenceStatus::kFinished) return;
  ReleaseBlocks(sequence);
  Erase(sequence->status == SequenceStatus::kRunning ? &running_ : &waiting_, sequence);
  sequence->status = SequenceStatus::kFinished;
}

void SchedulerImpl::NoteEnd(const Sequence& sequence) {
  lengths_.Note(sequence.request.request_class, sequence.num_generated_tokens());
}

void SchedulerImpl::ReleaseBlocks(Sequence* sequence) {
  sequence->stats.num_retained_tokens =
      blocks_.ReleaseAll(sequence->prefix_node, sequence->tokens, sequence->num_computed_tokens,
                         sequence->request.session_id, &sequence->block_tables);
  blocks_.Leave(sequence->prefix_node);
  sequence->prefix_node = kNoPrefixNode;
}

StepPlan SchedulerImpl::Plan(const StepLimit& limit, int64_t now_ns) {
  LLM_DCHECK(!plan_outstanding_);
  Step step;
  step.limit = limit;
  step.limit.max_tokens = std::max(limit.max_tokens, 1);
  step.now_ns = now_ns;
  try {
    FillPlan(&step);
  } catch (...) {
    Rollback(step.plan);
    throw;
  }
  step.plan.work = windows_.Step(step.plan);
  plan_outstanding_ = !step.plan.chunks.empty();
  planned_at_ns_ = now_ns;
  looked_ahead_ = step.plan.looks_ahead;
  return std::move(step.plan);
}

void SchedulerImpl::FillPlan(Step* step) {
  const size_t most =
      std::min(running_.size() + waiting_.size(), static_cast<size_t>(options_.max_sequences));
  step->plan.chunks.reserve(most);
  step->plan.undo.reserve(most);
  step->plan.preempted.reserve(running_.size());  // a victim without blocks must be told
  ScheduleDecodes(step);
  const bool decodes_only = step->limit.decodes_only;
  if (!decodes_only) SchedulePrefills(step);
  if (!decodes_only || step->preempted) blocked_by_room_ = step->preempted;
  // What a victim has just given back belongs to those that needed it; the victim itself would come
  // straight back.
  if (!step->preempted && !decodes_only) AdmitWaiting(step);
  if (step->limit.look_ahead && MayLookAhead(*step)) LookAhead(step);
  pinned_copies_ = step->plan.block_copies;
}

SchedulerCounters SchedulerImpl::counters() const {
  SchedulerCounters counters = counters_;
  counters.evicted_blocks_total = blocks_.num_evicted();
  counters.running_current = static_cast<int32_t>(running_.size());
  counters.waiting_current = static_cast<int32_t>(waiting_.size());
  for (int g = 0; g < blocks_.num_groups(); ++g) {
    counters.free_blocks_current += blocks_.pool(g).num_free();
    counters.held_blocks_current += blocks_.pool(g).num_held();
    counters.cached_blocks_current += blocks_.pool(g).num_cached();
    counters.pinned_blocks_current += blocks_.pool(g).num_pinned();
  }
  return counters;
}

std::vector<const Sequence*> SchedulerImpl::Running() const {
  return std::vector<const Sequence*>(running_.begin(), running_.end());
}

std::vector<const Sequence*> SchedulerImpl::Waiting() const {
  return std::vector<const Sequence*>(waiting_.begin(), waiting_.end());
}

}  // namespace llm
