// What a model directory says of text: its tokenizer, chat template, end tokens and sampling.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/gguf_writer.h"
#include "src/loader/json_document.h"
#include "src/loader/model_directory.h"

namespace llm {

// Writes the keys of tokenizer.json, tokenizer_config.json, chat_template.jinja and
// generation_config.json (all but the first may be missing); `config` is config.json. The tokenizer
// gets tokens without a text up to `vocab_size`, where its file has fewer.
absl::Status WriteDirectoryText(const ModelDirectory& directory, const JsonDocument& config,
                                int64_t vocab_size, const LoaderLimits& limits, GgufWriter* writer);

}  // namespace llm
