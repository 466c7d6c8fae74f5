// The options of the command line: one table, from which they are parsed, and --help and the manual page are written.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halfpage {

struct Option {
  enum class Topic : uint8_t { kRun, kLaunch, kXdpTest, kAbout };
  Topic topic;
  const char* name;
  char letter;        // 0: none
  const char* value;  // what it takes, null for nothing
  const char* path;   // configuration path it sets, null for an action
  const char* help;
};

// An option of dpdk-testpmd that is not here.
struct ForeignOption {
  const char* name;
  const char* instead;  // what to do
};

absl::Span<const Option> AllOptions();

// The one of that name (without dashes), or null.
const Option* FindOption(absl::string_view name);
const Option* FindOptionByLetter(char letter);
const ForeignOption* FindForeignOption(absl::string_view name);

// What --help prints.
std::string HelpText();

// What --man prints: the manual page halfpage(1) as input of man(1).
std::string ManualPage();

}  // namespace halfpage
