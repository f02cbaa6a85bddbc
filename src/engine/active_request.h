// A request inside the engine, or one of its choices: its sequence and what turns tokens into
// events. Owned by the engine thread once drained.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "src/engine/choices.h"
#include "src/engine/delivery.h"
#include "src/engine/embed.h"
#include "src/engine/kv_image.h"
#include "src/engine/prefix_pins.h"
#include "src/engine/queue_place.h"
#include "src/engine/request_clock.h"
#include "src/engine/score.h"
#include "src/engine/spill_return.h"
#include "src/sequence/sequence.h"
#include "src/sequence/stop_criteria.h"
#include "src/tokenizer/detokenizer.h"

namespace llm {

// Derives from Sequence so that a chunk's sequence leads back here without a map. Never moved:
// `stop` points into it.
struct ActiveRequest : Sequence {
  ActiveRequest(Request submitted, const Tokenizer* tokenizer, bool render_special)
      : Sequence(MakeSequence(std::move(submitted))),
        clock(request.arrival_ns),
        stop(&request.stop),
        detokenizer(tokenizer, render_special) {}
  ActiveRequest(const ActiveRequest&) = delete;
  ActiveRequest& operator=(const ActiveRequest&) = delete;

  bool open() const { return reason == FinishReason::kNone; }
  // Draws tokens, as neither a score nor an embedding nor a pin nor a transfer does.
  bool generates() const {
    return score == nullptr && embed == nullptr && pin == nullptr && transfer == nullptr;
  }
  // Its prefix is computed and held, to be copied out.
  bool copies_out() const {
    return transfer != nullptr && !transfer->restore && scheduled &&
           num_computed_tokens == num_tokens();
  }
  // No step is planned for it now: its blocks are copied between steps.
  bool moves() const {
    const bool restores = transfer != nullptr && transfer->restore;
    return open() && (awaits_prefix || restores || copies_out());
  }
  // Log-probabilities of the prompt are wanted, and not all staged yet.
  bool tells_prompt() const { return generates() && score_begin >= 0; }

  RequestClock clock;
  StopCriteria stop;
  Detokenizer detokenizer;
  std::shared_ptr<Outbox> outbox;
  std::shared_ptr<EventSink> sink;
  QueuePlace place;                    // without choices
  std::shared_ptr<ChoiceGroup> group;  // null: a request without choices

  std::shared_ptr<ScoreSink> score;  // at most one of the three is set
  std::shared_ptr<EmbedSink> embed;
  std::shared_ptr<PinTicket> pin;
  std::shared_ptr<PrefixTransfer> transfer;  // alone, or with a pin to be restored

  std::unique_ptr<SpillReturn> spill_return;  // while the second tier brings its prefix

  Delta staged;                  // of this step, not yet delivered
  Delta staged_prompt;           // likewise: PROMPT, which goes before
  int32_t spill_looked_up = -1;  // after so many preemptions
  bool scheduled = false;        // the scheduler knows it
  bool paused = false;           // its reader is too slow: out of the scheduler until it has read

  // Why it ended; delivered at the end of the step.
  FinishReason reason = FinishReason::kNone;
  absl::Status end_status;
  int32_t stop_index = -1;
  int64_t first_token_cost_ns = request.first_token_cost_ns;  // as last predicted
  int64_t longest_gap_ns = 0;                                 // between two of its tokens
  int64_t end_ns = 0;    // when it ended; once settled, when its FINISHED left
  bool settled = false;  // counted, its place given back
  bool finish_sent = false;

 private:
  static Sequence MakeSequence(Request submitted) {
    Sequence sequence;
    sequence.tokens.reserve(submitted.prompt.size() + 1);
    sequence.tokens = submitted.prompt;
    sequence.request = std::move(submitted);
    return sequence;
  }
};

inline ActiveRequest* RequestOf(Sequence* sequence) {
  return static_cast<ActiveRequest*>(sequence);
}

}  // namespace llm
