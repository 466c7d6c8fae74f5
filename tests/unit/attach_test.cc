// Admission rules and the kernel's sizes, against figures measured on Linux 6.18 or taken from its source.
#include "xdp_emul/attach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace halfpage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Attach, BudgetsAreThoseOfTheKernelAndOfTheHalfPageProposal) {
  struct Row {
    FrameBuffers buffers;
    bool frags;
    uint64_t frame;
    uint64_t mtu;
  };
  const FrameBuffers page;  // 4096, 256, 320, 17
  const FrameBuffers page192 = {4096, 192, 320, 17};
  const FrameBuffers half256 = {2048, 256, 320, 17};
  const FrameBuffers half = {2048, 192, 320, 17};
  const FrameBuffers aligned_half = {2048, 192 + 2, 320, 17};  // NET_IP_ALIGN 2, as public tables have it
  for (const Row& row :
       {Row{page, false, 3520, 3506}, Row{page, true, 73152, 73138}, Row{page192, false, 3584, 3570},
        Row{page192, true, 73216, 73202}, Row{half256, false, 1472, 1458}, Row{half256, true, 36288, 36274},
        Row{half, false, 1536, 1522}, Row{half, true, 36352, 36338}, Row{aligned_half, true, 36350, 36336},
        Row{{512, 256, 320, 17}, false, 0, 0}, Row{{600, 256, 320, 17}, false, 24, 10}}) {
    const FrameBudget budget = BudgetOf(row.buffers, row.frags);
    EXPECT_EQ(budget.frame, row.frame);
    EXPECT_EQ(budget.mtu, row.mtu);
  }
}

AttachRequest Request(uint32_t mtu, std::vector<ProgramLink> links, const FrameBuffers& buffers = {}) {
  AttachRequest request;
  request.mode = XdpMode::kKernel;
  request.device = "veth0";
  request.program = links.size() == 1 ? links[0].name : "all";
  request.links = std::move(links);
  request.mtu = mtu;
  request.buffers = buffers;
  request.buffers_name = "pool `packets`";
  return request;
}

TEST(Attach, TheLimitItselfIsAdmittedAndOneByteMoreIsNot) {
  for (const bool frags : {false, true}) {
    for (const FrameBuffers& buffers :
         {FrameBuffers(), FrameBuffers{2048, 192, 320, 17}, FrameBuffers{2176, 128, 0, 3}}) {
      const auto mtu = static_cast<uint32_t>(BudgetOf(buffers, frags).mtu);
      EXPECT_TRUE(CheckAttach(Request(mtu, {{"gate", frags}}, buffers)).ok()) << mtu;
      EXPECT_FALSE(CheckAttach(Request(mtu + 1, {{"gate", frags}}, buffers)).ok()) << mtu;
    }
  }
}

TEST(Attach, MtuPastThePageNamesTheLimitHowItComesAboutAndTheWayOut) {
  const std::string error(CheckAttach(Request(8000, {{"gate", false}})).message());
  EXPECT_THAT(error, AllOf(HasSubstr("mtu 8000 is past 3506"), HasSubstr("`veth0`"),
                           HasSubstr("4096 buffer - 256 headroom - 320 tailroom - 14 Ethernet = 3506"),
                           HasSubstr("frame budget 3520, mtu 3506"), HasSubstr("write frags: true"),
                           HasSubstr("mtu: 3506 or less")));
}

TEST(Attach, AProgramWithFragsIsToldOfTheFragmentsAndNotOfFrags) {
  const std::string error(CheckAttach(Request(65535, {{"gate", true}}, {2048, 192, 320, 17})).message());
  EXPECT_THAT(error, AllOf(HasSubstr("past 36338"), HasSubstr("+ 17 x 2048"), HasSubstr("frame budget 36352"),
                           Not(HasSubstr("frags:"))));
}

TEST(Attach, AChainTakesFragsOnlyIfAllLinksDoAndTheErrorNamesTheOneThatDoesNot) {
  EXPECT_TRUE(CheckAttach(Request(8000, {{"first", true}, {"second", true}})).ok());
  const std::string error(CheckAttach(Request(8000, {{"first", true}, {"second", false}, {"third", true}})).message());
  EXPECT_THAT(error, HasSubstr("`second` of its chain `all` has frags: false"));
}

TEST(KernelFragments, SizesAndChargesAreTheMeasuredOnes) {
  const auto charges = [](uint32_t length, int frames) {
    KernelFragments fragments;
    std::vector<uint32_t> out;
    for (int i = 0; i < frames; ++i) out.push_back(KernelFragments::Truesize(fragments.Take(length)));
    return out;
  };
  EXPECT_THAT(charges(64, 7), ElementsAre(896, 896, 896, 896, 896, 1152, 896));
  EXPECT_THAT(charges(300, 5), ElementsAre(1152, 1152, 1152, 1664, 1152));
  EXPECT_THAT(charges(1472, 3), ElementsAre(2304, 2304, 2304));
  EXPECT_THAT(charges(1473, 2), ElementsAre(4352, 4352));
  EXPECT_THAT(charges(1514, 2), ElementsAre(4352, 4352));
  EXPECT_THAT(charges(65535, 2), ElementsAre(4352, 4352));
}

TEST(Attach, AProgramThatRunsBehindAMapsEntryIsRefusedAtADeviceWithItsSection) {
  AttachRequest request;
  request.device = "veth0";
  request.program = "leave";
  request.links = {{"leave", true, true, ProgramHook::kDevmap}};
  EXPECT_THAT(std::string(CheckAttach(request).message()),
              AllOf(HasSubstr("`leave` is of section xdp.frags/devmap"), HasSubstr("`veth0`"),
                    HasSubstr("`program` of an entry of a devmap"), HasSubstr("into section xdp.frags")));
  request.links = {{"first", false, true, ProgramHook::kDevice}, {"arrive", false, true, ProgramHook::kCpumap}};
  EXPECT_THAT(std::string(CheckAttach(request).message()),
              AllOf(HasSubstr("`arrive` is of section xdp/cpumap"), HasSubstr("entry of a cpumap")));
  request.links.pop_back();
  EXPECT_TRUE(CheckAttach(request).ok());
}

}  // namespace
}  // namespace halfpage
