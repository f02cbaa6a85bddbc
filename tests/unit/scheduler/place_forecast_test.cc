// Who gets the next place, played through by hand.
#include "src/scheduler/place_forecast.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

constexpr PlaceHolder Short(double steps) { return {.steps = steps}; }
constexpr PlaceHolder Long(double steps) { return {.steps = steps, .is_long = true}; }

TEST(PlaceForecastTest, AFreePlaceIsTakenAtOnce) {
  const PlaceForecast forecast = ForecastPlace({3, 3}, {Short(5), Short(9)}, {Short(1)});
  EXPECT_EQ(forecast.steps, 0);
  EXPECT_EQ(forecast.started, std::vector<bool>({true}));
}

TEST(PlaceForecastTest, EachTakesThePlaceThatGetsFreeFirst) {
  // One from 5 to 8, the next from 8 to 18, and then the place of 9.
  EXPECT_EQ(ForecastPlace({2, 2}, {Short(5), Short(9)}, {Short(3), Short(10), Short(1)}).steps, 9);
}

TEST(PlaceForecastTest, ALongOneWaitsForLongOnes) {
  EXPECT_EQ(ForecastPlace({8, 1}, {Long(20), Short(2)}, {Long(7), Short(3), Long(1)}).steps, 27);
  EXPECT_EQ(ForecastPlace({8, 2}, {Long(20), Long(30)}, {Long(5), Long(1)}).steps, 25);
}

TEST(PlaceForecastTest, AShortOnePassesLongOnesButTakesNoPlaceThatIsNotFree) {
  const PlaceForecast forecast = ForecastPlace({2, 1}, {Long(20), Short(4)}, {Long(7), Short(1)});
  EXPECT_EQ(forecast.steps, 4);
  EXPECT_EQ(forecast.started, std::vector<bool>({false, true}));
}

TEST(PlaceForecastTest, ThoseThatGrewLongBeyondTheCapMustEndFirst) {
  EXPECT_EQ(ForecastPlace({8, 1}, {Long(6), Long(9)}, {Long(1)}).steps, 9);
}

}  // namespace
}  // namespace llm
