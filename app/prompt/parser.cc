#include "app/prompt/parser.h"

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>

#include <cstdlib>
#include <deque>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "app/config_units.h"
#include "app/nearest_name.h"

namespace halfpage {
namespace {

constexpr size_t kMostWords = 8;

// Where rte_cmdline puts the words of a line.
struct Parsed {
  cmdline_fixed_string_t words[kMostWords];
};

}  // namespace

// DPDK's parser keeps pointers into all of this.
struct Parser::Instructions {
  // What an instruction leads to.
  struct Match {
    const Command* command;
    const Command** found;
  };

  struct Freer {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::deque<std::string> words;
  std::deque<cmdline_token_string> tokens;
  std::deque<Match> matches;
  std::vector<std::unique_ptr<cmdline_parse_inst_t, Freer>> made;
  std::vector<cmdline_parse_inst_t*> list;  // ends with null

  void Add(const Command& command, const Command** found) {
    const std::vector<std::string> grammar = absl::StrSplit(command.grammar, ' ');
    const size_t bytes = sizeof(cmdline_parse_inst_t) + (grammar.size() + 1) * sizeof(cmdline_parse_token_hdr_t*);
    auto* made_one = static_cast<cmdline_parse_inst_t*>(std::calloc(1, bytes));
    if (made_one == nullptr) return;
    matches.push_back({&command, found});
    made_one->f = [](void*, struct cmdline*, void* match) {
      *static_cast<Match*>(match)->found = static_cast<Match*>(match)->command;
    };
    made_one->data = &matches.back();
    made_one->help_str = command.help;
    for (size_t w = 0; w < grammar.size(); ++w) {
      cmdline_token_string& token = tokens.emplace_back();
      token.hdr.ops = &cmdline_token_string_ops;
      token.hdr.offset = static_cast<unsigned>(offsetof(Parsed, words) + w * sizeof(cmdline_fixed_string_t));
      // rte_cmdline writes choices a#b; without any, every word will do.
      words.push_back(absl::StrReplaceAll(grammar[w], {{"|", "#"}}));
      token.string_data.str = grammar[w].front() == '<' ? nullptr : words.back().c_str();
      made_one->tokens[w] = &token.hdr;
    }
    made.emplace_back(made_one);
    list.push_back(made_one);
  }
};

absl::StatusOr<std::unique_ptr<Parser>> Parser::Create(Session& session) {
  std::unique_ptr<Parser> parser(new Parser(session));
  parser->instructions_ = std::make_unique<Instructions>();
  for (const Command& command : Commands()) parser->instructions_->Add(command, &parser->found_);
  parser->instructions_->list.push_back(nullptr);
  parser->cmdline_ = cmdline_new(parser->instructions_->list.data(), "", -1, -1);
  if (parser->cmdline_ == nullptr) return absl::ResourceExhaustedError("no memory for the prompt");
  return parser;
}

Parser::Parser(Session& session) : session_(session) {}

Parser::~Parser() {
  if (cmdline_ != nullptr) cmdline_free(cmdline_);
}

absl::Status Parser::Unknown(const std::string& line, const Words& words, int result) const {
  if (result == CMDLINE_PARSE_AMBIGUOUS) return absl::InvalidArgumentError(absl::StrCat("`", line, "` is ambiguous"));
  // The commands that share most of the first words.
  std::vector<std::string> nearest;
  std::vector<std::string> firsts;
  size_t most = 1;
  for (const Command& command : Commands()) {
    const std::vector<std::string> grammar = absl::StrSplit(command.grammar, ' ');
    firsts.push_back(grammar.front());
    size_t same = 0;
    while (same < grammar.size() && same < words.size()) {
      const std::vector<std::string> choices = absl::StrSplit(grammar[same], '|');
      if (grammar[same].front() != '<' && std::find(choices.begin(), choices.end(), words[same]) == choices.end())
        break;
      ++same;
    }
    if (same < most) continue;
    if (same > most) nearest.clear();
    most = same;
    nearest.push_back(absl::StrCat("`", command.grammar, "`"));
  }
  if (nearest.size() > 6) nearest.resize(6);
  if (!nearest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is no command; near it: %s", Shown(line), absl::StrJoin(nearest, ", ")));
  }
  const auto name = NearestName(words.front(), firsts);
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is no command%s; `help` lists all", Shown(line),
                      name.has_value() ? absl::StrCat(", did you mean `", *name, "`?") : ""));
}

absl::Status Parser::Run(const std::string& typed) {
  for (const char c : typed) {
    if (!absl::ascii_iscntrl(c) || absl::ascii_isspace(c)) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("byte 0x%02x: commands are lines of text", static_cast<unsigned char>(c)));
  }
  const Words words = absl::StrSplit(typed, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  if (words.empty() || words.front().front() == '#') return absl::OkStatus();
  const std::string line = absl::StrJoin(words, " ");
  for (const std::string& word : words) {
    if (word.size() >= STR_TOKEN_SIZE) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a word of %d characters; at most %d", word.size(), STR_TOKEN_SIZE - 1));
    }
  }
  found_ = nullptr;
  const int result = cmdline_parse(cmdline_, absl::StrCat(line, "\n").c_str());
  if (result < 0 || found_ == nullptr) return Unknown(line, words, result);
  if (found_->run != nullptr) return found_->run(session_, words);
  absl::StrAppend(&session_.out, found_->help, "\n");
  return absl::OkStatus();
}

int Parser::Complete(const char* line, int* state, char* to, unsigned size) {
  return cmdline_complete(cmdline_, line, state, to, size);
}

}  // namespace halfpage
