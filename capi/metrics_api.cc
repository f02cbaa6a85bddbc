// llm_metrics, its histograms, llm_metrics_text.
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/translate_metrics.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"
#include "src/engine/metrics_text.h"

extern "C" llm_status llm_metrics(const llm_engine* engine, llm_metrics_snapshot* metrics) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    LLM_RETURN_IF_NULL(metrics);
    return llm::WriteStruct("llm_metrics_snapshot",
                            llm::TranslateMetrics(engine->engine->Metrics()), metrics);
  });
}

extern "C" llm_status llm_metrics_histogram(const llm_engine* engine, uint32_t which,
                                            llm_histogram* histogram) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    LLM_RETURN_IF_NULL(histogram);
    LLM_ASSIGN_OR_RETURN(const llm_histogram translated,
                         llm::TranslateHistogram(engine->engine->Metrics(), which));
    return llm::WriteStruct("llm_histogram", translated, histogram);
  });
}

extern "C" llm_status llm_metrics_class_histogram(const llm_engine* engine, uint32_t request_class,
                                                  uint32_t which, llm_histogram* histogram) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    LLM_RETURN_IF_NULL(histogram);
    LLM_ASSIGN_OR_RETURN(
        const llm_histogram translated,
        llm::TranslateClassHistogram(engine->engine->Metrics(), request_class, which));
    return llm::WriteStruct("llm_histogram", translated, histogram);
  });
}

extern "C" llm_status llm_metrics_text(const llm_engine* engine, char* text, size_t capacity,
                                       size_t* size) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    LLM_RETURN_IF_NULL(size);
    LLM_RETURN_IF_ERROR(llm::CheckArray("text", text, capacity));
    const std::string whole = llm::MetricsText(engine->engine->Metrics(), engine->engine->labels());
    llm::CopyOut(whole.data(), whole.size(), text, capacity, size);
    return absl::OkStatus();
  });
}
