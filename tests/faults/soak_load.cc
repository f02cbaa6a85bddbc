// Sleeps here pace the load; nothing waits for anything by them.
#include "tests/faults/soak_load.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>

namespace llm {
namespace {

constexpr char kChat[] = R"([{"role": "user", "content": "hello there <|eos|>"}])";
constexpr llm_string kStop = {"stop", 4};

void Pause(int64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

void OnEvent(void* user_data, const llm_event* event) {
  auto* ticket = static_cast<Ticket*>(user_data);
  const bool throws = event->type != LLM_EVENT_FINISHED && ++ticket->num_events == ticket->throw_at;
  ticket->ledger->See(*event);
  if (throws) throw 5;
}

}  // namespace

Ledger::Ledger() {
  for (Ticket& ticket : tickets_) ticket.ledger = this;
}

Ticket* Ledger::Take() {
  for (size_t tries = 0; tries < tickets_.size(); ++tries) {
    Ticket* const ticket = &tickets_[next_.fetch_add(1) % tickets_.size()];
    if (ticket->open.exchange(true)) continue;
    ticket->golden = false;
    ticket->throw_at = ticket->num_events = 0;
    ticket->num_ids = 0;
    return ticket;
  }
  return nullptr;
}

void Ledger::Accept(llm_request_id id) {
  recent_[accepted.fetch_add(1) % recent_.size()].store(id);
}

uint64_t Ledger::num_open() const {
  return static_cast<uint64_t>(std::count_if(
      tickets_.begin(), tickets_.end(), [](const auto& ticket) { return ticket.open.load(); }));
}

void Ledger::Error(const std::string& what) {
  if (errors.fetch_add(1) < 20) std::fprintf(stderr, "soak: %s\n", what.c_str());
}

void Ledger::See(const llm_event& event) {
  auto* ticket = static_cast<Ticket*>(event.user_data);
  if (!ticket->open.load()) Error("an event after FINISHED, or for nobody");
  if (event.type == LLM_EVENT_TOKENS && event.choice == 0) {
    for (size_t i = 0; i < event.num_tokens && ticket->num_ids < ticket->ids.size(); ++i) {
      ticket->ids[ticket->num_ids++] = event.token_ids[i];
    }
  }
  if (event.type == LLM_EVENT_FINISHED) Finish(ticket, event);
}

void Ledger::Finish(Ticket* ticket, const llm_event& event) {
  ++finished;
  cancelled += event.status == LLM_CANCELLED ? 1 : 0;
  missed += event.status == LLM_DEADLINE_EXCEEDED ? 1 : 0;
  failed += event.status == LLM_INTERNAL ? 1 : 0;
  if (event.status == LLM_INTERNAL && ticket->throw_at == 0) {
    Error("failed: " + std::string(event.message.data, event.message.size));
  }
  if (ticket->golden) {
    const bool whole = event.status != LLM_OK || ticket->num_ids == ticket->ids.size();
    if (!whole || !std::equal(ticket->ids.begin(),
                              ticket->ids.begin() + static_cast<ptrdiff_t>(ticket->num_ids),
                              expected.begin())) {
      Error("a wrong answer");
    }
  }
  const llm_request_stats& stats = *event.stats;
  if (stats.total_ns !=
      stats.queue_ns + stats.prefill_ns + stats.stall_ns + stats.decode_ns + stats.deliver_ns) {
    Error("the parts of a request's time are not its total");
  }
  if (!ticket->open.exchange(false)) Error("a second FINISHED");
}

SoakLoad::SoakLoad(llm_model* model, llm_engine* engine, Ledger* ledger)
    : model_(model), engine_(engine), ledger_(ledger) {
  queues_[0] = llm_engine_queue(engine);
  for (size_t i = 1; i < queues_.size(); ++i) llm_queue_create(&queues_[i]);
  for (size_t i = 0; i < queues_.size(); ++i) {
    readers_.emplace_back([this, i] { Read(queues_[i], i); });
  }
  for (uint64_t seed = 1; seed <= 3; ++seed) Start(&SoakLoad::Submit, seed);
  Start(&SoakLoad::CallOthers, 10);
  Start(&SoakLoad::CallAndWait, 11);
  Start(&SoakLoad::Churn, 12);
}

void SoakLoad::Start(void (SoakLoad::*work)(Random*), uint64_t seed) {
  workers_.emplace_back([this, work, seed] {
    Random random(seed);
    while (!stop_.load()) {
      (this->*work)(&random);
      Pause(static_cast<int64_t>(random() % 2000));
    }
  });
}

void SoakLoad::Stop() {
  stop_.store(true);
  for (std::thread& worker : workers_) worker.join();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (ledger_->num_open() > 0 && std::chrono::steady_clock::now() < give_up) Pause(1000);
  if (ledger_->num_open() > 0) ledger_->Error("requests without their FINISHED");
  stop_reading_.store(true);
  for (std::thread& reader : readers_) reader.join();
  for (size_t i = 1; i < queues_.size(); ++i) llm_queue_close(queues_[i]);
}

// A reader that now and then sleeps, and takes few or many at once.
void SoakLoad::Read(llm_queue* queue, uint64_t seed) {
  Random random(seed);
  std::array<llm_event, 64> events;
  while (!stop_reading_.load()) {
    size_t count = 0;
    const size_t capacity = 1 + random() % events.size();
    const llm_status status =
        llm_poll(queue, events.data(), sizeof(llm_event), capacity, 20'000'000, &count);
    if (status != LLM_OK) ledger_->Error(std::string("poll: ") + llm_last_error());
    for (size_t i = 0; i < count; ++i) ledger_->See(events[i]);
    if (random() % 200 == 0) Pause(30000);
  }
}

void SoakLoad::Submit(Random* random) {
  const auto one_in = [random](uint64_t n) { return (*random)() % n == 0; };
  Ticket* const ticket = ledger_->Take();
  if (ticket == nullptr) return;
  llm_request request = TinyRequest();
  std::array<int32_t, 120> prompt;
  const bool golden = ticket->golden = one_in(3);
  if (!golden) {
    // Few different beginnings, so that prefixes are found, and long ones, so that they are lost.
    const auto first = static_cast<int32_t>((*random)() % 8);
    for (size_t i = 0; i < prompt.size(); ++i) {
      prompt[i] = (first * 31 + static_cast<int32_t>(i) * 7) % 500;
    }
    request.prompt_ids = prompt.data();
    request.num_prompt_ids = 1 + (*random)() % prompt.size();
    request.max_new_tokens = static_cast<uint32_t>(1 + (*random)() % 40);
    request.temperature = one_in(2) ? 1.0f : 0.0f;
    if (one_in(4)) request.choices = static_cast<uint32_t>(2 + (*random)() % 3);
    if (one_in(4)) request.completion_deadline_ns = static_cast<int64_t>((*random)() % 50'000'000);
    if (one_in(8))
      request.first_token_deadline_ns = 1 + static_cast<int64_t>((*random)() % 5000000);
    if (one_in(5)) request.stop_strings = &kStop, request.num_stop_strings = 1;
    if (one_in(6)) request.repetition_penalty = 1.2f;
    if (one_in(5)) {
      request.prompt_ids = nullptr;
      request.num_prompt_ids = 0;
      request.chat = {kChat, sizeof(kChat) - 1};
    }
  }
  if (one_in(3)) request.num_logprobs = 2;
  if (one_in(5)) request.num_prompt_logprobs = 1;
  if (one_in(2)) request.session_id = 1 + (*random)() % 50;
  if (one_in(4)) request.cache_salt = {"salt", 4};
  if (one_in(6)) request.prefix_cache = LLM_OFF;
  request.user_data = ticket;
  if (one_in(3)) {
    request.on_event = OnEvent;
    if (!golden && one_in(20)) ticket->throw_at = 1;
  } else {
    request.queue = queues_[(*random)() % queues_.size()];
  }
  llm_request_id id = 0;
  const llm_status status = llm_submit(engine_, &request, &id);
  if (status == LLM_OK) return ledger_->Accept(id);
  ledger_->GiveBack(ticket);
  const bool late = status == LLM_DEADLINE_EXCEEDED;  // and predicted to be
  if (status != LLM_RESOURCE_EXHAUSTED && !late)
    ledger_->Error(std::string("submit: ") + llm_last_error());
}

// Cancels, storms of them, flushes, hints, counters and traces.
void SoakLoad::CallOthers(Random* random) {
  if ((*random)() % 4 == 0) llm_cancel(engine_, ledger_->Recent((*random)()));
  if ((*random)() % 500 == 0) {
    for (uint64_t i = 0; i < 256; ++i) llm_cancel(engine_, ledger_->Recent(i));
  }
  if ((*random)() % 1000 == 0) llm_cache_flush(engine_);
  llm_session_hint(engine_, 1 + (*random)() % 60, static_cast<uint32_t>(1 + (*random)() % 2));
  if ((*random)() % 5 == 0) llm_session_close(engine_, 1 + (*random)() % 60);
  std::array<char, 16384> text;
  size_t size = 0;
  if ((*random)() % 50 == 0) llm_metrics_text(engine_, text.data(), text.size(), &size);
  if ((*random)() % 2000 == 0) {
    if (llm_trace_start(engine_, "/dev/null", 9) != LLM_OK) ledger_->Error("trace");
    Pause(50000);
    llm_trace_stop(engine_);
  }
}

// The calls that wait: a score, an embedding, or a pin that is held for a while.
void SoakLoad::CallAndWait(Random* random) {
  std::array<float, 512> values;
  size_t count = 0;
  llm_status status = LLM_OK;
  switch ((*random)() % 3) {
    case 0: {
      llm_score_request score;
      llm_score_request_init(&score);
      score.ids = kTinyPrompt;
      score.num_ids = std::size(kTinyPrompt);
      status = llm_score(engine_, &score, values.data(), values.size(), &count);
      break;
    }
    case 1: {
      llm_embed_request embed;
      llm_embed_request_init(&embed);
      embed.ids = kTinyPrompt;
      embed.num_ids = std::size(kTinyPrompt);
      status = llm_embed(engine_, &embed, values.data(), values.size(), &count);
      break;
    }
    default: {
      std::array<int32_t, 64> ids;
      const auto first = static_cast<int32_t>((*random)() % 100);
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = first + static_cast<int32_t>(i);
      llm_prefix prefix;
      llm_prefix_init(&prefix);
      prefix.prompt_ids = ids.data();
      prefix.num_prompt_ids = 16 + (*random)() % 48;
      llm_pin_id pin = 0;
      status = llm_prefix_pin(engine_, &prefix, &pin);
      if (status == LLM_OK) {
        Pause(5000);
        if (llm_prefix_unpin(engine_, pin) != LLM_OK) ledger_->Error(llm_last_error());
      }
    }
  }
  if (status == LLM_OK) ++ledger_->calls;
  if (status != LLM_OK && status != LLM_RESOURCE_EXHAUSTED) ledger_->Error(llm_last_error());
}

// Opens and closes all that can be, with a request in flight.
void SoakLoad::Churn(Random* random) {
  Pause(100000);
  const uint32_t drive = (*random)() % 2 == 0 ? LLM_DRIVE_MANUAL : LLM_DRIVE_THREADS;
  llm_model* model = nullptr;
  llm_engine* engine = nullptr;
  const bool own = (*random)() % 4 == 0;
  if (own && OpenTinyModel(&model) != LLM_OK) return ledger_->Error(llm_last_error());
  if (OpenTinyEngine(own ? model : model_, drive, &engine) != LLM_OK) {
    ledger_->Error(llm_last_error());
  } else {
    Answer answer;
    if (AskOnce(engine, drive, &answer) != LLM_OK) ledger_->Error("a fresh engine does not answer");
    const llm_request request = TinyRequest();
    llm_request_id id = 0;
    llm_submit(engine, &request, &id);
    if (llm_engine_close(engine) != LLM_OK) ledger_->Error(llm_last_error());
  }
  llm_model_release(model);
}

}  // namespace llm
