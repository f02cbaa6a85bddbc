// llm.hpp: llm.h for C++17. Owners that release themselves, and statuses that keep their message.
// Header-only; throws nothing of its own and needs neither exceptions nor RTTI (strings and vectors
// may throw for want of memory).
//
//   inlay::Model model;
//   inlay::Engine engine;
//   inlay::Status status = inlay::Model::Open("model.gguf", nullptr, &model);
//   if (status.ok()) status = inlay::Engine::Open(model, nullptr, &engine);
//
// What is missing here is called on get(), the handle of the C ABI, which says all that holds.
#ifndef INLAY_LLM_HPP_
#define INLAY_LLM_HPP_

#include <inlay/llm.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace inlay {

// Why a call failed. Made on the thread that called, right after it.
class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(llm_status code) : code_(code) {
    if (code != LLM_OK) message_ = llm_last_error();
  }
  bool ok() const { return code_ == LLM_OK; }
  llm_status code() const { return code_; }
  const char* name() const { return llm_status_name(code_); }
  const std::string& message() const { return message_; }

 private:
  llm_status code_ = LLM_OK;
  std::string message_;
};

// Borrows: `text` outlives the call that it is passed to.
inline llm_string String(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view View(const llm_string& text) {
  return text.size == 0 ? std::string_view() : std::string_view(text.data, text.size);
}

namespace internal {

// Calls read(buffer, capacity, &size) with growing buffers until all fits. `Buffer` is a string or
// a vector.
template <typename Buffer, typename Read>
Status ReadAll(Buffer* out, Read&& read) {
  size_t size = 0;
  while (true) {
    const llm_status code = read(out->data(), out->size(), &size);
    if (code != LLM_OK) return Status(code);
    const bool fits = size <= out->size();
    out->resize(size);
    if (fits) return Status();
  }
}

}  // namespace internal

class Model {
 public:
  Model() = default;
  Model(Model&& other) noexcept : model_(std::exchange(other.model_, nullptr)) {}
  Model& operator=(Model&& other) noexcept {
    std::swap(model_, other.model_);
    return *this;
  }
  ~Model() { llm_model_release(model_); }

  static Status Open(std::string_view path, const llm_model_options* options, Model* model) {
    llm_model* opened = nullptr;
    const llm_status code = llm_model_open(path.data(), path.size(), options, &opened);
    if (code != LLM_OK) return Status(code);
    llm_model_release(std::exchange(model->model_, opened));
    return Status();
  }

  Status GetInfo(llm_model_info* info) const {
    llm_model_info_init(info);
    return Status(llm_model_get_info(model_, info));
  }
  // What the model's files propose; requests take none of it by themselves.
  Status GetSampling(llm_model_sampling* sampling) const {
    llm_model_sampling_init(sampling);
    return Status(llm_model_get_sampling(model_, sampling));
  }
  Status GetTensor(uint64_t index, llm_tensor_info* info) const {
    llm_tensor_info_init(info);
    return Status(llm_model_tensor(model_, index, info));
  }
  // Both live as long as the model.
  Status GetMetadata(uint64_t index, std::string_view* key, std::string_view* value) const {
    llm_string key_text, value_text;
    const llm_status code = llm_model_metadata(model_, index, &key_text, &value_text);
    if (code != LLM_OK) return Status(code);
    *key = View(key_text);
    *value = View(value_text);
    return Status();
  }
  Status Tokenize(std::string_view text, uint32_t flags, std::vector<int32_t>* ids) const {
    return internal::ReadAll(ids, [&](int32_t* data, size_t capacity, size_t* count) {
      return llm_tokenize(model_, text.data(), text.size(), flags, data, capacity, count);
    });
  }
  Status Detokenize(const std::vector<int32_t>& ids, uint32_t flags, std::string* text) const {
    return internal::ReadAll(text, [&](char* data, size_t capacity, size_t* size) {
      return llm_detokenize(model_, ids.data(), ids.size(), flags, data, capacity, size);
    });
  }
  Status RenderChat(std::string_view chat, std::string* text) const {
    return internal::ReadAll(text, [&](char* data, size_t capacity, size_t* size) {
      return llm_chat_render(model_, chat.data(), chat.size(), data, capacity, size);
    });
  }

  llm_model* get() const { return model_; }
  explicit operator bool() const { return model_ != nullptr; }

 private:
  llm_model* model_ = nullptr;
};

// Writes the model of `source` as a pack, as llm_model_save does.
inline Status SaveModel(const llm_model_source& source, const llm_model_options* options,
                        std::string_view path) {
  return Status(llm_model_save(&source, options, path.data(), path.size()));
}

// The same as a GGUF file, as llm_model_save_gguf does.
inline Status SaveGguf(const llm_model_source& source, const llm_model_options* options,
                       std::string_view path) {
  return Status(llm_model_save_gguf(&source, options, path.data(), path.size()));
}

// A queue of one's own; engines lend theirs as llm_queue*. REQUIRES at destruction: no thread polls
// it.
class Queue {
 public:
  Queue() = default;
  Queue(Queue&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
  Queue& operator=(Queue&& other) noexcept {
    std::swap(queue_, other.queue_);
    return *this;
  }
  ~Queue() { llm_queue_close(queue_); }

  static Status Create(Queue* queue) {
    llm_queue* created = nullptr;
    const llm_status code = llm_queue_create(&created);
    if (code != LLM_OK) return Status(code);
    llm_queue_close(std::exchange(queue->queue_, created));
    return Status();
  }

  llm_queue* get() const { return queue_; }
  explicit operator bool() const { return queue_ != nullptr; }

 private:
  llm_queue* queue_ = nullptr;
};

// Waits up to timeout_ns for an event and calls on_event(const llm_event&) for each of up to 16;
// *count may be null.
template <typename OnEvent>
Status Poll(llm_queue* queue, int64_t timeout_ns, OnEvent&& on_event, size_t* count = nullptr) {
  llm_event events[16];
  size_t taken = 0;
  const llm_status code = llm_poll(queue, events, sizeof(events[0]),
                                   sizeof(events) / sizeof(events[0]), timeout_ns, &taken);
  if (code != LLM_OK) return Status(code);
  for (size_t i = 0; i < taken; ++i) on_event(static_cast<const llm_event&>(events[i]));
  if (count != nullptr) *count = taken;
  return Status();
}

// REQUIRES at destruction: no other thread uses it, and this is none of its callbacks.
class Engine {
 public:
  Engine() = default;
  Engine(Engine&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)) {}
  Engine& operator=(Engine&& other) noexcept {
    std::swap(engine_, other.engine_);
    return *this;
  }
  ~Engine() { llm_engine_close(engine_); }

  static Status Open(const Model& model, const llm_engine_options* options, Engine* engine) {
    llm_engine* opened = nullptr;
    const llm_status code = llm_engine_open(model.get(), options, &opened);
    if (code != LLM_OK) return Status(code);
    llm_engine_close(std::exchange(engine->engine_, opened));
    return Status();
  }

  Status Submit(const llm_request& request, llm_request_id* id) {
    return Status(llm_submit(engine_, &request, id));
  }
  Status Cancel(llm_request_id id) { return Status(llm_cancel(engine_, id)); }
  Status PinPrefix(const llm_prefix& prefix, llm_pin_id* id) {
    return Status(llm_prefix_pin(engine_, &prefix, id));
  }
  Status UnpinPrefix(llm_pin_id id) { return Status(llm_prefix_unpin(engine_, id)); }
  Status SavePrefix(const llm_prefix& prefix, std::string_view path) {
    return Status(llm_prefix_save(engine_, &prefix, path.data(), path.size()));
  }
  // `pin` may be null: its blocks are cached ones then.
  Status LoadPrefix(std::string_view path, std::string_view cache_salt, llm_pin_id* pin) {
    const llm_string salt = String(cache_salt);
    return Status(llm_prefix_load(engine_, path.data(), path.size(), &salt, nullptr, pin));
  }
  Status HintSession(uint64_t session_id, uint32_t hint) {
    return Status(llm_session_hint(engine_, session_id, hint));
  }
  Status CloseSession(uint64_t session_id) {
    return Status(llm_session_close(engine_, session_id));
  }
  // One entry for each token from request.first on.
  Status Score(const llm_score_request& request, std::vector<float>* logprobs) {
    // A token has at least a byte, but for those that the model asks for beside the text.
    std::vector<float> scored(request.text.size + request.num_ids + 2);
    const Status status =
        internal::ReadAll(&scored, [&](float* data, size_t capacity, size_t* count) {
          return llm_score(engine_, &request, data, capacity, count);
        });
    if (status.ok()) logprobs->swap(scored);
    return status;
  }
  Status Embed(const llm_embed_request& request, std::vector<float>* values) {
    std::vector<float> embedded(16384);  // beyond the hidden sizes in use: one call is enough
    const Status status =
        internal::ReadAll(&embedded, [&](float* data, size_t capacity, size_t* count) {
          return llm_embed(engine_, &request, data, capacity, count);
        });
    if (status.ok()) values->swap(embedded);
    return status;
  }
  Status Step(bool* worked) {
    uint32_t did_work = 0;
    const llm_status code = llm_engine_step(engine_, &did_work);
    if (code == LLM_OK) *worked = did_work != 0;
    return Status(code);
  }
  Status Shutdown(int64_t timeout_ns) { return Status(llm_engine_shutdown(engine_, timeout_ns)); }
  Status GetMetrics(llm_metrics_snapshot* metrics) const {
    llm_metrics_snapshot_init(metrics);
    return Status(llm_metrics(engine_, metrics));
  }
  Status GetHistogram(uint32_t which, llm_histogram* histogram) const {
    llm_histogram_init(histogram);
    return Status(llm_metrics_histogram(engine_, which, histogram));
  }
  Status GetClassHistogram(uint32_t request_class, uint32_t which, llm_histogram* histogram) const {
    llm_histogram_init(histogram);
    return Status(llm_metrics_class_histogram(engine_, request_class, which, histogram));
  }
  Status GetMetricsText(std::string* text) const {
    return internal::ReadAll(text, [&](char* data, size_t capacity, size_t* size) {
      return llm_metrics_text(engine_, data, capacity, size);
    });
  }
  // Calls on_step(const llm_step_record&) for up to 64 records from *cursor on; see
  // llm_step_records_read.
  template <typename OnStep>
  Status ReadSteps(uint64_t* cursor, OnStep&& on_step) const {
    llm_step_record records[64];
    size_t count = 0;
    const llm_status code =
        llm_step_records_read(engine_, cursor, records, sizeof(records[0]), 64, &count);
    if (code != LLM_OK) return Status(code);
    for (size_t i = 0; i < count; ++i) on_step(static_cast<const llm_step_record&>(records[i]));
    return Status();
  }
  // Likewise, on_record(const llm_request_record&).
  template <typename OnRecord>
  Status ReadRecords(uint64_t* cursor, OnRecord&& on_record) const {
    llm_request_record records[64];
    size_t count = 0;
    const llm_status code =
        llm_request_records_read(engine_, cursor, records, sizeof(records[0]), 64, &count);
    if (code != LLM_OK) return Status(code);
    for (size_t i = 0; i < count; ++i)
      on_record(static_cast<const llm_request_record&>(records[i]));
    return Status();
  }
  Status StartTrace(std::string_view path) {
    return Status(llm_trace_start(engine_, path.data(), path.size()));
  }
  Status StopTrace() { return Status(llm_trace_stop(engine_)); }

  llm_queue* queue() const { return llm_engine_queue(engine_); }
  llm_engine* get() const { return engine_; }
  explicit operator bool() const { return engine_ != nullptr; }

 private:
  llm_engine* engine_ = nullptr;
};

// A request with its defaults, for the caller to fill.
inline llm_request Request() {
  llm_request request;
  llm_request_init(&request);
  return request;
}

}  // namespace inlay

#endif  // INLAY_LLM_HPP_
