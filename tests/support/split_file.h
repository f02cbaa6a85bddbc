// A GGUF file cut into parts, as they are handed out.
#pragma once

#include <memory>
#include <string>

#include "src/loader/file_source.h"

namespace llm {

// How to cut, and what of it is wrong.
struct Cut {
  int parts = 3;
  bool tensors_in_first = true;
  int64_t count = 3;        // what split.count says
  int64_t total_off = 0;    // what split.tensors.count says too much
  int swapped_no = -1;      // the part that calls itself 7
  int repeats_tensor = -1;  // the part that has the first part's first tensor too
};

class SplitFile {
 public:
  // Parts of the file `whole` are written to `folder`.
  SplitFile(const std::string& whole, std::string folder);

  const ModelFile& whole_file() const { return *whole_file_; }
  const GgufContents& whole() const { return whole_; }
  std::string Path(int index, int parts = 3) const;
  void Write(const Cut& cut) const;

 private:
  void AddTensor(const TensorInfo& tensor, class GgufWriter* writer, std::string* data) const;

  const std::string folder_;
  std::unique_ptr<ModelFile> whole_file_;
  GgufContents whole_;
};

}  // namespace llm
