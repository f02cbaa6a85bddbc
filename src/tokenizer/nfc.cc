// Decompose, order the marks, compose: UAX #15, sections 3.11 and D117 of the Unicode standard.
#include "src/tokenizer/nfc.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "src/tokenizer/nfc_tables.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

// Hangul syllables are arithmetic: leading consonant, vowel, optional trailing consonant.
constexpr char32_t kSyllableBase = 0xAC00, kLeadBase = 0x1100, kVowelBase = 0x1161,
                   kTrailBase = 0x11A7;
constexpr char32_t kNumLeads = 19, kNumVowels = 21, kNumTrails = 28;
constexpr char32_t kNumSyllables = kNumLeads * kNumVowels * kNumTrails;

struct Mark {
  char32_t code_point;
  uint8_t combining_class;
};

uint8_t CombiningClass(char32_t c) {
  if (c < 0x300) return 0;
  const auto* range = std::partition_point(std::begin(kCombiningRanges), std::end(kCombiningRanges),
                                           [c](const CombiningRange& r) { return r.last < c; });
  return range != std::end(kCombiningRanges) && range->first <= c ? range->combining_class : 0;
}

const Decomposition* FindDecomposition(char32_t c) {
  const auto* entry = std::partition_point(std::begin(kDecompositions), std::end(kDecompositions),
                                           [c](const Decomposition& d) { return d.from < c; });
  return entry != std::end(kDecompositions) && entry->from == c ? entry : nullptr;
}

void Append(char32_t c, std::vector<Mark>* out) { out->push_back({c, CombiningClass(c)}); }

// Only the first part of a decomposition decomposes again, at most twice more (U+1F82 and its
// like).
void AppendDecomposed(char32_t c, std::vector<Mark>* out) {
  if (c >= kSyllableBase && c < kSyllableBase + kNumSyllables) {
    const char32_t index = c - kSyllableBase;
    Append(kLeadBase + index / (kNumVowels * kNumTrails), out);
    Append(kVowelBase + index % (kNumVowels * kNumTrails) / kNumTrails, out);
    if (index % kNumTrails != 0) Append(kTrailBase + index % kNumTrails, out);
    return;
  }
  char32_t seconds[4];
  size_t num_seconds = 0;
  for (const Decomposition* d = FindDecomposition(c); d != nullptr; d = FindDecomposition(c)) {
    if (d->second != 0 && num_seconds < std::size(seconds)) seconds[num_seconds++] = d->second;
    c = d->first;
  }
  Append(c, out);
  while (num_seconds > 0) Append(seconds[--num_seconds], out);
}

// Marks between two starters go by class, those of one class stay in order.
void SortMarks(std::vector<Mark>* text) {
  for (auto begin = text->begin(); begin != text->end();) {
    const auto is_starter = [](const Mark& m) { return m.combining_class == 0; };
    begin = std::find_if_not(begin, text->end(), is_starter);
    const auto end = std::find_if(begin, text->end(), is_starter);
    std::stable_sort(begin, end, [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end;
  }
}

// 0 when the two do not compose.
char32_t ComposeHangul(char32_t a, char32_t b) {
  if (a >= kLeadBase && a < kLeadBase + kNumLeads && b >= kVowelBase &&
      b < kVowelBase + kNumVowels) {
    return kSyllableBase + ((a - kLeadBase) * kNumVowels + (b - kVowelBase)) * kNumTrails;
  }
  const bool open_syllable = a >= kSyllableBase && a < kSyllableBase + kNumSyllables &&
                             (a - kSyllableBase) % kNumTrails == 0;
  if (open_syllable && b > kTrailBase && b < kTrailBase + kNumTrails) return a + (b - kTrailBase);
  return 0;
}

struct Composition {
  char32_t first;
  char32_t second;
  char32_t composed;
};

constexpr bool ComesBefore(const Composition& a, const Composition& b) {
  return a.first != b.first ? a.first < b.first : a.second < b.second;
}

constexpr auto kCompositions = [] {
  constexpr auto composes = [](const Decomposition& d) { return d.composes != 0; };
  constexpr auto count =
      std::count_if(std::begin(kDecompositions), std::end(kDecompositions), composes);
  std::array<Composition, static_cast<size_t>(count)> table = {};
  auto next = table.begin();
  for (const Decomposition& d : kDecompositions) {
    if (composes(d)) *next++ = {d.first, d.second, d.from};
  }
  std::sort(table.begin(), table.end(), ComesBefore);
  return table;
}();

// 0 when the two do not compose.
char32_t Compose(char32_t a, char32_t b) {
  if (const char32_t syllable = ComposeHangul(a, b); syllable != 0) return syllable;
  const auto* entry = std::lower_bound(kCompositions.begin(), kCompositions.end(),
                                       Composition{a, b, 0}, ComesBefore);
  return entry != kCompositions.end() && entry->first == a && entry->second == b ? entry->composed
                                                                                 : 0;
}

std::string ComposeAll(const std::vector<Mark>& text) {
  std::vector<Mark> out;
  out.reserve(text.size());
  constexpr size_t kNoStarter = static_cast<size_t>(-1);
  size_t starter = kNoStarter;
  for (const Mark& mark : text) {
    // A mark is blocked from its starter by one between them of the same or a higher class.
    const bool adjacent = starter != kNoStarter && starter + 1 == out.size();
    const bool reachable =
        starter != kNoStarter && (adjacent || (out.back().combining_class < mark.combining_class &&
                                               out.back().combining_class != 0));
    const char32_t composed = reachable ? Compose(out[starter].code_point, mark.code_point) : 0;
    if (composed != 0) {
      out[starter].code_point = composed;
      continue;
    }
    if (mark.combining_class == 0) starter = out.size();
    out.push_back(mark);
  }
  std::string result;
  for (const Mark& mark : out) AppendUtf8(mark.code_point, &result);
  return result;
}

}  // namespace

bool MayNeedNfc(absl::string_view text) {
  // U+0300 is CC 80: no byte of a smaller character reaches CC.
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) >= 0xCC; });
}

std::string NormalizeToNfc(absl::string_view text) {
  std::vector<Mark> decomposed;
  while (!text.empty()) {
    const Utf8Part part = NextUtf8Part(text);
    AppendDecomposed(part.code_point, &decomposed);
    text.remove_prefix(part.length);
  }
  SortMarks(&decomposed);
  return ComposeAll(decomposed);
}

}  // namespace llm
