#include "mempool/page_frag_environment.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "mempool/page_layout.h"

namespace halfpage {
namespace {

bool ReadSwitch(const char* name, bool* setting) {
  const char* value = std::getenv(name);
  if (value == nullptr) return true;
  const absl::string_view text = value;
  if (text != "0" && text != "1") return false;
  *setting = text == "1";
  return true;
}

}  // namespace

const char* ReadPageFragEnvironment(PageFragSettings* settings) {
  if (const char* value = std::getenv("PAGE_FRAG_PAGE_SIZE")) {
    if (!absl::SimpleAtoi(value, &settings->page_size)) {
      return "PAGE_FRAG_PAGE_SIZE is no number of bytes: give a power of two from 4096 to 131072, or 0 to choose";
    }
  }
  if (const char* value = std::getenv("PAGE_FRAG_RECYCLE")) {
    const absl::string_view mode = value;
    if (mode == "lifo") {
      settings->recycle = RecycleMode::kLifo;
    } else if (mode == "ring") {
      settings->recycle = RecycleMode::kRing;
    } else if (mode == "off") {
      settings->recycle = RecycleMode::kOff;
    } else {
      return "PAGE_FRAG_RECYCLE is none of lifo, ring, off";
    }
  }
  if (const char* value = std::getenv("PAGE_FRAG_ROTATION")) {
    if (!absl::SimpleAtoi(value, &settings->rotation))
      return "PAGE_FRAG_ROTATION is no number of pages: give 0 or more";
  }
  if (!ReadSwitch("PAGE_FRAG_COLOUR", &settings->colour)) return "PAGE_FRAG_COLOUR is neither 0 nor 1";
  if (!ReadSwitch("PAGE_FRAG_DEBUG", &settings->debug)) return "PAGE_FRAG_DEBUG is neither 0 nor 1";
  return nullptr;
}

const char* ReadPageFragLimit(uint64_t* bytes) {
  const char* value = std::getenv("PAGE_FRAG_LIMIT");
  if (value == nullptr) return nullptr;
  uint64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || (number != 0 && number < kChunkBytes)) {
    return "PAGE_FRAG_LIMIT is no number of bytes, or less than a chunk: give 2097152 or more, or 0 for no limit";
  }
  *bytes = number;
  return nullptr;
}

}  // namespace halfpage
