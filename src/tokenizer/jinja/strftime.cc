// Our own, since the C library's follows the host's locale and time zone.
#include "src/tokenizer/jinja/strftime.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace llm::jinja {
namespace {

constexpr absl::string_view kMonths[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
constexpr absl::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};

struct CivilTime {
  int64_t year = 1970;
  int64_t month = 1;  // 1 to 12
  int64_t day = 1;
  int64_t hour = 0;
  int64_t minute = 0;
  int64_t second = 0;
  int64_t weekday = 0;  // from Sunday
  int64_t day_of_year = 1;
};

bool IsLeap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int64_t DaysInMonth(int64_t year, int64_t month) {
  constexpr int64_t kLengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kLengths[month - 1] + (month == 2 && IsLeap(year) ? 1 : 0);
}

CivilTime ToCivil(int64_t time_s) {
  // The years 1 to 9999, as Python's datetime.
  time_s = std::clamp<int64_t>(time_s, -62135596800, 253402300799);
  int64_t days = time_s / 86400;
  int64_t seconds = time_s % 86400;
  if (seconds < 0) {
    seconds += 86400;
    --days;
  }
  CivilTime civil;
  civil.hour = seconds / 3600;
  civil.minute = seconds / 60 % 60;
  civil.second = seconds % 60;
  civil.weekday = ((days + 4) % 7 + 7) % 7;  // 1970 began on a Thursday
  days += 719162;                            // since the first of January of year 1
  civil.year = 1 + days / 146097 * 400;      // 400 years have 146,097 days
  days %= 146097;
  while (days >= (IsLeap(civil.year) ? 366 : 365)) days -= IsLeap(civil.year++) ? 366 : 365;
  civil.day_of_year = days + 1;
  while (days >= DaysInMonth(civil.year, civil.month)) {
    days -= DaysInMonth(civil.year, civil.month++);
  }
  civil.day = days + 1;
  return civil;
}

// At least `width` digits, unless the directive had a hyphen.
std::string Digits(int64_t value, size_t width, bool plain) {
  std::string digits = absl::StrCat(value);
  if (plain || digits.size() >= width) return digits;
  return std::string(width - digits.size(), '0') + digits;
}

std::string Directive(char letter, const CivilTime& t, bool plain);

std::string Compound(absl::string_view letters, const CivilTime& t) {
  std::string out;
  for (const char c : letters) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    out += letter ? Directive(c, t, false) : std::string(1, c);
  }
  return out;
}

// `t` in the form of `letter`; empty for an unknown one.
std::string Directive(char letter, const CivilTime& t, bool plain) {
  const absl::string_view month = kMonths[t.month - 1];
  const absl::string_view day = kDays[t.weekday];
  const int64_t hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12;
  switch (letter) {
    case 'Y':
      return Digits(t.year, 1, plain);
    case 'y':
      return Digits(t.year % 100, 2, plain);
    case 'm':
      return Digits(t.month, 2, plain);
    case 'd':
      return Digits(t.day, 2, plain);
    case 'H':
      return Digits(t.hour, 2, plain);
    case 'I':
      return Digits(hour12, 2, plain);
    case 'M':
      return Digits(t.minute, 2, plain);
    case 'S':
      return Digits(t.second, 2, plain);
    case 'j':
      return Digits(t.day_of_year, 3, plain);
    case 'f':
      return "000000";
    case 'p':
      return t.hour < 12 ? "AM" : "PM";
    case 'B':
      return std::string(month);
    case 'b':
    case 'h':
      return std::string(month.substr(0, 3));
    case 'A':
      return std::string(day);
    case 'a':
      return std::string(day.substr(0, 3));
    case 'w':
      return absl::StrCat(t.weekday);
    case 'u':
      return absl::StrCat(t.weekday == 0 ? 7 : t.weekday);
    case 'e':
      return absl::StrCat(t.day < 10 && !plain ? " " : "", t.day);
    case 'Z':
      return "UTC";
    case 'z':
      return "+0000";
    case 'F':
      return Compound("Y-m-d", t);
    case 'T':
    case 'X':
      return Compound("H:M:S", t);
    case 'R':
      return Compound("H:M", t);
    case 'D':
    case 'x':
      return Compound("m/d/y", t);
    case 'c':
      return Compound("a b e H:M:S Y", t);
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return "";
  }
}

}  // namespace

std::string FormatTime(absl::string_view format, int64_t time_s) {
  const CivilTime civil = ToCivil(time_s);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    const bool plain = i + 2 < format.size() && format[i + 1] == '-';
    const size_t letter = i + (plain ? 2 : 1);
    const bool directive = format[i] == '%' && letter < format.size();
    const std::string text = directive ? Directive(format[letter], civil, plain) : "";
    if (text.empty()) {
      out += format[i];
    } else {
      out += text;
      i = letter;
    }
  }
  return out;
}

}  // namespace llm::jinja
