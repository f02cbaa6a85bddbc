// llm.hpp compiles as C++17 without exceptions and RTTI, and from two files of a program.
#include <inlay/llm.hpp>

inlay::Status HppCheck(const inlay::Model& model, inlay::Engine* engine);
inlay::Status HppCheck(const inlay::Model& model, inlay::Engine* engine) {
  return inlay::Engine::Open(model, nullptr, engine);
}
