// The configuration: one struct per section of the YAML file, each field with the default of a file that leaves it out.
//
// LoadConfig() reports every fault of a file at once. What it returns is complete: references are known to exist, sizes
// fit each other, captures are readable. yaml-cpp is used in app/config*.cc only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "mempool/pktmbuf_pool.h"
#include "xdp_emul/attach.h"
#include "xdp_emul/map_config.h"
#include "xdp_emul/program_config.h"
#include "xdp_emul/sinks/accounting.h"

namespace halfpage {

// `eal:` what EAL is started with when the command line has no arguments of its own.
struct EalConfig {
  enum class Preset : uint8_t {
    kLab,        // --no-huge --no-pci -m MEMORY: no hugepages, no NIC, no root
    kHugepages,  // --in-memory --no-pci: hugepages of the kernel's pool, no mount needed
    kNone,       // nothing but `args`
  };
  Preset preset = Preset::kLab;
  uint64_t memory = 512ull << 20;    // bytes EAL may take; with kHugepages an upper bound that is reserved on demand
  std::string cores = "auto";        // `auto`, or the value of EAL's --lcores ("0@0,1@1,2@0")
  std::string file_prefix = "auto";  // `auto`: unique per process
  std::vector<std::string> args;     // appended as they are
};

using MacAddress = std::array<uint8_t, 6>;

// `arena:` the memory behind all page_frag pools, one arena for each socket that pools name.
struct ArenaConfig {
  uint64_t limit = 0;  // bytes of each arena at most, in whole chunks of 2 MiB; 0: what EAL has
  double trim = 0;     // seconds between givings back to EAL of what nobody uses, while the run goes on; 0: at its end
};

// `copy:` of a device: when it copies a frame into buffers of its own before its program sees it, and how.
struct CopyConfig {
  enum class When : uint8_t {
    kNeeded,  // halfpage: what is shared and may be written; chains for a program without frags; too little headroom.
              // kernel: what is shared, chained, or has less than 256 bytes in front
    kAlways,  // every frame, as the kernel does with frames from local sockets
    kNever,
  };
  enum class Policy : uint8_t {
    kAuto,     // halfpage: stock; kernel: kernel
    kStock,    // into buffers of the pool in `pools`
    kClasses,  // into the smallest buffers of `pools` that the frame fits
    kWhole,    // a page of `page_size` for each
    kHalf,     // half a page
    kFixed,    // `size` bytes of room
    kExact,    // as long as the frame
    kKernel,   // as long as the kernel's: 256 + align64(length) + 320, or a page where two do not fit one
  };
  static constexpr uint32_t kAutoHeadroom = UINT16_MAX;
  When when = When::kNeeded;
  Policy policy = Policy::kAuto;
  std::vector<std::string> pools;  // LoadConfig() fills in the first pool, or the device's own
  uint32_t size = 2048;            // kFixed: bytes behind each mbuf
  uint32_t page_size = 4096;       // of the device's own pool; exact and kernel: at least 32 KiB are used
  uint32_t buffers = 4096;         // of the device's own pool
  RecycleMode recycle = RecycleMode::kLifo;
  uint32_t headroom = kAutoHeadroom;  // bytes in front: fewer are a reason to copy. auto: kernel 256; halfpage: no
                                      // reason, and copies get 128 in pools, 256 in buffers of the device's own
  uint32_t tailroom = 0;              // bytes kept free behind copies (kernel: 320)
};

// `ports:` a real port, any ethdev that EAL has or makes, as an end of the pipeline.
struct PortConfig {
  std::string name;
  std::string device;  // EAL's: "net_af_packet0,iface=eth0", a PCI address, or a port that EAL's arguments make
  std::string pool;    // received frames' buffers come from here, and segments of those that are sent
  uint32_t mtu = 1500;
  bool promiscuous = true;
  uint32_t queues = 1;     // receive queues
  uint32_t tx_queues = 0;  // each worker that sends has one of its own; 0: as many as such workers
  uint32_t rxd = 256;      // slots of a receive queue, as far as the driver has any
  uint32_t txd = 256;
  std::string program;
  std::string sink;
  CopyConfig copy;
  int socket = -1;                     // NUMA node that the device is at, -1: as EAL finds it
  std::optional<MacAddress> eth_peer;  // who is behind it, for programs of kind forward; none: 02:00:00:00:00:N
};

// One end of a pair, as a network device.
struct VethEndConfig {
  std::string name;
  std::string program;  // XDP program that judges what this end receives; empty: none, everything passes
  std::string sink;     // where what passes goes; empty: counted and freed
  uint32_t mtu = 1500;  // bytes behind the 14-byte Ethernet header; both ways, as `ip link set mtu`
  bool gro = false;     // takes frames of XDP_TX and redirects without a program, too (kernel: ethtool -K gro on)
  bool up = true;       // false: whatever is sent through either end is refused, peer_down
  CopyConfig copy;
};

// `veth:` one pair of devices, joined back to back.
struct VethConfig {
  std::string name;
  XdpMode mode = XdpMode::kHalfpage;  // the kernel's rule or ours where they differ
  uint32_t queues = 1;                // per end, 1 to 16
  uint32_t ring = 256;                // usable slots per queue, a power of two (kernel: VETH_RING_SIZE)
  VethEndConfig ends[2];
};

// `traffic:` one source of frames.
struct TrafficConfig {
  enum class Source : uint8_t { kCapture, kGenerator };
  enum class Timing : uint8_t {
    kRate,     // no faster than `rate`
    kCapture,  // each frame as long after the first as in the file
  };
  enum class Buffers : uint8_t {
    kPool,   // with the room of the pool, or of the smallest class that the frame fits
    kExact,  // each as long as its frame, from a pool with `exact: true`
  };
  std::string name;
  Source source = Source::kGenerator;
  std::string into;                  // device that sends it: an end, whose peer receives it, or a port
  std::string pool;                  // buffers come from here, or
  std::vector<std::string> classes;  // from the smallest of these pools that a frame fits (mempool/pool_classes.h)
  bool borrow = true;                // with `classes`: from the next larger one where that is empty
  Buffers buffers = Buffers::kPool;
  uint64_t count = 0;             // frames to send, 0: no limit (a capture with loop off ends by itself)
  uint32_t burst = 32;            // frames per transmit call, 1 to 64
  uint64_t rate = 0;              // frames a second at most, 0: no limit
  std::string file;               // kCapture: pcap or pcapng, resolved against the YAML file's folder
  bool loop = false;              // kCapture: begin again at its end
  Timing timing = Timing::kRate;  // kCapture
  std::vector<std::pair<uint32_t, uint32_t>> sizes = {{64, 1}};  // kGenerator: {frame bytes without FCS, weight}
  uint32_t flows = 64;                                           // kGenerator: distinct UDP/IPv4 flows, 1 to 65536
  uint16_t destination_port = 9;  // kGenerator: of the first flow; flow f uses destination_port + f % ports
  uint16_t ports = 1;             // kGenerator: how many destination ports the flows spread over
  uint16_t gso = 0;  // kGenerator: TCP, and frames with more payload are marked for segments of so much; 0: UDP

  // What `pool` or `classes` names.
  std::vector<std::string> PoolNames() const { return classes.empty() ? std::vector<std::string>{pool} : classes; }
};

// `sinks:` what becomes of frames that pass.
struct SinkConfig {
  enum class Kind : uint8_t { kCount, kPcap, kPort, kUdpSocket, kUser };
  std::string name;
  Kind kind = Kind::kCount;
  std::string file;          // kPcap: written at stop's latest; relative to the working folder
  uint32_t snaplen = 65535;  // kPcap: bytes kept of each frame
  uint32_t keep_every = 0;   // fault injection: of so many frames one is never freed; 0: all are
  uint64_t limit = 0;        // kPcap: frames written, 0: all; later ones are counted and freed
  std::string port;          // device that sends, an end or a port: what passes (kPort), what was read (kUser; or none)
  uint32_t rcvbuf = 212992;  // kUdpSocket: bytes that may be charged (kernel: net.core.rmem_default)
  bool condense = true;      // kUdpSocket: move frames into smaller room while more than half is charged
  Accounting accounting = Accounting::kBuffers;  // kUdpSocket
  uint16_t udp_port = 0;                         // kUdpSocket: that it is bound to, 0: every port
  uint32_t ring = 2048;                          // kUser: slots of each of its four rings
  uint32_t chunks = 4096;                        // kUser: frames that it can hold at once
  uint64_t rate = 0;                             // kUdpSocket, kUser: frames a second that are read, 0: no limit

  // Keeps frames until a worker reads them.
  bool held() const { return kind == Kind::kUdpSocket || kind == Kind::kUser; }
};

// `lcores:` which worker does what.
struct WorkerConfig {
  std::vector<std::string> poll;      // device ends whose receive queues it polls
  std::vector<std::string> generate;  // traffic sources it drives
  std::vector<std::string> read;      // sinks that keep frames, which it empties
};
struct LcoreConfig {
  // `workers: auto` is one worker that does everything; LoadConfig() fills it in, so this is never empty afterwards.
  std::vector<WorkerConfig> workers;
};

// `measure:` how long, how much at a time.
struct MeasureConfig {
  double duration = 0;        // seconds, 0: until the sources end or a signal comes
  uint64_t count = 0;         // frames over all sources, 0: no limit
  double stats_period = 0;    // seconds between statistics blocks, 0: none
  uint32_t budget = 64;       // frames per poll of a queue (NAPI's weight), 1 to 64
  uint32_t bulk = 16;         // frames per XDP_TX or redirect flush, 1 to 64 (kernel: 16)
  double drain_timeout = 2;   // seconds that stopping may wait for rings to run empty
  bool track_owners = false;  // stamp buffers at each hand-over, so that a leak names its stage and age
  uint64_t seed = 1;          // of everything random
  bool stay = false;          // go on after the sources have ended
};

// `report:` what is left behind.
struct ReportConfig {
  std::string json;  // file for the final report as JSON; "-" for standard output in place of the text
  bool top = false;  // a screen of what is going on, on the terminal, in place of statistics blocks
};

struct Config {
  std::string file;  // as named by the user
  EalConfig eal;
  ArenaConfig arena;
  std::vector<PktmbufPoolConfig> pools;
  std::vector<PortConfig> ports;
  std::vector<VethConfig> veth;
  std::vector<ProgramConfig> programs;
  std::vector<RedirectMapConfig> maps;
  std::vector<TrafficConfig> traffic;
  std::vector<SinkConfig> sinks;
  LcoreConfig lcores;
  MeasureConfig measure;
  ReportConfig report;

  // The pool of that name, or null.
  const PktmbufPoolConfig* FindPool(const std::string& name) const;
  // The one with the largest room of those that `source` takes buffers from; null where it names none that exists.
  const PktmbufPoolConfig* LargestPool(const TrafficConfig& source) const;
};

// One thing that is wrong, ready to print:
// "conf/chain.yaml:14: veth[1].ring: 1000 is not a power of two (nearest 1024)".
struct ConfigFault {
  std::string file;     // or the option's name ("--set") for a value from the command line
  int line = 0;         // 1-based; 0 where there is no line
  std::string path;     // "veth[1].ring"
  std::string message;  // what is wrong, the limit, and the way out

  std::string ToString() const;
};

// A value given on the command line: `path` as in `veth[0].ring`, `value` as it would stand in the file, `origin` the
// option it came from ("--burst"). It replaces what the file says before anything is checked.
struct ConfigOverride {
  std::string path;
  std::string value;
  std::string origin;
};

struct LoadedConfig {
  Config config;                      // meaningful only where `faults` is empty
  std::vector<ConfigFault> faults;    // in order of line
  std::vector<ConfigFault> warnings;  // a run goes on in spite of these
  // The one fault is that the pools do not fit into EAL's memory: `config` is complete all the same.
  bool only_too_large = false;
};

// Reads, overrides and checks the file at `path` ("-": standard input). Never throws, takes no EAL memory.
LoadedConfig LoadConfig(const std::string& path, const std::vector<ConfigOverride>& overrides);

// The same for a text that is no file: `name` stands in messages, and paths in it are relative to the working folder.
LoadedConfig LoadConfigText(const std::string& text, const std::string& name,
                            const std::vector<ConfigOverride>& overrides);

// The whole configuration as YAML: every key, its effective value, its comment. LoadConfig() accepts the text and gives
// an equal Config. `base` as in Config::file.
std::string PrintConfig(const Config& config);

}  // namespace halfpage
