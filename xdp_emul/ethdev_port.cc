#include "xdp_emul/ethdev_port.h"

#include <net/if.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xdp_emul/device_string.h"
#include "xdp_emul/ethdev_port_errors.h"

namespace halfpage {
namespace {

constexpr useconds_t kLinkLook = 10000;  // microseconds
constexpr int kLinkLooks = 200;

uint16_t Within(uint16_t wanted, const rte_eth_desc_lim& limits) {
  uint16_t slots = std::max<uint16_t>(wanted, limits.nb_min);
  if (limits.nb_max != 0) slots = std::min(slots, limits.nb_max);
  if (limits.nb_align > 1) slots = static_cast<uint16_t>(slots / limits.nb_align * limits.nb_align);
  return slots;
}

// What rte_eth_dev_configure() admits: a driver's own statement, or the frame length that it gives less header and FCS.
uint32_t MostMtu(const rte_eth_dev_info& info) {
  const uint32_t overhead = info.max_mtu != UINT16_MAX && info.max_rx_pktlen > info.max_mtu
                                ? info.max_rx_pktlen - info.max_mtu
                                : RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
  return std::min<uint32_t>(info.max_mtu, info.max_rx_pktlen - overhead);
}

// As `ip link set dev IFACE mtu N`. 0 or an errno.
int SetInterfaceMtu(const std::string& interface, uint32_t mtu) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  ifreq request = {};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  request.ifr_mtu = static_cast<int>(mtu);
  const int error = ioctl(fd, SIOCSIFMTU, &request) == 0 ? 0 : errno;
  close(fd);
  return error;
}

// net_ring closes its rings with the frames in them, which nobody could free then.
void EmptyRings(uint16_t port, const rte_eth_dev_info& info) {
  if (absl::string_view(info.driver_name == nullptr ? "" : info.driver_name) != "net_ring") return;
  rte_mbuf* frames[32];
  for (uint16_t queue = 0; queue < info.nb_rx_queues; ++queue) {
    for (uint32_t looks = 0; looks < UINT16_MAX; ++looks) {
      const uint16_t n = rte_eth_rx_burst(port, queue, frames, 32);
      if (n == 0) break;
      rte_pktmbuf_free_bulk(frames, n);
    }
  }
}

}  // namespace

absl::Status EthdevPort::Find(const EthdevPortOptions& options) {
  const DeviceString device = ParseDeviceString(options.device);
  if (rte_eth_dev_get_port_by_name(device.name.c_str(), &port_) == 0) return absl::OkStatus();
  port_ = kNoPort;
  absl::Status status = CheckBeforeProbe(options.name, device);
  if (!status.ok()) return status;
  const int result = rte_dev_probe(options.device.c_str());
  if (result != 0) return ProbeError(options.name, options.device, device, -result);
  made_ = true;
  if (rte_eth_dev_get_port_by_name(device.name.c_str(), &port_) == 0) return absl::OkStatus();
  port_ = kNoPort;
  uint16_t port = 0;
  rte_dev_iterator iterator;
  RTE_ETH_FOREACH_MATCHING_DEV(port, options.device.c_str(), &iterator) {
    port_ = port;
    rte_eth_iterator_cleanup(&iterator);
    break;
  }
  if (port_ != kNoPort) return absl::OkStatus();
  return ProbeError(options.name, options.device, device, ENODEV);
}

absl::Status EthdevPort::SetMtu(const EthdevPortOptions& options, uint32_t most) {
  const DeviceString device = ParseDeviceString(options.device);
  if (options.mtu <= most) {
    const int result = rte_eth_dev_set_mtu(port_, static_cast<uint16_t>(options.mtu));
    // A driver that cannot set one has no limit of its own; ours holds for what is sent.
    if (result == 0 || result == -ENOTSUP) return absl::OkStatus();
    return MtuError(options.name, device, options.mtu, most, -result);
  }
  // These two state 1500, and take whatever their rings have room for.
  if (device.driver == "net_memif") return absl::OkStatus();
  if (device.driver != "net_af_packet") return MtuError(options.name, device, options.mtu, most, EINVAL);
  const int error = SetInterfaceMtu(device.Text("iface"), options.mtu);
  return error == 0 ? absl::OkStatus() : MtuError(options.name, device, options.mtu, most, error);
}

absl::Status EthdevPort::Configure(const EthdevPortOptions& options) {
  const DeviceString device = ParseDeviceString(options.device);
  rte_eth_dev_info info;
  int result = rte_eth_dev_info_get(port_, &info);
  if (result != 0) return SetUpError(options.name, device, "tells nothing of itself", -result);
  if (options.rx_queues > info.max_rx_queues || options.tx_queues > info.max_tx_queues) {
    return QueueError(options.name, device, options.rx_queues, info.max_rx_queues, options.tx_queues,
                      info.max_tx_queues);
  }
  rte_eth_conf conf;
  std::memset(&conf, 0, sizeof(conf));
  const uint32_t most = MostMtu(info);
  conf.rxmode.mtu = std::min(options.mtu, most);
  conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  sends_chains_ = conf.txmode.offloads != 0 || device.driver == "net_pcap";  // which gathers, and does not say so
  const uint32_t room = rte_pktmbuf_data_room_size(options.pool) - RTE_PKTMBUF_HEADROOM;
  if (options.mtu + RTE_ETHER_HDR_LEN > room) conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
  if (options.rx_queues > 1 && (info.flow_type_rss_offloads & RTE_ETH_RSS_IP) != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf =
        info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);
  }
  result = rte_eth_dev_configure(port_, options.rx_queues, options.tx_queues, &conf);
  if (result != 0) return SetUpError(options.name, device, "cannot be configured", -result);
  absl::Status status = SetMtu(options, most);
  if (!status.ok()) return status;
  tx_queues_ = options.tx_queues;
  const auto socket = static_cast<unsigned>(options.socket);
  for (uint16_t queue = 0; queue < options.rx_queues && result == 0; ++queue) {
    result =
        rte_eth_rx_queue_setup(port_, queue, Within(options.rx_slots, info.rx_desc_lim), socket, nullptr, options.pool);
  }
  if (result != 0) return ReceiveRoomError(options.name, device, options.pool, -result);
  for (uint16_t queue = 0; queue < options.tx_queues && result == 0; ++queue) {
    result = rte_eth_tx_queue_setup(port_, queue, Within(options.tx_slots, info.tx_desc_lim), socket, nullptr);
  }
  if (result != 0) return SetUpError(options.name, device, "sets up no transmit queue", -result);
  return absl::OkStatus();
}

absl::Status EthdevPort::StartPort(const EthdevPortOptions& options) {
  const int result = rte_eth_dev_start(port_);
  if (result != 0) return SetUpError(options.name, ParseDeviceString(options.device), "does not start", -result);
  // A driver without the call takes what comes.
  if (options.promiscuous) rte_eth_promiscuous_enable(port_);
  rte_eth_link link;
  for (int look = 0; look < kLinkLooks && !link_up_; ++look) {
    std::memset(&link, 0, sizeof(link));
    link_up_ = rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
    if (!link_up_) usleep(kLinkLook);
  }
  return absl::OkStatus();
}

absl::StatusOr<EthdevPort> EthdevPort::Create(const EthdevPortOptions& options) {
  EthdevPort port;
  absl::Status status = port.Find(options);
  if (status.ok()) status = port.Configure(options);
  if (status.ok()) status = port.StartPort(options);
  if (!status.ok()) return status;
  return port;
}

EthdevPort::EthdevPort(EthdevPort&& other) noexcept {
  *this = std::move(other);
}

EthdevPort& EthdevPort::operator=(EthdevPort&& other) noexcept {
  if (this == &other) return *this;
  Close();
  port_ = std::exchange(other.port_, kNoPort);
  made_ = other.made_;
  link_up_ = other.link_up_;
  tx_queues_ = other.tx_queues_;
  sends_chains_ = other.sends_chains_;
  return *this;
}

DriverCounts EthdevPort::Read() const {
  DriverCounts counts;
  rte_eth_stats stats;
  if (port_ == kNoPort || rte_eth_stats_get(port_, &stats) != 0) return counts;
  counts.received = stats.ipackets;
  counts.sent = stats.opackets;
  counts.sent_bytes = stats.obytes;
  counts.missed = stats.imissed;
  counts.receive_errors = stats.ierrors;
  counts.send_errors = stats.oerrors;
  counts.no_buffer = stats.rx_nombuf;
  return counts;
}

void EthdevPort::Close() {
  if (port_ == kNoPort) return;
  rte_eth_dev_info info;
  const bool known = rte_eth_dev_info_get(port_, &info) == 0;
  rte_device* device = known ? info.device : nullptr;
  if (known) EmptyRings(port_, info);
  rte_eth_dev_stop(port_);
  rte_eth_dev_close(port_);
  if (made_ && device != nullptr) rte_dev_remove(device);
  port_ = kNoPort;
}

}  // namespace halfpage
