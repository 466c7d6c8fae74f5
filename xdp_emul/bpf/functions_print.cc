// bpf_trace_printk(): a line for people, formatted as the kernel does.
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/memory_check.h"

namespace halfpage::bpf {
namespace {

constexpr uint64_t kLongestFormat = 512;
constexpr size_t kLongestText = 128;

// A text at `address`, as far as it lies in memory of the program.
std::string TextAt(const RunState& state, uint64_t address) {
  std::string text;
  while (text.size() < kLongestText && InAnything(state, address + text.size(), 1, false)) {
    const char letter = *reinterpret_cast<const char*>(address + text.size());
    if (letter == '\0') return text;
    text += letter;
  }
  return text.empty() ? "(fault)" : text;
}

// One conversion that begins behind `%` at `*at`. False for one that the kernel refuses as well.
bool Convert(const RunState& state, const std::string& format, size_t* at, uint64_t value, std::string* line) {
  std::string spec = "%";
  int digits = 0;  // of a width or precision: nothing is longer than `text` in the end
  while (*at < format.size() && strchr("0-+ #123456789.", format[*at]) != nullptr) {
    digits = isdigit(static_cast<unsigned char>(format[*at])) ? digits + 1 : 0;
    if (digits > 3) return false;
    spec += format[(*at)++];
  }
  int longs = 0;
  while (*at < format.size() && format[*at] == 'l' && longs < 2) {
    ++longs;
    ++*at;
  }
  if (*at >= format.size() || spec.size() > 16) return false;
  const char letter = format[(*at)++];
  char text[160];
  switch (letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
      spec += "ll";
      spec += letter;
      if (longs == 0 && (letter == 'd' || letter == 'i')) {
        value = static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)});
      } else if (longs == 0) {
        value = static_cast<uint32_t>(value);
      }
      snprintf(text, sizeof(text), spec.c_str(), static_cast<long long>(value));
      break;
    case 'p':
      snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
      break;
    case 'c':
      snprintf(text, sizeof(text), "%c", static_cast<int>(value));
      break;
    case 's':
      snprintf(text, sizeof(text), "%s", TextAt(state, value).c_str());
      break;
    default:
      return false;
  }
  *line += text;
  return true;
}

}  // namespace

uint64_t TracePrintk(RunState* state, uint64_t format, uint64_t size, uint64_t a, uint64_t b, uint64_t c) {
  const auto* bytes = reinterpret_cast<const char*>(format);
  const auto error = static_cast<uint64_t>(int64_t{-EINVAL});
  if (size > kLongestFormat || bytes[size - 1] != '\0') return error;
  const std::string text(bytes);
  const uint64_t values[3] = {a, b, c};
  int used = 0;
  std::string line;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '%') {
      line += text[i++];
      continue;
    }
    ++i;
    if (i < text.size() && text[i] == '%') {
      line += text[i++];
      continue;
    }
    if (used == 3 || !Convert(*state, text, &i, values[used++], &line)) return error;
  }
  while (!line.empty() && line.back() == '\n') line.pop_back();
  if (state->print != nullptr) state->print(state->print_to, line.c_str());
  return line.size() + 1;
}

}  // namespace halfpage::bpf
