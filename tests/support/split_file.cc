// Tensors are dealt out in their order, as many to each part.
#include "tests/support/split_file.h"

#include <cstdio>
#include <fstream>
#include <utility>

#include "gtest/gtest.h"
#include "src/loader/gguf_writer.h"

namespace llm {

SplitFile::SplitFile(const std::string& whole, std::string folder) : folder_(std::move(folder)) {
  auto file = OpenModelFile(whole);
  EXPECT_TRUE(file.ok()) << file.status();
  auto contents = ReadGgufHeader(**file, (*file)->size(), {});
  EXPECT_TRUE(contents.ok()) << contents.status();
  whole_file_ = *std::move(file);
  whole_ = *std::move(contents);
}

std::string SplitFile::Path(int index, int parts) const {
  char name[64];
  std::snprintf(name, sizeof(name), "/m-%05d-of-%05d.gguf", index + 1, parts);
  return folder_ + name;
}

void SplitFile::AddTensor(const TensorInfo& tensor, GgufWriter* writer, std::string* data) const {
  data->resize((data->size() + 31) / 32 * 32);
  writer->AddTensor(tensor.name, tensor.format, tensor.shape, data->size());
  std::string bytes(tensor.size_bytes, '\0');
  EXPECT_TRUE(whole_file_->Read(tensor.file_offset, tensor.size_bytes, bytes.data()).ok());
  *data += bytes;
}

void SplitFile::Write(const Cut& cut) const {
  const size_t first = cut.tensors_in_first ? 0 : 1;
  const size_t filled = static_cast<size_t>(cut.parts) - first;
  const size_t num_tensors = whole_.tensors.size();
  for (int p = 0; p < cut.parts; ++p) {
    GgufWriter writer;
    if (p == 0) {
      writer.CopyValues(whole_.metadata->bytes().View(whole_.values),
                        whole_.metadata->entries().size());
    }
    writer.AddInt("split.no", p == cut.swapped_no ? 7 : p);
    writer.AddInt("split.count", cut.count);
    writer.AddInt("split.tensors.count", static_cast<int64_t>(num_tensors) + cut.total_off);
    std::string data;
    const size_t i = static_cast<size_t>(p) - first;
    for (size_t t = 0; p >= static_cast<int>(first) && t < num_tensors; ++t) {
      if (t / ((num_tensors + filled - 1) / filled) == i) {
        AddTensor(whole_.tensors[t], &writer, &data);
      }
    }
    if (p == cut.repeats_tensor) AddTensor(whole_.tensors[0], &writer, &data);
    std::ofstream(Path(p, cut.parts), std::ios::binary) << writer.Finish() << data;
  }
}

}  // namespace llm
