#include "app/ledger.h"

#include <numeric>

#include "absl/strings/str_format.h"

namespace halfpage {
namespace {

void Expect(uint64_t left, uint64_t right, const std::string& what, std::vector<std::string>* faults) {
  if (left != right) faults->push_back(absl::StrFormat("%s: %u against %u", what, left, right));
}

uint64_t Verdict(const DeviceSnapshot& device, XdpAction action) {
  return device.verdicts[static_cast<size_t>(action)];
}

// What was received, and what became of it by verdict.
void CheckJudged(const DeviceSnapshot& device, const char* what, std::vector<std::string>* faults) {
  const std::string name = absl::StrFormat("%s %s", what, device.name);
  const uint64_t judged = std::accumulate(device.verdicts.begin(), device.verdicts.end(), uint64_t{0});
  Expect(device.received, judged + Sum(device.refused), name + ": received = verdicts + refused", faults);
  Expect(Verdict(device, XdpAction::kTx), device.tx_sent + Sum(device.tx_errors), name + ": tx = sent + errors",
         faults);
  Expect(Verdict(device, XdpAction::kRedirect) + device.redirect_copies,
         device.redirect_sent + Sum(device.redirect_errors), name + ": redirect + copies = sent + errors", faults);
  if (Sum(device.faults) > Verdict(device, XdpAction::kAborted)) {
    Expect(Sum(device.faults), Verdict(device, XdpAction::kAborted), name + ": faults of its program are aborted",
           faults);
  }
}

// A sink that keeps frames until they are read.
void CheckHeld(const SinkSnapshot& sink, std::vector<std::string>* faults) {
  uint64_t dropped = 0;
  for (const auto& [reason, count] : sink.dropped) dropped += count;
  Expect(sink.frames, sink.kept + dropped + sink.queued,
         absl::StrFormat("sink %s: frames = kept + dropped + queued", sink.name), faults);
  Expect(sink.queued, sink.read + sink.left, absl::StrFormat("sink %s: queued = read + left", sink.name), faults);
  Expect(sink.read, sink.freed + sink.sent + Sum(sink.refused),
         absl::StrFormat("sink %s: read = freed + sent + refused", sink.name), faults);
}

// Of all redirects, the frames that did not leave for a reason.
uint64_t RedirectErrors(const Snapshot& snapshot, Refusal reason) {
  uint64_t sum = 0;
  for (const DeviceSnapshot& device : snapshot.devices) sum += device.redirect_errors[static_cast<size_t>(reason)];
  for (const LaneSnapshot& lane : snapshot.lanes) sum += lane.judged.redirect_errors[static_cast<size_t>(reason)];
  return sum;
}

// What programs behind devmaps said, and what became of it.
void CheckEgress(const Snapshot& snapshot, std::vector<std::string>* faults) {
  uint64_t dropped = 0;
  uint64_t aborted = 0;
  for (const EgressSnapshot& egress : snapshot.egress) {
    for (size_t a = 0; a < kXdpActions; ++a) {
      if (a == static_cast<size_t>(XdpAction::kPass)) continue;
      (a == static_cast<size_t>(XdpAction::kDrop) ? dropped : aborted) += egress.verdicts[a];
    }
    aborted -= egress.faults;
  }
  Expect(dropped, RedirectErrors(snapshot, Refusal::kDevmapDrop), "drop behind devmaps = errors of redirects", faults);
  Expect(aborted, RedirectErrors(snapshot, Refusal::kDevmapAborted),
         "aborted, tx and redirect behind devmaps - faults = errors of redirects", faults);
}

}  // namespace

std::vector<std::string> CheckLedger(const Snapshot& snapshot) {
  std::vector<std::string> faults;
  uint64_t sent = 0;
  for (const TrafficSnapshot& source : snapshot.traffic) {
    Expect(source.generated, source.sent + Sum(source.refused),
           absl::StrFormat("traffic %s: generated = sent + refused", source.name), &faults);
    sent += source.sent;
  }
  uint64_t sent_through = 0;
  uint64_t passed = 0;
  uint64_t to_sinks = 0;
  uint64_t to_lanes = 0;
  const auto add = [&](const DeviceSnapshot& device) {
    sent += device.tx_sent + device.redirect_sent - device.redirect_to_sinks - device.redirect_to_lanes;
    passed += Verdict(device, XdpAction::kPass);
    to_sinks += device.redirect_to_sinks;
    to_lanes += device.redirect_to_lanes;
  };
  uint64_t from_lanes = 0;
  for (const LaneSnapshot& lane : snapshot.lanes) {
    CheckJudged(lane.judged, "lane", &faults);
    add(lane.judged);
    from_lanes += lane.judged.received + lane.judged.left_in_ring;
  }
  for (const DeviceSnapshot& device : snapshot.devices) {
    CheckJudged(device, "device", &faults);
    if (device.peer >= 0) {
      const DeviceSnapshot& peer = snapshot.devices[static_cast<size_t>(device.peer)];
      Expect(device.sent_through, peer.received + peer.left_in_ring,
             absl::StrFormat("sent through %s = received by %s + left in its ring", device.name, peer.name), &faults);
    }
    add(device);
    sent_through += device.sent_through - device.segments + device.segmented;
  }
  uint64_t sunk = 0;
  for (const SinkSnapshot& sink : snapshot.sinks) {
    sunk += sink.frames;
    sent += sink.sent;
    if (sink.held) CheckHeld(sink, &faults);
    if (sink.port.empty() || sink.held) continue;
    Expect(sink.frames, sink.kept + sink.sent + Sum(sink.refused),
           absl::StrFormat("sink %s: frames = kept + sent + refused", sink.name), &faults);
  }
  Expect(sent, sent_through, "sent by sources, tx, redirect and sinks = sent through devices, segmented frames once",
         &faults);
  Expect(passed + to_sinks, sunk, "passed + redirected to sinks = taken by sinks", &faults);
  CheckEgress(snapshot, &faults);
  Expect(to_lanes, from_lanes, "redirected to workers = received by them + left in their rings", &faults);
  return faults;
}

std::vector<std::string> CheckLeaks(const Snapshot& snapshot) {
  std::vector<std::string> leaks;
  for (const PoolSnapshot& pool : snapshot.pools) {
    if (pool.buffers_in_use == pool.kept_by_drivers && pool.pages_in_flight == 0) continue;
    std::string text = absl::StrFormat("pool %s: %u buffers are still out", pool.name, pool.buffers_in_use);
    if (pool.page_frag) absl::StrAppendFormat(&text, ", on %u pages", pool.pages_in_flight);
    for (const LeakedBuffers& leak : pool.leaks) {
      if (leak.stage.empty()) {
        absl::StrAppendFormat(&text, "; %u with no owner known (measure.track_owners: true stamps owners)", leak.count);
      } else {
        absl::StrAppendFormat(&text, "; %s holds %u, the oldest for %.2f s, the youngest for %.2f s", leak.stage,
                              leak.count, leak.oldest, leak.youngest);
      }
    }
    leaks.push_back(text);
  }
  return leaks;
}

}  // namespace halfpage
