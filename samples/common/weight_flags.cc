// Names of the constants, first the one that a short name stands for.
#include "common/weight_flags.h"

#include <cstdlib>
#include <utility>

namespace tools {
namespace {

constexpr std::pair<const char*, uint32_t> kWeights[] = {
    {"stored", LLM_WEIGHTS_STORED},
    {"int8:32", LLM_WEIGHTS_INT8_G32},
    {"int8:64", LLM_WEIGHTS_INT8_G64},
    {"int8:128", LLM_WEIGHTS_INT8_G128},
    {"int8:channel", LLM_WEIGHTS_INT8},
    {"int4:32", LLM_WEIGHTS_INT4_G32},
    {"int4:64", LLM_WEIGHTS_INT4_G64},
    {"int4:128", LLM_WEIGHTS_INT4_G128},
    {"int4:32:asym", LLM_WEIGHTS_INT4_ASYM_G32},
    {"int4:64:asym", LLM_WEIGHTS_INT4_ASYM_G64},
    {"int4:128:asym", LLM_WEIGHTS_INT4_ASYM_G128},
    {"fp8", LLM_WEIGHTS_FP8_E4M3}};

std::string ParseWeights(const std::string& text, uint32_t* weights) {
  std::string name = text;
  if (text == "int8" || text == "int4") name += ":32";
  std::string names;
  for (const auto& [known, id] : kWeights) {
    if (name == known) {
      *weights = id;
      return "";
    }
    names += names.empty() ? known : std::string(", ") + known;
  }
  return "'" + text + "' is none of " + names;
}

std::string ParsePrune(const std::string& text, WeightFlags* flags) {
  constexpr char kMagnitude[] = "magnitude=";
  flags->prune_fraction = 0;
  if (text == "2:4") {
    flags->prune = LLM_PRUNE_2_OF_4;
    return "";
  }
  if (text.rfind(kMagnitude, 0) != 0) return "'" + text + "' is neither 2:4 nor magnitude=0.5";
  const std::string number = text.substr(sizeof(kMagnitude) - 1);
  char* end = nullptr;
  flags->prune = LLM_PRUNE_MAGNITUDE;
  flags->prune_fraction = std::strtof(number.c_str(), &end);
  if (number.empty() || *end != '\0') return "'" + number + "' is no number";
  return "";
}

}  // namespace

void AddWeightFlags(WeightFlags* flags, FlagTable* table) {
  const auto add = [&](const char* name, const char* help, uint32_t* weights) {
    table->Add(name, help,
               [weights](const std::string& text) { return ParseWeights(text, weights); });
  };
  add("--linear",
      "float weights of linear layers become int8, fp8, int4, int4:128, int4:32:asym, ...",
      &flags->linear);
  add("--experts", "likewise of experts; default: as --linear", &flags->experts);
  add("--embedding", "likewise; default: stored", &flags->embedding);
  add("--head", "likewise, where the model has its own; default: stored", &flags->head);
  table->Add("--requantize", "also weights that the file has in low bits", &flags->requantize);
  table->Add("--prune", "2:4, or magnitude=0.5: weights of linear layers that become 0",
             [flags](const std::string& text) { return ParsePrune(text, flags); });
}

void SetWeightOptions(const WeightFlags& flags, llm_model_options* options) {
  options->linear_weights = flags.linear;
  options->expert_weights = flags.experts;
  options->embedding_weights = flags.embedding;
  options->head_weights = flags.head;
  options->requantize = flags.requantize ? LLM_ON : 0;
  options->prune = flags.prune;
  options->prune_fraction = flags.prune_fraction;
}

const char* WeightsName(uint32_t weights) {
  for (const auto& [name, id] : kWeights) {
    if (id == weights) return name;
  }
  return "stored";
}

}  // namespace tools
