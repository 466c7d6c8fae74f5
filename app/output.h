// Data on its way out: standard output and files, with words for what goes wrong.
#pragma once

#include <cstdint>
#include <string>

namespace halfpage {

enum class Written : uint8_t { kYes, kReaderGone, kFailed };

// Writes to standard output at once. A reader who has gone away (`| head -1`) wants no more; anything else that goes
// wrong is told on standard error.
Written WriteOut(const std::string& text);

// Writes `text` to `path` in place of what is there; "-" is standard output. Gives whether it is there, or its reader
// wants no more; tells standard error what goes wrong with `what` ("the report").
bool WriteFile(const std::string& path, const std::string& text, const char* what);

}  // namespace halfpage
