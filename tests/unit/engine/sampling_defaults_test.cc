// What files propose for sampling becomes fields of a request, the same from both kinds of file.
#include "src/engine/sampling_defaults.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/loader/gguf_reader.h"
#include "tests/support/fake_weight_source.h"

namespace llm {
namespace {

using testing::HasSubstr;

SamplingDefaults FromHub(const std::string& json) {
  const absl::StatusOr<JsonDocument> document = JsonDocument::Parse(json);
  EXPECT_TRUE(document.ok()) << document.status();
  const absl::StatusOr<SamplingDefaults> defaults = SamplingDefaultsFromHub(*document);
  EXPECT_TRUE(defaults.ok()) << defaults.status();
  return *defaults;
}
std::string HubError(const std::string& json) {
  return std::string(SamplingDefaultsFromHub(*JsonDocument::Parse(json)).status().message());
}

// Through a GGUF header and back.
SamplingDefaults Again(const SamplingDefaults& defaults) {
  GgufWriter writer;
  WriteSamplingDefaults(defaults, &writer);
  const std::string header = writer.Finish();
  const auto source = OpenGguf(MemoryModelFile(header.data(), header.size(), "header"), {});
  EXPECT_TRUE(source.ok()) << source.status();
  const absl::StatusOr<SamplingDefaults> again = SamplingDefaultsFromGguf((*source)->metadata());
  EXPECT_TRUE(again.ok()) << again.status();
  return *again;
}

TEST(SamplingDefaultsTest, AllThatAFileSaysIsKept) {
  const SamplingDefaults read = FromHub(
      R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05,
          "repetition_penalty": 1.05, "max_length": 4096, "transformers_version": "4.51.0"})");
  for (const SamplingDefaults& defaults : {read, Again(read)}) {
    EXPECT_EQ(defaults.temperature, 0.6f);
    EXPECT_EQ(defaults.top_k, 20);
    EXPECT_EQ(defaults.top_p, 0.95f);
    EXPECT_EQ(defaults.min_p, 0.05f);
    EXPECT_EQ(defaults.repetition_penalty, 1.05f);
  }
}

TEST(SamplingDefaultsTest, NothingSaidIsNothingProposed) {
  const SamplingDefaults read = FromHub(R"({"eos_token_id": 2, "temperature": null})");
  for (const SamplingDefaults& defaults : {read, Again(read)}) {
    EXPECT_FALSE(defaults.temperature.has_value() || defaults.top_k.has_value() ||
                 defaults.top_p.has_value() || defaults.min_p.has_value() ||
                 defaults.repetition_penalty.has_value());
  }
}

TEST(SamplingDefaultsTest, AFileThatDoesNotSampleIsGreedyWhateverElseItSays) {
  const SamplingDefaults read = FromHub(
      R"({"do_sample": false, "temperature": 0.7, "top_p": 0.8, "repetition_penalty": 1.1})");
  for (const SamplingDefaults& defaults : {read, Again(read)}) {
    EXPECT_EQ(defaults.temperature, 0.0f);
    EXPECT_FALSE(defaults.top_p.has_value());
    EXPECT_EQ(defaults.repetition_penalty, 1.1f);
  }
}

TEST(SamplingDefaultsTest, AFileThatSamplesWithoutATemperatureHasOne) {
  for (const char* json : {R"({"do_sample": true})", R"({"do_sample": true, "top_k": 64})"}) {
    const SamplingDefaults read = FromHub(json);
    EXPECT_EQ(read.temperature, 1.0f);
    EXPECT_EQ(Again(read).temperature, 1.0f);
  }
  FakeMetadata metadata;
  metadata.Set("general.sampling.top_k", int64_t{64});
  EXPECT_EQ(SamplingDefaultsFromGguf(metadata)->temperature, 1.0f);
}

TEST(SamplingDefaultsTest, CutsThatAreOffStayOff) {
  const SamplingDefaults defaults = FromHub(R"({"top_k": -1, "top_p": 1, "temperature": 1})");
  EXPECT_EQ(defaults.top_k, 0);
  EXPECT_EQ(defaults.top_p, 1.0f);
  EXPECT_EQ(defaults.temperature, 1.0f);
}

TEST(SamplingDefaultsTest, WhatNoRequestMayHaveIsNamed) {
  EXPECT_THAT(HubError(R"({"temperature": -1})"),
              HasSubstr("generation_config.json: key temperature (general.sampling.temp): -1"));
  EXPECT_THAT(HubError(R"({"top_p": 1.5})"), HasSubstr("key top_p"));
  EXPECT_THAT(HubError(R"({"min_p": "0.1"})"), HasSubstr("key min_p: expected a number"));
  EXPECT_THAT(HubError(R"({"top_k": [3]})"), HasSubstr("key top_k"));
  EXPECT_THAT(HubError(R"({"repetition_penalty": 0.001})"), HasSubstr("key repetition_penalty"));
  EXPECT_THAT(HubError(R"({"do_sample": 1})"), HasSubstr("key do_sample"));
  FakeMetadata metadata;
  metadata.Set("general.sampling.top_p", 7.0);
  EXPECT_THAT(std::string(SamplingDefaultsFromGguf(metadata).status().message()),
              HasSubstr("general.sampling.top_p"));
}

}  // namespace
}  // namespace llm
