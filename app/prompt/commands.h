// The table of the prompt's commands: the parser, `help` and the list in README.md are made from it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "app/prompt/session.h"

namespace halfpage {

struct Command {
  const char* topic;    // "control", "display", "config", "ports", "xdp", "bpf"
  const char* grammar;  // words; `a|b` is one of them, `<what>` any
  const char* help;
  // Says what there is to say into session.out. Errors: what is wrong with the words (InvalidArgument, NotFound), or
  // what went wrong; null where `help` is all the answer: one of testpmd's commands whose thing is another here.
  absl::Status (*run)(Session& session, const Words& words);
};

const std::vector<Command>& Commands();

// All topics with their commands, or one topic's; NotFound for a topic that is not there.
absl::StatusOr<std::string> CommandHelp(const std::string& topic);

// What the commands do, by the file that they are in.
absl::Status ShowPort(Session& session, const Words& words);
absl::Status ShowConfig(Session& session, const Words& words);
absl::Status ShowForward(Session& session, const Words& words);
absl::Status ShowPool(Session& session, const Words& words);
absl::Status ShowVeth(Session& session, const Words& words);
absl::Status ShowXdp(Session& session, const Words& words);
absl::Status ShowWorkers(Session& session, const Words& words);
absl::Status ShowJson(Session& session, const Words& words);
absl::Status Clear(Session& session, const Words& words);
absl::Status StartForwarding(Session& session, const Words& words);
absl::Status StopForwarding(Session& session, const Words& words);
absl::Status SetForward(Session& session, const Words& words);
absl::Status SetEthPeer(Session& session, const Words& words);
absl::Status SetNumber(Session& session, const Words& words);
absl::Status SetSwitch(Session& session, const Words& words);
absl::Status SetPolicy(Session& session, const Words& words);
absl::Status SetRecycle(Session& session, const Words& words);
absl::Status SetLog(Session& session, const Words& words);
absl::Status Port(Session& session, const Words& words);
absl::Status Xdp(Session& session, const Words& words);
absl::Status ShowBpf(Session& session, const Words& words);
absl::Status MapEdit(Session& session, const Words& words);
absl::Status Dump(Session& session, const Words& words);

}  // namespace halfpage
