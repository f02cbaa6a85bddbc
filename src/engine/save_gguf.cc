// What quantising makes is a GGUF file already: it is read in pieces on all threads and written in
// order.
#include "src/engine/save_gguf.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/atomic_file.h"
#include "src/base/float_state.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/engine/check_vocabulary.h"
#include "src/engine/load_weights.h"
#include "src/engine/tokenizer_from_gguf.h"
#include "src/engine/tokenizer_to_gguf.h"
#include "src/loader/composed_file.h"
#include "src/loader/pack_reader.h"
#include "src/model/quantized_file.h"

namespace llm {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;  // rows at its ends are encoded twice: few among many
constexpr int kPiecesPerThread = 4;

// What could not be opened afterwards is refused before anything is written.
absl::Status Check(const ModelFile& file, const ModelOptions& options) {
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source,
                       OpenGguf(BorrowedFile(file), options.limits));
  if (source->metadata().Has(kSplitPatternsKey)) {
    return absl::UnimplementedError(absl::StrCat(
        file.name(), ": GGUF has no keys for the rules of a directory's tokenizer (",
        kSplitPatternsKey, "): write a pack, or quantise the GGUF file that a converter makes"));
  }
  for (const TensorInfo& tensor : source->tensors()) {
    if (!IsOwnFormat(tensor.format)) continue;
    return absl::UnimplementedError(absl::StrCat("tensor ", tensor.name, ": GGUF has no type for ",
                                                 TypeName(tensor), ": write a pack"));
  }
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                       TokenizerFromGguf(source->metadata()));
  LLM_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(*source));
  LLM_RETURN_IF_ERROR(CheckVocabulary(file.name(), *tokenizer, config.vocab_size));
  LLM_ASSIGN_OR_RETURN(const KernelTable* kernels, FindKernels("reference"));
  return WeightsBytes(*source, config, *kernels).status();
}

// Reads [begin, end) of the file, at most `pieces.size()` pieces of kPieceBytes.
absl::Status ReadPieces(const ModelFile& file, uint64_t begin, uint64_t end, ThreadPool* pool,
                        std::byte* to) {
  const auto count = static_cast<size_t>(CeilDiv(end - begin, kPieceBytes));
  std::vector<absl::Status> statuses(count);
  pool->ParallelFor(static_cast<int>(count), [&](int task, int) {
    absl::Status& status = statuses[static_cast<size_t>(task)];
    const uint64_t at = static_cast<uint64_t>(task) * kPieceBytes;
    const uint64_t size = std::min(kPieceBytes, end - begin - at);
    try {
      status = file.Read(begin + at, size, to + at);
    } catch (const std::bad_alloc&) {  // a task must not throw; this status allocates nothing
      status = absl::Status(absl::StatusCode::kResourceExhausted, "");
    }
  });
  for (const absl::Status& status : statuses) LLM_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status Write(const ModelFile& file, const ModelOptions& options, ThreadPool* pool,
                   const std::string& path) {
  Allocator allocator;
  allocator.set_limit_bytes(options.max_memory_bytes);
  allocator.set_hooks(options.host.allocator);
  const uint64_t batch =
      kPieceBytes * static_cast<uint64_t>(kPiecesPerThread * pool->num_threads());
  LLM_ASSIGN_OR_RETURN(
      Buffer buffer, Buffer::Allocate(&allocator, std::min(batch, file.size()), "written pieces"));
  LLM_ASSIGN_OR_RETURN(AtomicFile written, AtomicFile::Create(path));
  for (uint64_t begin = 0; begin < file.size(); begin += batch) {
    const uint64_t end = std::min(begin + batch, file.size());
    LLM_RETURN_IF_ERROR(ReadPieces(file, begin, end, pool, buffer.data()));
    LLM_RETURN_IF_ERROR(written.Write(buffer.data(), static_cast<size_t>(end - begin)));
    LLM_RETURN_IF_ERROR(ReportProgress(options, "save", end, file.size()));
  }
  return written.Commit();
}

}  // namespace

absl::Status SaveGguf(std::unique_ptr<ModelFile> file, const ModelOptions& options,
                      const std::string& path) {
  const ScopedFloatState float_state;  // as in LoadedModel::Open
  if (IsPack(*file)) {
    return absl::FailedPreconditionError(
        absl::StrCat(file->name(), ": a pack does not hold its weights as GGUF does"));
  }
  LLM_ASSIGN_OR_RETURN(const QuantizedFile quantized,
                       QuantizeFile(std::move(file), options.quantize, options.limits));
  LLM_RETURN_IF_ERROR(Check(*quantized.file, options));
  return WithLoadingThreads(
      options, [&](ThreadPool* pool) { return Write(*quantized.file, options, pool, path); });
}

}  // namespace llm
