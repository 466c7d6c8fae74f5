#include "app/prompt/prompt.h"

#include <cmdline.h>
#include <cmdline_rdline.h>
#include <errno.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "app/config_units.h"
#include "app/output.h"
#include "app/process.h"
#include "app/prompt/parser.h"
#include "app/run.h"

namespace halfpage {
namespace {

constexpr char kPrompt[] = "halfpage> ";
constexpr int kWaitMs = 2;
constexpr size_t kDeepest = 8;  // files that load files

int CodeOf(const absl::Status& status) {
  const bool usage = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return status.ok() ? kExitGood : usage ? kExitUsage : kExitFailed;
}

class Prompt {
 public:
  Prompt(Session& session, Parser& parser, const std::function<void()>& look)
      : session_(session), parser_(parser), look_(look) {}

  PromptEnd end() const { return {code_, session_.quit}; }
  bool quit() const { return session_.quit; }

  // One line from `where`; a failure that nobody typed ends the prompt unless it is to go on.
  void Line(const std::string& line, const std::string& where, bool typed) {
    session_.out.clear();
    const size_t files = session_.files.size();
    absl::Status status = parser_.Run(line);
    if (WriteOut(session_.out) != Written::kYes) session_.quit = true;
    if (status.ok() && session_.files.size() > files) {
      File(session_.files.back(), typed);
      session_.files.pop_back();
      return;
    }
    if (status.ok()) return;
    std::fprintf(stderr, "halfpage: %s%s\n", typed ? "" : absl::StrCat(where, ": ").c_str(),
                 std::string(status.message()).c_str());
    if (typed) return;
    if (code_ == kExitGood) code_ = CodeOf(status);
    if (!session_.keep_going) session_.quit = true;
  }

  void File(const std::string& path, bool typed) {
    std::ifstream file(path);
    absl::Status status;
    if (!file) status = absl::NotFoundError(absl::StrCat(path, ": cannot be read: ", std::strerror(errno)));
    std::error_code unknown;
    if (std::filesystem::is_directory(path, unknown)) {
      status = absl::InvalidArgumentError(absl::StrCat(path, ": is a folder: name a file of commands in it"));
    }
    if (session_.files.size() > kDeepest)
      status = absl::InvalidArgumentError(absl::StrCat(path, ": files load each other"));
    if (!status.ok()) {
      std::fprintf(stderr, "halfpage: %s\n", std::string(status.message()).c_str());
      if (typed) return;
      if (code_ == kExitGood) code_ = CodeOf(status);
      if (!session_.keep_going) session_.quit = true;
      return;
    }
    std::string line;
    for (int number = 1; !session_.quit && !StopRequested() && std::getline(file, line); ++number) {
      look_();
      Line(line, absl::StrFormat("%s:%d", path, number), false);
    }
  }

  // Lines from a pipe or a file on standard input.
  void Piped() {
    std::string rest;
    int number = 0;
    for (bool open = true; open && !session_.quit && !StopRequested();) {
      char bytes[4096];
      const ssize_t n = Ready() ? read(STDIN_FILENO, bytes, sizeof(bytes)) : -1;
      if (n < 0) continue;
      rest.append(bytes, static_cast<size_t>(n));
      open = n != 0;
      if (!open && !rest.empty()) rest += '\n';
      for (size_t at = rest.find('\n'); at != std::string::npos && !session_.quit; at = rest.find('\n')) {
        const std::string line = rest.substr(0, at);
        rest.erase(0, at + 1);
        const bool text = std::none_of(line.begin(), line.end(), [](char c) { return absl::ascii_iscntrl(c); });
        WriteOut(absl::StrCat(kPrompt, text ? line : Shown(line), "\n"));
        Line(line, absl::StrFormat("standard input:%d", ++number), false);
      }
    }
    session_.quit = true;
  }

  void Terminal() {
    termios before;
    if (tcgetattr(STDIN_FILENO, &before) != 0) return Piped();
    termios raw = before;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    Edit();
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    session_.quit = true;
  }

 private:
  bool Ready() {
    look_();
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, kWaitMs) > 0;
  }

  // rte_cmdline's line editor, with our own hand on what was typed. DPDK has declared it without promising it for ever.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  void Edit() {
    rdline* editor = rdline_new(
        [](rdline*, char c) { return write(STDOUT_FILENO, &c, 1) == 1 ? 0 : -1; },
        [](rdline* line, const char* text, unsigned) { static_cast<Prompt*>(rdline_get_opaque(line))->typed_ = text; },
        [](rdline* line, const char* text, char* to, unsigned size, int* state) {
          return static_cast<Prompt*>(rdline_get_opaque(line))->parser_.Complete(text, state, to, size);
        },
        this);
    if (editor == nullptr) return;
    rdline_newline(editor, kPrompt);
    while (!session_.quit && !StopRequested()) {
      char c = 0;
      if (!Ready()) continue;
      if (read(STDIN_FILENO, &c, 1) != 1) break;
      const int result = rdline_char_in(editor, c);
      if (result < 0) break;  // end of input (^D)
      if (result != RDLINE_RES_VALIDATED) continue;
      const std::string line = typed_.substr(0, typed_.find('\n'));
      if (!line.empty()) rdline_add_history(editor, line.c_str());
      Line(line, "", true);
      if (!session_.quit) rdline_newline(editor, kPrompt);
    }
    rdline_free(editor);
    WriteOut("\n");
  }
#pragma GCC diagnostic pop

  Session& session_;
  Parser& parser_;
  const std::function<void()>& look_;
  std::string typed_;
  int code_ = kExitGood;
};

}  // namespace

PromptEnd RunPrompt(Topology& topology, const PromptOptions& options, const std::function<void()>& look) {
  Session session(topology);
  session.keep_going = options.keep_going;
  auto parser = Parser::Create(session);
  if (!parser.ok()) {
    std::fprintf(stderr, "halfpage: %s\n", std::string(parser.status().message()).c_str());
    return {kExitFailed, true};
  }
  Prompt prompt(session, **parser, look);
  if (options.auto_start) prompt.Line("start", "--auto-start", false);
  if (!options.cmdline_file.empty() && !prompt.quit()) prompt.File(options.cmdline_file, false);
  if (options.interactive && !prompt.quit()) isatty(STDIN_FILENO) != 0 ? prompt.Terminal() : prompt.Piped();
  return prompt.end();
}

}  // namespace halfpage
