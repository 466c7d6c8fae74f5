#include "app/output.h"

#include <errno.h>

#include <cstdio>
#include <cstring>
#include <fstream>

namespace halfpage {

Written WriteOut(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return Written::kYes;
  if (errno == EPIPE) return Written::kReaderGone;
  std::fprintf(stderr, "halfpage: standard output: %s\n", std::strerror(errno));
  return Written::kFailed;
}

bool WriteFile(const std::string& path, const std::string& text, const char* what) {
  if (path == "-") return WriteOut(text) != Written::kFailed;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) return true;
  std::fprintf(stderr, "halfpage: %s: %s cannot be written: %s\n", path.c_str(), what, std::strerror(errno));
  return false;
}

}  // namespace halfpage
