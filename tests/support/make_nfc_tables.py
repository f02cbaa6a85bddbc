import unicodedata as u
print("""// Canonical decompositions and combining classes of Unicode 14, without Hangul (computed in nfc.cc).
// Written by tests/support/make_nfc_tables.py from Python's unicodedata; a table, not a text to read.
#pragma once

#include <cstdint>

namespace llm {

struct Decomposition {
  char32_t from;
  char32_t first;
  char32_t second;  // 0: the character decomposes to one other
  bool composes;    // false for those that NFC excludes from composition
};

struct CombiningRange {
  char32_t first;
  char32_t last;
  uint8_t combining_class;
};

// Sorted by `from`.
inline constexpr Decomposition kDecompositions[] = {""")
def wrap(items):
    line='   '
    for it in items:
        if len(line)+1+len(it)>100: print(line); line='   '
        line+=' '+it
    print(line)
items=[]
for c in range(0x110000):
    if 0xAC00<=c<0xD7A4: continue
    d=u.decomposition(chr(c))
    if not d or d.startswith('<'): continue
    p=[int(x,16) for x in d.split()]
    comp = len(p)==2 and u.normalize('NFC',''.join(map(chr,p)))==chr(c)
    items.append('{0x%X, 0x%X, 0x%X, %s},'%(c,p[0],p[1] if len(p)>1 else 0,'true' if comp else 'false'))
wrap(items)
print('};\n\n// Sorted; a character in no range has class 0.\ninline constexpr CombiningRange kCombiningRanges[] = {')
items=[];prev=None
for c in range(0x110001):
    k=u.combining(chr(c)) if c<0x110000 else 0
    if prev and (k!=prev[2]):
        items.append('{0x%X, 0x%X, %d},'%prev); prev=None
    if k: prev=(prev[0] if prev else c,c,k)
wrap(items)
print('};\n\n}  // namespace llm')
