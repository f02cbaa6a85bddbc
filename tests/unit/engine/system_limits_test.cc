// What the process may use, from files as /proc and the cgroup file systems show them.
#include "src/engine/system_limits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>

namespace llm {
namespace {

class SystemLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/limits_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  int64_t Available() const { return AvailableMemoryBytes(root_).value_or(-1); }
  int Cores() const { return UsableCores(root_).value_or(-1); }

  std::string root_;
};

TEST_F(SystemLimitsTest, NothingReadableLimitsNothing) {
  EXPECT_EQ(Available(), std::numeric_limits<int64_t>::max());
}

TEST_F(SystemLimitsTest, ReadsWhatTheMachineHasLeft) {
  Write("/proc/meminfo", "MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable:   40 kB\n");
  EXPECT_EQ(Available(), 40 * 1024);
}

TEST_F(SystemLimitsTest, ALimitOfAnyParentGroupHolds) {
  Write("/proc/meminfo", "MemAvailable: 1000000 kB\n");
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/b/memory.current", "5\n");
  Write("/sys/fs/cgroup/a/memory.max", "10000\n");
  Write("/sys/fs/cgroup/a/memory.current", "6000\n");
  Write("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 500\n");
  EXPECT_EQ(Available(), 10000 - 5500);
}

TEST_F(SystemLimitsTest, AContainersOwnGroupIsTheMount) {
  Write("/proc/self/cgroup", "0::/not/visible/inside\n");
  Write("/sys/fs/cgroup/memory.max", "9000\n");
  Write("/sys/fs/cgroup/memory.current", "10000\n");
  EXPECT_EQ(Available(), 0);
}

TEST_F(SystemLimitsTest, ReadsVersionOneGroups) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/y\n");
  Write("/sys/fs/cgroup/memory/y/memory.limit_in_bytes", "8000\n");
  Write("/sys/fs/cgroup/memory/y/memory.usage_in_bytes", "3000\n");
  EXPECT_EQ(Available(), 5000);
}

TEST_F(SystemLimitsTest, ThereIsAlwaysACore) { EXPECT_GE(UsableCores().value(), 1); }

TEST_F(SystemLimitsTest, AQuotaOfEitherVersionLimitsTheCores) {
  const int cores = Cores();  // by affinity alone
  ASSERT_GE(cores, 1);
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/x/y\n0::/z\n");
  Write("/sys/fs/cgroup/cpu/x/y/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/x/y/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Cores(), cores) << "no quota";
  Write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "150000\n");
  Write("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Cores(), 1) << "the parent group's";
  Write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "1000\n");
  EXPECT_EQ(Cores(), 1) << "less than a core";
  Write("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "0\n");
  EXPECT_EQ(Cores(), cores) << "nonsense limits nothing";
  Write("/sys/fs/cgroup/z/cpu.max", "100000 100000\n");
  EXPECT_EQ(Cores(), 1);
}

}  // namespace
}  // namespace llm
