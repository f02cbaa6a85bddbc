// Log-probabilities and stats are lent as they lie: abi_layout.cc asserts that both sides lay them
// out alike.
#include "capi/translate_event.h"

#include <cstring>

#include "capi/strings.h"

namespace llm {
namespace {

void CallHost(void* host, const Event& event) {
  const llm_event c = TranslateEvent(event);
  reinterpret_cast<llm_event_callback>(host)(event.user_data, &c);
}

}  // namespace

llm_event TranslateEvent(const Event& event) {
  llm_event c;
  std::memset(&c, 0, sizeof(c));
  c.type = static_cast<uint32_t>(event.type);
  c.choice = event.choice;
  c.id = event.id;
  c.user_data = event.user_data;
  c.text = ToC(event.text);
  c.token_ids = event.token_ids.data();
  c.num_tokens = event.token_ids.size();
  c.logprobs = reinterpret_cast<const llm_logprob*>(event.logprobs.data());
  c.logprob_size = sizeof(llm_logprob);
  c.logprobs_per_token = static_cast<uint32_t>(event.logprobs_per_token);
  c.finish_reason = static_cast<int32_t>(event.reason);
  c.status = static_cast<llm_status>(event.status);
  c.message = ToC(event.message);
  c.stats = reinterpret_cast<const llm_request_stats*>(event.stats);
  c.stop_index = event.stop_index;
  c.struct_size = sizeof(c);
  return c;
}

EventHandler MakeHandler(llm_event_callback on_event) {
  EventHandler handler;
  handler.call = &CallHost;
  handler.host = reinterpret_cast<void*>(on_event);
  return handler;
}

}  // namespace llm
